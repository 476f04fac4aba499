"""The seeded generator: the exact sequence of records of any round of an example feed.

A round gives birth to `size` keys and tells the first half of each one's story, and the second half for the keys of the
round before. Nothing is remembered between rounds: every byte follows from the seed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from zlib import crc32

from demo.content import CONTENT, EPOCH, Life, seeded
from demo.damage import Good, damages
from demo.feed import Feed
from demo.record import Coordinates, Corrupt, Headers, Meaning, Record, Tombstone, Version
from demo.stories import Damage, Delete, DeleteNobody, Send, Step, Story, stories
from demo.wire import encoded, framed

SEED = 3
# Keys born per round: about 6,000, 40,000 and 3,000 records.
SIZES: Mapping[str, int] = {"orders": 4_000, "calls": 18_000, "customers": 2_000}

# Were a damaged record taken for a version, it would win, and the comparison would show it.
DAMAGED_REVISION = 9

ROUND_MS = 600_000
SKEW_MS = 7_200_000
SOME_HEADERS: tuple[Headers, ...] = (
    (("source", b"shop"), ("trace", b"\x00\xff\xfe")),
    (("hop", b"1"), ("hop", b"2"), ("hop", b"1")),
    (("nothing", None), ("empty", b""), ("ключ", "значение".encode())),
)


@dataclass(frozen=True)
class Told:
    """A key and the part of its story that belongs to one round."""

    life: Life
    story: Story
    steps: tuple[Step, ...]


def round_records(
    feed: Feed, *, seed: int = SEED, number: int, ids: Mapping[str, int], size: int | None = None, at: int | None = None
) -> list[Record]:
    """The records of round `number` in publish order; `ids`: each feed's schema id, `at`: the first timestamp (ms)."""
    start = int(EPOCH.timestamp() * 1000) + number * ROUND_MS if at is None else at
    turns = _turns(feed, seed, number=number, size=size)
    return [
        _record(feed, told, step, schema_id=ids[feed.name], timestamp=_timestamp(start, place, total=len(turns)))
        for place, (told, step) in enumerate(turns)
    ]


def meanings(
    feed: Feed, *, seed: int = SEED, rounds: int, size: int | None = None
) -> Iterator[tuple[Coordinates, Meaning]]:
    """What the first `rounds` rounds mean, each with its coordinates in the topic, told without making the bytes."""
    ends: Counter[int] = Counter()
    for number in range(rounds):
        for told, step in _turns(feed, seed, number=number, size=size):
            partition = _partition(feed, _kafka_key(told.life, step))
            yield Coordinates(partition, ends[partition]), _meaning(feed, told.life, step)
            ends[partition] += 1


def round_counts(feed: Feed, *, seed: int = SEED, number: int, size: int | None = None) -> Counter[int]:
    """How many records round `number` puts into each partition, told without making them."""
    turns = _turns(feed, seed, number=number, size=size)
    return Counter(_partition(feed, _kafka_key(told.life, step)) for told, step in turns)


def _turns(feed: Feed, seed: int, *, number: int, size: int | None) -> list[tuple[Told, Step]]:
    """Who takes which step, in publish order."""
    told = _told(feed, seed, number=number, size=SIZES[feed.example] if size is None else size)
    return _interleaved(told, seeded(seed, feed.example, number, "turns"))


def _told(feed: Feed, seed: int, *, number: int, size: int) -> list[Told]:
    now = [Told(life, story, story.now) for life, story in _born(feed, seed, number=number, size=size)]
    if number == 0:
        return now
    before = _born(feed, seed, number=number - 1, size=size)
    return [Told(life, story, story.later) for life, story in before] + now


def _born(feed: Feed, seed: int, *, number: int, size: int) -> Iterator[tuple[Life, Story]]:
    """The keys of a round. The first ones take every story once, so that even a small round has all of them."""
    every = stories(feed)
    chance = seeded(seed, feed.example, number, "stories")
    drawn = chance.choices(every, weights=[story.weight for story in every], k=size)
    chosen = (every + tuple(drawn))[: max(size, len(every))]
    for index, story in enumerate(chosen):
        yield Life(seed, feed.example, number, index), story


def _interleaved(told: list[Told], chance: Random) -> list[tuple[Told, Step]]:
    """All steps shuffled among each other, each key's own in their order."""
    turns = [index for index, part in enumerate(told) for _ in part.steps]
    chance.shuffle(turns)
    left = [iter(part.steps) for part in told]
    return [(told[index], next(left[index])) for index in turns]


def _record(feed: Feed, told: Told, step: Step, *, schema_id: int, timestamp: int) -> Record:
    key, meaning = _kafka_key(told.life, step), _meaning(feed, told.life, step)
    return Record(
        key=key,
        value=_value(feed, told.life, step, meaning=meaning, schema_id=schema_id),
        partition=_partition(feed, key),
        timestamp=timestamp,
        headers=_headers(told.life),
        meaning=meaning,
        story=told.story.name,
    )


def _kafka_key(life: Life, step: Step) -> bytes | None:
    return None if isinstance(step, DeleteNobody) else life.key.encode()


def _partition(feed: Feed, key: bytes | None) -> int:
    return crc32(key or b"") % feed.partitions


def _meaning(feed: Feed, life: Life, step: Step) -> Meaning:
    match step:
        case Send(revision, other, _):
            return Version(CONTENT[feed.example](life, revision, other))
        case Delete():
            return Tombstone(life.key)
        case DeleteNobody():
            return Corrupt("keyless")
        case Damage(kind):
            return Corrupt(damages(feed)[kind].reason)


def _value(feed: Feed, life: Life, step: Step, *, meaning: Meaning, schema_id: int) -> bytes | None:
    if isinstance(step, Send) and isinstance(meaning, Version):
        return framed(schema_id, encoded(feed, meaning.row, spelling=step.spelling))
    if isinstance(step, Damage):
        row = CONTENT[feed.example](life, DAMAGED_REVISION, 0)
        return damages(feed)[step.kind].value(Good(feed, schema_id, row, life.chance(step.kind)))
    return None


def _headers(life: Life) -> Headers:
    return SOME_HEADERS[life.index % 3] if life.index % 20 < 3 else ()


def _timestamp(start: int, place: int, *, total: int) -> int:
    """Spread over ten minutes; now and then a producer whose clock is two hours behind."""
    return start + place * ROUND_MS // total - (SKEW_MS if place % 97 == 96 else 0)
