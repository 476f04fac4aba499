"""Extract from a Kinesis stream: copy what is new in its shards, byte for byte; one commit adds files and heads.

A shard tells its end only when it is read to it, so the plan says from where, and what was reached stands in the heads
that are committed with the records. The rest is as with a topic: offsets are dense, the commit requires the very
snapshot that was planned from, and what is not committed was never there.
"""

import logging
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from headrace import away, duration, layout, losses
from headrace.archive import Archive, archive_of
from headrace.errors import MovedError
from headrace.feed import Feed
from headrace.filing import Limits
from headrace.kinesis.pages import Bounds, Pages
from headrace.kinesis.plan import is_worth_noting, plan, reached, refuse_another
from headrace.kinesis.stream import describe, identity
from headrace.lake import Lake, heads_of
from headrace.stages.extract import STARTS, Extracted

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

AGGREGATED = b"\xf3\x89\x9a\xc2"
"""How a record begins into which the Kinesis Producer Library has packed several."""

log = logging.getLogger(__name__)


@away.tells
def extract(feed: Feed, *, lake: Lake, kinesis: "KinesisClient", limits: Limits, records: int) -> Extracted:
    """Plan, read on, write the files, commit them with the heads; from the new heads if others were quicker.

    About `records` are read at most, for at most half of the time that a run may take: the next one goes on.
    """
    for left in reversed(range(STARTS)):
        try:
            return _extract(feed, lake=lake, kinesis=kinesis, limits=limits, records=records)
        except MovedError as moved:
            if not left:
                raise
            log.info("feed %s: starting over from the new heads: %s", feed.name, moved)
    raise AssertionError("the last start returns or raises")


def _extract(feed: Feed, *, lake: Lake, kinesis: "KinesisClient", limits: Limits, records: int) -> Extracted:
    declared, time_limit = feed.declaration.kinesis, duration.parse(feed.declaration.runs.time_limit)
    assert declared is not None, "the feed of a topic is extracted from Kafka"
    table = archive_of(feed, lake)
    losses.remind(table, feed=feed.name)
    found, name = describe(kinesis, feed.topic), layout.plan(feed.name, nonce=uuid.uuid4().hex)
    planned = plan(heads_of(table), found, name=name, feed=feed.name, declared=declared)
    archive = Archive(lake, table, feed.topic, time_limit=time_limit)
    pages = Pages(kinesis, planned, Bounds(records, time_limit.total_seconds() / 2))
    files = archive.file(_batches(pages, feed=feed.name), plan=planned.name, limits=limits)
    if files:
        # It may have been made again while it was read.
        refuse_another(found.name, identity(kinesis, found.name), archived=found.id)
    after = reached(planned, pages.positions)
    if files or is_worth_noting(planned, after):
        archive.commit(files, head=after)
    if pages.is_short:
        log.info("feed %s: the stream has more than the %d records of this run; the next goes on", feed.name, records)
    return Extracted(pages.records, len(files), after)


def _batches(pages: Pages, *, feed: str) -> Iterator[pa.RecordBatch]:
    aggregated = 0
    for page in pages:
        aggregated += pc.sum(pc.starts_with(page.batch["value"], pattern=AGGREGATED)).as_py() or 0
        yield page.batch
    if aggregated:
        log.warning(
            "feed %s: %d records are aggregates of the Kinesis Producer Library. They are archived as they are, and "
            "transform quarantines them: switch aggregation off (AggregationEnabled=false).",
            feed,
            aggregated,
        )
