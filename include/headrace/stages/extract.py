"""Extract: copy what is new in a topic, and in the one it drains, byte for byte; one commit adds files and heads.

However much has piled up, a run makes headway. In the task it reads for at most half of the time that is left to it, by
Spark so many records at once, one commit after another; what was read before the broker stopped giving is committed
too. The heads say how far it came, and the next run goes on there.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from headrace import away, duration, layout, losses
from headrace.archive import Archive, archive_of
from headrace.errors import MovedError, Overtaken, TopicSilent
from headrace.feed import Feed
from headrace.filing import Limits
from headrace.heads import Heads
from headrace.kafka import span, topic
from headrace.kafka.plan import Plan, confirm, plan, topics
from headrace.kafka.span import IsOver, never
from headrace.kafka.topic import Config, Topic
from headrace.lake import Lake, heads_of
from headrace.placing import mirrored_batch
from headrace.stages import cluster as clusters
from headrace.stages.cluster import Cluster

__all__ = ["Extracted", "Limits", "PlanReading", "extract"]

STARTS = 3
"""How often an extract begins while others commit before it; then the task's own retry may go on."""
SPARK_RECORDS = 20_000_000
"""The most that Spark reads for one commit: a job that is ended by the run's time limit leaves nothing."""

Clock = Callable[[], float]
"""Seconds that only ever grow; tests let it run ahead."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Extracted:
    """What one extract did."""

    records: int
    files: int
    heads: Heads


@away.tells
def extract(
    feed: Feed,
    *,
    lake: Lake,
    kafka: Config,
    limits: Limits,
    cluster: Cluster | None = None,
    clock: Clock = time.monotonic,
) -> Extracted:
    """Plan, read exactly the plan, write the files, commit them with the heads; from the new heads if others did."""
    time_limit = duration.parse(feed.declaration.runs.time_limit).total_seconds()
    until, left, done = clock() + time_limit, STARTS, Extracted(0, 0, Heads())
    while True:
        try:
            step, goes_on = _extract(
                feed, lake=lake, kafka=kafka, limits=limits, cluster=cluster, half=lambda: _half(clock, until=until)
            )
        except (MovedError, Overtaken) as moved:
            left -= 1
            if not left:
                raise
            log.info("feed %s: starting over from the new heads: %s", feed.name, moved)
            continue
        done = Extracted(done.records + step.records, done.files + step.files, step.heads)
        if not goes_on or until - clock() < time_limit / 2:
            return done


def _extract(
    feed: Feed, *, lake: Lake, kafka: Config, limits: Limits, cluster: Cluster | None, half: Callable[[], IsOver]
) -> tuple[Extracted, bool]:
    """One plan, and whether the next should follow at once."""
    table = archive_of(feed, lake)
    head = heads_of(table)
    losses.remind(table, feed=feed.name)
    found, drained = topics(feed, head, kafka=kafka)
    name = layout.plan(feed.name, nonce=uuid.uuid4().hex)
    planned = plan(head, found, name=name, ordered=feed.ordered, drained=drained, feed=feed.name)
    drains = drained.name if drained else None
    # The first of all commits even when it finds nothing: what the broker deletes from then on is a loss.
    if planned.heads == head:
        # An earlier run may have died before it told, and Kafka forgets a group that is not told anything for a week.
        _show_progress(feed, head, kafka=kafka, drains=drains)
        return Extracted(0, 0, head), False
    large = cluster is not None and planned.records >= cluster.records
    step = planned.limited(SPARK_RECORDS) if large else planned
    below = {number: offset for number, offset in step.heads.next.items() if number < 0}
    archive = Archive(lake, table, feed.topic, drains, below, duration.parse(feed.declaration.runs.time_limit))
    files = clusters.read(feed, archive, step, limits=limits, cluster=cluster) if cluster and large else None
    reading = PlanReading(kafka, step, feed.topic, drains, half())
    if files is None:
        files = archive.file(reading, plan=step.name, limits=limits)
        step = reading.plan
        if not files and (reading.ended_by or step.heads == head):
            raise reading.ended_by or TopicSilent(
                f"topic {feed.topic}: it gave nothing in half of the time that a run may take, and nothing was "
                f"committed. Is the broker up? If it is slow, raise runs.time_limit."
            )
    _tell_rest(feed, step, found, drained)
    confirm(kafka, [each for each, spans in ((found, step.spans), (drained, step.drained)) if each and spans])
    archive.commit(files, head=step.heads)
    _show_progress(feed, step.heads, kafka=kafka, drains=drains)
    if isinstance(reading.ended_by, TopicSilent):
        raise reading.ended_by
    return Extracted(sum(file.record_count for file in files), len(files), step.heads), step.heads != planned.heads


def _half(clock: Clock, *, until: float) -> IsOver:
    """Tells when half of the time that is left now is over: the other half is for what comes after reading."""
    half = clock() + (until - clock()) / 2
    return lambda: clock() > half


@dataclass
class PlanReading:
    """A plan in the task: the older topic to its end, then the own one, until time is up; `plan` is what was read.

    Nothing of either counts before the one commit of both.
    """

    kafka: Config
    plan: Plan
    own: str
    drains: str | None
    is_over: IsOver = never
    ended_by: Overtaken | TopicSilent | None = None
    """Why the broker gave no more; what it gave before is good."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        planned = self.plan
        old = span.Reading(self.kafka, self.drains or "", spans=planned.drained, is_over=self.is_over)
        new = span.Reading(self.kafka, self.own, spans=planned.spans, is_over=self.is_over)
        try:
            if planned.drained:
                yield from map(mirrored_batch, old)
            # What the own topic's records follow in the older one is noted with them: that must be archived too.
            if planned.spans and not old.is_short:
                yield from new
        except TopicSilent as silent:
            self.ended_by = silent
        except KafkaException as error:
            if error.args[0].code() != KafkaError._AUTO_OFFSET_RESET:
                raise
            self.ended_by = Overtaken(
                f"topic {self.own}: the broker deleted what was planned before it was read. Lengthen its retention."
            )
        self.plan = planned.reaching(new.reached, old.reached)


def _tell_rest(feed: Feed, planned: Plan, own: Topic, drained: Topic | None) -> None:
    left = _beyond(planned.heads.own, own) + (_beyond(planned.heads.drained, drained) if drained else 0)
    if left:
        log.info("feed %s: up to %d records are left for the next run", feed.name, left)


def _beyond(head: Heads, found: Topic) -> int:
    return sum(reach.end - head.of(number) for number, reach in found.partitions.items())


def _show_progress(feed: Feed, head: Heads, *, kafka: Config, drains: str | None) -> None:
    reached = {feed.topic: head.own.next, **({drains: head.drained.next} if drains else {})}
    try:
        topic.show_progress(kafka, reached, group=f"headrace.{feed.name}")
    except KafkaException as error:  # for watching only: the archive has its records
        log.warning("feed %s: lag tools were not told how far it is: %s", feed.name, error)
