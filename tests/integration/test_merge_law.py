"""The law of merging: whatever the order, the split into batches, the doubles and the re-runs, the same records give
the same table, and that table is the oracle's. Re-runs are tries that die, a window run again, what is released from
quarantine though nothing was mended, and the whole archive replayed.

Every key of a story is an independent case, so that one run of Spark tries a hundred of them. One story is tried for
each rule; hypothesis begins with the dullest one that it can think of, so a story must be rich to count. Where CI is
set, hypothesis tells the same stories each time.
"""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from judging import assert_adds_up, compare
from workshop import Record, Workshop

from demo.oracle import Told
from demo.record import Coordinates, Corrupt, Meaning, Tombstone, Version
from headrace import effort
from headrace.stages import release
from headrace.stages.release import Choice

Make = Callable[..., Workshop]

NOW = 1_790_000_000_000
PARTITIONS = 2
ENOUGH = 5
"""In how many lives of a story everything that can happen to a key must have happened."""
FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": ["null", "int"], "default": None},
    {"name": "left", "type": ["null", "boolean"], "default": None},
    # Two of a kind that say the same things: a value that moves from one to the other is another content.
    {"name": "note", "type": ["null", "string"], "default": None},
    {"name": "mark", "type": ["null", "string"], "default": None},
    {
        "name": "place",
        "type": [
            "null",
            {
                "type": "record",
                "name": "Place",
                "fields": [
                    {"name": "town", "type": ["null", "string"], "default": None},
                    {"name": "floor", "type": ["null", "int"], "default": None},
                ],
            },
        ],
        "default": None,
    },
]
MARKS = [None, "a", "b"]
STRICT = {"column": "mark", "one_of": ["a"], "severity": "quarantine"}
DELETE = {"field": "left", "one_of": [True]}
RULES: Mapping[str, Mapping[str, Any]] = {
    "latest": {"merge": "latest", "order": ["revision"], "delete": DELETE},
    "latest by offset": {"merge": "latest", "topic": {"partitions": 1}},
    "first": {"merge": "first", "order": ["revision"], "delete": DELETE},
    "patch": {"merge": "patch", "order": ["revision"], "delete": DELETE},
    "patch by offset": {"merge": "patch", "topic": {"partitions": 1}},
    "append": {"merge": "append"},
}


@dataclass(frozen=True)
class Act:
    """One record of a key: a row, a tombstone (None) or bytes that are none (b"")."""

    partition: int
    value: Mapping[str, Any] | bytes | None
    twice: bool


def rows(order: bool) -> st.SearchStrategy[dict[str, Any]]:
    few = st.sampled_from
    place = st.fixed_dictionaries({"town": few([None, "ulm", "pau"]), "floor": few([None, 1, 2])})
    return st.fixed_dictionaries(
        {
            "revision": few([None, 1, 2, 3, 4]) if order else st.none(),
            "left": few([None, None, None, False, True]),
            "note": few([None, "a", "b"]),
            "mark": few(MARKS),
            # What holds nothing is nothing, in a table as in a patch.
            "place": st.none() | place.filter(lambda each: any(each.values())),
        }
    )


def acts(rule: str) -> st.SearchStrategy[Act]:
    declared = RULES[rule]
    values = [rows("order" in declared)] * 4 + ([st.none()] if declared["merge"] != "append" else []) + [st.just(b"")]
    partitions = st.integers(0, PARTITIONS - 1) if "topic" not in declared else st.just(0)
    # Not one_of, which would take four equal choices for one.
    value = st.sampled_from(values).flatmap(lambda kind: kind)
    return st.builds(Act, partitions, value, st.booleans())


def stories(rule: str) -> st.SearchStrategy[list[list[Act]]]:
    return st.lists(st.lists(acts(rule), min_size=1, max_size=5), min_size=40, max_size=80)


def happenings(life: Sequence[Act]) -> Iterator[str]:
    """What the acts of one key are cases of."""
    versions = [act.value for act in life if isinstance(act.value, Mapping)]
    revisions = [value["revision"] or 0 for value in versions]
    if revisions != sorted(revisions):
        yield "late"
    if len({json.dumps(value) for value in versions}) > 1:
        yield "changed"
    if any(value["left"] for value in versions):
        yield "left"
    if len({act.partition for act in life}) > 1:
        yield "scattered"
    if any(act.twice for act in life):
        yield "doubled"
    if any(act.value == b"" for act in life):
        yield "corrupt"
    yield from _tombstones([act.value for act in life])


def _tombstones(values: Sequence[Mapping[str, Any] | bytes | None]) -> Iterator[str]:
    if None in values[1:]:
        yield "deleted"
    if None in values and any(isinstance(value, Mapping) for value in values[values.index(None) :]):
        yield "back after a delete"


def can_happen(rule: str) -> set[str]:
    """What a rich story of a rule has."""
    declared = RULES[rule]
    found = {"changed", "doubled", "corrupt", "left"}
    found |= {"late"} if "order" in declared else set()
    found |= {"scattered"} if "topic" not in declared else set()
    return found | ({"deleted", "back after a delete"} if declared["merge"] != "append" else set())


