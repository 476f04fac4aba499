"""Extract: copy what is new in a topic, and in the one it drains, byte for byte; one commit adds files and heads."""

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from headrace import away, duration, layout, losses
from headrace.archive import Archive, archive_of
from headrace.errors import MovedError
from headrace.feed import Feed
from headrace.filing import Limits
from headrace.heads import Heads
from headrace.kafka import span, topic
from headrace.kafka.plan import Plan, confirm, plan, topics
from headrace.kafka.topic import Config
from headrace.lake import Lake, heads_of
from headrace.placing import mirrored_batch
from headrace.stages import cluster as clusters
from headrace.stages.cluster import Cluster

__all__ = ["Extracted", "Limits", "extract", "read"]

STARTS = 3
"""How often an extract begins while others commit before it; then the task's own retry may go on."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Extracted:
    """What one extract did."""

    records: int
    files: int
    heads: Heads


@away.tells
def extract(feed: Feed, *, lake: Lake, kafka: Config, limits: Limits, cluster: Cluster | None = None) -> Extracted:
    """Plan, read exactly the plan, write the files, commit them with the heads; from the new heads if others did."""
    for left in reversed(range(STARTS)):
        try:
            return _extract(feed, lake=lake, kafka=kafka, limits=limits, cluster=cluster)
        except MovedError as moved:
            if not left:
                raise
            log.info("feed %s: starting over from the new heads: %s", feed.name, moved)
        except KafkaException as error:
            # The broker deleted what was planned before it was read: the next plan tells what is gone.
            if not left or error.args[0].code() != KafkaError._AUTO_OFFSET_RESET:
                raise
    raise AssertionError("the last start returns or raises")


def _extract(feed: Feed, *, lake: Lake, kafka: Config, limits: Limits, cluster: Cluster | None) -> Extracted:
    table = archive_of(feed, lake)
    head = heads_of(table)
    losses.remind(table, feed=feed.name)
    found, drained = topics(feed, head, kafka=kafka)
    name = layout.plan(feed.name, nonce=uuid.uuid4().hex)
    planned = plan(head, found, name=name, ordered=feed.ordered, drained=drained, feed=feed.name)
    # The first of all commits even when it finds nothing: what the broker deletes from then on is a loss.
    if planned.heads == head:
        return Extracted(0, 0, head)
    drains = drained.name if drained else None
    below = {number: offset for number, offset in planned.heads.next.items() if number < 0}
    archive = Archive(lake, table, feed.topic, drains, below, duration.parse(feed.declaration.runs.time_limit))
    files = None
    if cluster and planned.records >= cluster.records:
        files = clusters.read(feed, archive, planned, limits=limits, cluster=cluster)
    if files is None:
        batches = read(kafka, planned, own=feed.topic, drains=drains)
        files = archive.file(batches, plan=planned.name, limits=limits)
    confirm(kafka, [each for each, spans in ((found, planned.spans), (drained, planned.drained)) if each and spans])
    archive.commit(files, head=planned.heads)
    _show_progress(feed, planned.heads, kafka=kafka, drains=drains)
    return Extracted(sum(file.record_count for file in files), len(files), planned.heads)


def read(kafka: Config, planned: Plan, *, own: str, drains: str | None) -> Iterator[pa.RecordBatch]:
    """The older topic to its end, then the own one; nothing of either counts before the one commit of both."""
    if drains is not None and planned.drained:
        yield from map(mirrored_batch, span.read(kafka, drains, spans=planned.drained))
    if planned.spans:
        yield from span.read(kafka, own, spans=planned.spans)


def _show_progress(feed: Feed, head: Heads, *, kafka: Config, drains: str | None) -> None:
    reached = {feed.topic: head.own.next, **({drains: head.drained.next} if drains else {})}
    try:
        topic.show_progress(kafka, reached, group=f"headrace.{feed.name}")
    except KafkaException as error:  # for watching only: the archive has its records
        log.warning("feed %s: lag tools were not told how far it is: %s", feed.name, error)
