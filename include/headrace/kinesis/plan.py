"""An extract of a stream, planned: from where each shard is read on, or why it may not be."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from headrace.declaration import Kinesis
from headrace.errors import RecordsLost, TopicError
from headrace.heads import Heads, ShardHead, Shards
from headrace.kinesis.shard import Position
from headrace.kinesis.stream import HOUR_MS, Stream


@dataclass(frozen=True)
class Plan:
    """Where an extract reads on: what it reaches is known only when it has read, and committed with the records."""

    name: str
    stream: Stream
    head: Heads
    """What the archive held; with a first start, where that begins."""
    positions: Mapping[int, Position]
    """By shard number, of every shard that is not archived to its end."""

    @property
    def is_first(self) -> bool:
        return not self.head.topic_id

    def before(self, number: int) -> ShardHead:
        """How far a shard had come; one that is not in the heads holds only what came after they were committed."""
        shards = self.head.shards or Shards()
        return shards.heads.get(number, ShardHead(until=shards.listed or shards.since))

    def is_late(self, position: Position, at: int) -> bool:
        """Whether records behind a position may have been deleted at a moment, before they were read."""
        until = self.before(position.shard.number).until
        return bool(until) and max(until, position.arrived) < at - self.stream.retention


def plan(head: Heads, stream: Stream, *, name: str, feed: str, declared: Kinesis) -> Plan:
    """Compare the archive's heads with the stream; refuses when it is another one or may have lost records."""
    if head.topic_id:
        refuse_another(stream.name, stream.id, archived=head.topic_id)
    _refuse_disorder(stream)
    _refuse_losses(head, stream, feed=feed)
    since = stream.at if declared.start == "LATEST" else 0
    shards = head.shards or Shards(since=since)
    return Plan(
        name,
        stream,
        Heads(head.topic_id, head.next, shards=shards),
        {
            number: Position(shard, head.of(number), shards.heads.get(number, ShardHead()).sequence, since=shards.since)
            for number, shard in sorted(stream.shards.items())
            if not shards.heads.get(number, ShardHead()).ended
        },
    )


def refuse_another(name: str, id_: str, *, archived: str) -> None:
    if id_ != archived:
        raise TopicError(
            f"stream {name}: it is {id_}, but the archive was copied from {archived}: the stream was deleted and made "
            f"again, or lies elsewhere. Going on would mix two streams; give the new one a feed of its own."
        )


def reached(planned: Plan, positions: Mapping[int, Position]) -> Heads:
    """The heads after an extract, given where each shard came to."""
    stream, shards = planned.stream, planned.head.shards or Shards()
    heads: dict[int, ShardHead] = {}
    for number in stream.shards:
        before = planned.before(number)
        position = positions.get(number)
        if position is None:
            heads[number] = before
        else:
            until = stream.at if position.is_done(stream.at) else max(before.until, position.arrived)
            heads[number] = ShardHead("" if position.ended else position.sequence, until, position.ended)
    following = {number: position.offset for number, position in positions.items() if position.offset}
    # A shard that AWS no longer lists was archived to its end, or this would have been refused; its offset stays.
    return Heads(
        stream.id,
        {**planned.head.next, **following},
        shards=Shards(heads, listed=stream.at, since=shards.since),
    )


def is_worth_noting(planned: Plan, after: Heads) -> bool:
    """Whether heads that come with no record are to be committed all the same.

    The first ones are: they hold where the feed begins. So are shards that came or ended. Besides, how long nothing was
    missing is noted now and then, well within the retention, or a quiet stream would look like one we did not read.
    """
    before, now = planned.head.shards or Shards(), after.shards or Shards()
    ended = {number for number, head in now.heads.items() if head.ended}
    known = {number for number, head in before.heads.items() if head.ended}
    if planned.is_first or now.heads.keys() != before.heads.keys() or ended != known:
        return True
    oldest = min((head.until for head in before.heads.values() if not head.ended), default=now.listed)
    return now.listed - min(oldest, before.listed) > planned.stream.retention // 8


@dataclass(frozen=True)
class Gap:
    """A time in which records may have come to a shard and gone before they were archived."""

    after: int
    before: int
    """Not only until now: some of it may go until somebody has accepted the loss and the next run has begun."""

    def __str__(self) -> str:
        return f"{_told(self.after)} to {_told(self.before)}"


def gaps(head: Heads, stream: Stream) -> dict[int, Gap]:
    """The shards of which records may be lost: nobody read them for longer than the stream keeps a record.

    Kinesis does not tell. It numbers records with holes, and a number that it has deleted is taken for its oldest one.
    So what counts is what can be proven: nothing is missing that arrived before `until`, and nothing is deleted that
    arrived within the retention. A shard that no run has begun to read is promised nothing yet.
    """
    if not head.topic_id:
        return {}  # Never archived: what was deleted before that was never promised.
    shards, kept = head.shards or Shards(), stream.at - stream.retention
    unread = {number: known.until for number, known in shards.heads.items() if not known.ended}
    new = dict.fromkeys(stream.shards.keys() - shards.heads.keys(), shards.listed)
    return {
        number: Gap(until, max(until, kept + stream.retention // 8))
        for number, until in sorted({**unread, **new}.items())
        if until and (until < kept or number not in stream.shards)
    }


def without_gaps(head: Heads, stream: Stream) -> Heads:
    """The heads with which a feed goes on without what its gaps may have held."""
    shards, found = head.shards or Shards(), gaps(head, stream)
    heads = {number: shards.heads.get(number, ShardHead(until=shards.listed)) for number in stream.shards}
    # A shard that has gone for good is no longer waited for; its children are read.
    moved = {number: replace(heads[number], until=gap.before) for number, gap in found.items() if number in heads}
    return replace(head, shards=replace(shards, heads={**heads, **moved}, listed=stream.at))


def _refuse_losses(head: Heads, stream: Stream, *, feed: str) -> None:
    found = gaps(head, stream)
    if found:
        told = "; ".join(f"shard {number} after {_told(gap.after)}" for number, gap in found.items())
        hours = stream.retention // HOUR_MS
        raise RecordsLost(
            f"stream {stream.name}: it keeps records for {hours} hours, and may have deleted some before they were "
            f"archived: {told}. How many, Kinesis does not tell. Nothing was committed, and the feed "
            f'stays stopped. Lengthen the retention, or go on without: headrace accept-loss {feed} --why "…"'
        )


def _refuse_disorder(stream: Stream) -> None:
    """Versions of a key rank by shard number: a child's must be above its parents'."""
    for shard in stream.shards.values():
        if any(parent >= shard.number for parent in shard.parents):
            raise TopicError(
                f"stream {stream.name}: shard {shard.number} is numbered below its parents {list(shard.parents)}, so "
                f"newer versions of a key would rank below older ones. AWS numbers children higher; tell us of this."
            )


def _told(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="seconds") if moment else "its start"