def is_rich(story: Sequence[Sequence[Act]], rule: str) -> bool:
    counted = Counter(each for life in story for each in happenings(life))
    return all(counted[each] >= ENOUGH for each in can_happen(rule))


def records(story: Sequence[Sequence[Act]], seed: Any) -> list[Record]:
    """All keys' records, woven into one another, each key's own in their order."""
    lives = [list(_life(f"k{number:03}", life)) for number, life in enumerate(story)]
    woven = []
    while lives:
        life = seed.choice(lives)
        woven.append(life.pop(0))
        lives = [each for each in lives if each]
    return [replace(each, timestamp=moment(number)) for number, each in enumerate(woven)]


def moment(number: int) -> int:
    """When a record is sent, in milliseconds."""
    return NOW + number


def _life(key: str, life: Sequence[Act]) -> Iterator[Record]:
    for act in life:
        value = {"id": key, **act.value} if isinstance(act.value, Mapping) else act.value
        for _ in range(2 if act.twice else 1):
            yield Record(value, key=key, partition=act.partition)


def told(published: Sequence[Record], *, marks: Sequence[str | None] = MARKS) -> list[Told]:
    """The records with the coordinates that Kafka gives them; versions with other marks than these are rejected."""
    found, offsets = [], [0] * PARTITIONS
    for record in published:
        found.append((Coordinates(record.partition, offsets[record.partition]), _meaning(record, marks)))
        offsets[record.partition] += 1
    return found


def _meaning(record: Record, marks: Sequence[str | None]) -> Meaning:
    match record.value:
        case Mapping():
            # A version that deletes is not checked.
            is_good = record.value["mark"] in marks or record.value["left"]
            return Version(record.value) if is_good else Corrupt("check")
        case None:
            return Tombstone(record.key or "")
    return Corrupt("unframed")


def run(shop: Workshop, *, tries: int = 1) -> Mapping[str, int]:
    """One run whose first tries die before they are published; returns what the last one accounts for."""
    for _ in range(tries - 1):
        shop.transform("dies")
    accounts: Mapping[str, int] = shop.transform(id_ := uuid.uuid4().hex)
    shop.publish_run(id_)
    return accounts


@pytest.mark.parametrize("rule", RULES)
def test_the_same_records_give_the_oracles_table(workshop: Make, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other run is compiled, as large ones are, though it is small."""
    small = effort.SMALL

    @settings(
        max_examples=1, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
    )
    @given(stories(rule), st.randoms(use_true_random=False))
    def hold(story: list[list[Act]], seed: Any) -> None:
        assume(is_rich(story, rule))
        shop = workshop({"key": ["id"], "topic": {"partitions": PARTITIONS}, **RULES[rule]}, fields=FIELDS)
        published = records(story, seed)
        cuts = sorted(seed.sample(range(1, len(published)), 3))
        twice, again = seed.randrange(len(cuts) + 1), seed.randrange(1, len(cuts) + 1)
        for number, (first, last) in enumerate(pairwise([0, *cuts, len(published)])):
            shop.publish(*published[first:last])
            shop.extract()
            monkeypatch.setattr(effort, "SMALL", small if number % 2 else -1)
            if number == again:
                assert release.release(shop.feed, lake=shop.lake, choice=Choice()) == len(shop.quarantine())
                # Some of it is merged already, some may be new.
                window = tuple(moment(each) for each in sorted(seed.sample(range(last + 1), 2)))
                assert_adds_up(shop.again(window=window))
            assert_adds_up(run(shop, tries=2 if number == twice else 1))
        compare(shop, told(published))
        before = shop.clean()
        assert shop.replay().records == len(published)
        shop.extract()
        assert_adds_up(run(shop))
        assert shop.clean() == before

    hold()


@pytest.mark.parametrize("rule", ["latest", "patch"])
def test_records_that_get_another_verdict_give_the_oracles_table_too(workshop: Make, rule: str) -> None:
    """A version that comes in or goes may have ranked a tombstone that has been overwritten since."""

    @settings(
        max_examples=1, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
    )
    @given(stories(rule), st.randoms(use_true_random=False))
    def hold(story: list[list[Act]], seed: Any) -> None:
        assume(is_rich(story, rule))
        loose = workshop({"key": ["id"], "topic": {"partitions": PARTITIONS}, **RULES[rule]}, fields=FIELDS)
        strict, published = loose.redeclared(checks=[STRICT]), records(story, seed)
        rejected, good = told(published, marks=[None, "a"]), told(published)
        whole, cut = (0, moment(len(published))), seed.randrange(1, len(published))
        for part in (published[:cut], published[cut:]):
            strict.publish(*part)
            strict.extract()
            assert_adds_up(run(strict))
        compare(strict, rejected)
        release.release(loose.feed, lake=loose.lake, choice=Choice())
        assert_adds_up(run(loose))
        compare(loose, good)
        assert_adds_up(strict.again(window=(moment(cut), whole[1])))
        assert_adds_up(loose.again(window=whole))
        compare(loose, good)
        assert_adds_up(strict.again(window=whole))
        compare(strict, rejected)

    hold()
