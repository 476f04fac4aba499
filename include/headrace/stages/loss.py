"""A loss, accepted: the archive's heads go past what the broker deleted, in one commit that says who and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from headrace import away, heads, layout, losses
from headrace.errors import MovedError
from headrace.feed import Feed, refuse_stream
from headrace.heads import Heads, mirrored
from headrace.kafka import plan
from headrace.kafka.span import Span
from headrace.kafka.topic import Config
from headrace.kinesis.plan import Gap, gaps, refuse_another, without_gaps
from headrace.kinesis.stream import Stream, describe
from headrace.lake import Lake, heads_of, keep_time
from headrace.losses import Loss

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient


@dataclass(frozen=True)
class Lost:
    """What a feed's archive lacks and can no longer get."""

    lake: Lake
    table: Table
    heads: Heads
    spans: Mapping[int, Span]
    """By the archive's numbers, which are mirrored for a drained topic's."""
    stream: Stream | None = None
    gaps: Mapping[int, Gap] = field(default_factory=dict)
    """For a Kinesis stream, what may be lost by shard: a time, for it tells no number."""

    @property
    def places(self) -> Mapping[int, object]:
        """What somebody is asked to do without."""
        return {number: gap.after for number, gap in self.gaps.items()} or self.spans


@away.tells
def find(feed: Feed, *, lake: Lake, kafka: Config) -> Lost | None:
    """Compare the archive's heads with the topics, as an extract does; None when nothing is lost."""
    refuse_stream(feed, "accept-loss")
    table = lake.find(layout.archive_table(feed.name))
    if table is None:
        return None
    head = heads_of(table)
    if not head.topic_id:
        return None
    own, drained = plan.topics(feed, head, kafka=kafka)
    plan.refuse(head, own, ordered=feed.ordered, drained=drained)
    spans = plan.lost(head.own, own)
    if drained is not None:
        spans |= {mirrored(number): span for number, span in plan.lost(head.drained, drained).items()}
    return Lost(lake, table, head, spans) if spans else None


@away.tells
def find_in_stream(feed: Feed, *, lake: Lake, kinesis: "KinesisClient") -> Lost | None:
    """The same for a feed of a Kinesis stream."""
    table = lake.find(layout.archive_table(feed.name))
    head = heads_of(table) if table is not None else Heads()
    if table is None or not head.topic_id:
        return None
    stream = describe(kinesis, feed.topic)
    refuse_another(stream.name, stream.id, archived=head.topic_id)
    found = gaps(head, stream)
    return Lost(lake, table, head, {}, stream, found) if found else None


@away.tells
def known(feed: Feed, *, lake: Lake) -> tuple[Loss, ...]:
    """The losses of a feed that were accepted, the oldest first."""
    table = lake.find(layout.archive_table(feed.name))
    return losses.losses_of(table) if table is not None else ()


def accept(lost: Lost, *, at: str, by: str, why: str) -> tuple[Loss, ...]:
    """Move the heads past the lost spans and record it, on top of the very snapshot that the loss was seen from."""
    accepted = tuple(Loss(number, span.first, span.next, at, by, why) for number, span in sorted(lost.spans.items()))
    beyond = {number: span.next for number, span in lost.spans.items()}
    moved = replace(lost.heads, next={**lost.heads.next, **beyond})
    if lost.stream is not None:
        here = lost.heads.of
        accepted = tuple(Loss(each, here(each), here(each), at, by, why, str(gap)) for each, gap in lost.gaps.items())
        moved = without_gaps(lost.heads, lost.stream)
    summary = {heads.PROPERTY: moved.to_json(), losses.SNAPSHOT: losses.to_json(accepted)}
    every = losses.to_json([*losses.losses_of(lost.table), *accepted])
    try:
        with away.services(lake=lost.lake), lost.table.transaction() as transaction:
            transaction.set_properties({losses.PROPERTY: every})
            with transaction.update_snapshot(snapshot_properties=summary).fast_append():
                pass  # No file: the snapshot is there for its summary.
            keep_time(transaction)
    except CommitFailedException as error:
        name = ".".join(lost.table.name())
        raise MovedError(f"{name}: it moved on meanwhile, and no loss was accepted. Look again.") from error
    return accepted


def origin(feed: Feed, number: int) -> tuple[str, int]:
    """The topic and Kafka's own partition behind a number of the archive."""
    if number >= 0:
        return feed.topic, number
    drains = feed.declaration.topic.drains
    return drains.topic if drains else "the drained topic", mirrored(number)
