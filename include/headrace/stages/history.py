"""Import: history staged once, published in transactions, counted in the end; run again, it goes on where it stopped.

What happens when it dies: before the manifest is written, the next run reads the source anew; afterwards it goes on
with what was staged, right after the last transaction that was committed. Of two at once, whoever stages first gives
both their records, and whoever starts to publish last shuts the other out.
"""

import hashlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa

from headrace import away, layout, provenance
from headrace.errors import HistoryError, ServiceAway, ServiceRefused
from headrace.feed import Feed, refuse_stream
from headrace.heads import Heads
from headrace.history import counting, preparation
from headrace.history.preparation import Order, Preview, Progress
from headrace.history.source import Source
from headrace.history.staging import BEGUN, REJECTED, Begun, Manifest, Report, Staging, dumped, generations
from headrace.kafka import limits, topic
from headrace.kafka.delivery import LARGEST_BATCH, Delivery, Outgoing, batches
from headrace.kafka.limits import Limits
from headrace.kafka.pace import Rate
from headrace.kafka.topic import Config
from headrace.lake import Lake, heads_of
from headrace.provenance import SigningKey

log = logging.getLogger(__name__)

PARTITIONER = "murmur2_random"
"""As Java's producers choose a partition by the key; librdkafka's own default, consistent_random, chooses another."""


@dataclass(frozen=True)
class Import:
    """What is to be imported, and how."""

    feed: Feed
    source: Source
    schema_id: int
    order: Order = field(default_factory=Order)
    rate: Rate = field(default_factory=Rate)
    partitioner: str = PARTITIONER
    again: bool = False
    """Import once more what was imported before."""
    wish: str | None = None
    """Whose wish that is, for one who may try more than once: what was done for the same wish is not done again."""

    @property
    def name(self) -> str:
        """The same for the same feed, source and order: so the same command resumes."""
        told = {
            "feed": self.feed.name,
            "topic": self.feed.topic,
            "source": self.source.told,
            "renames": dict(self.order.renames),
            "timestamp": self.order.timestamp,
        }
        return hashlib.sha256(dumped(told).encode()).hexdigest()[:12]


@away.tells_resuming
def import_history(
    asked: Import, *, lake: Lake, kafka: Config, signing: SigningKey, progress: Progress = lambda *_: None
) -> Report:
    """Bring the source's rows into the feed's topic, each exactly once."""
    feed = asked.feed
    refuse_stream(feed, "import")
    staging = _staging(asked, lake)
    if (report := staging.report()) is not None:
        _tidy(staging)  # whoever wrote it may have died before the chunks were gone
        return report
    described = topic.describe(kafka, feed.topic)
    found = limits.limits(kafka, described.name)
    judge = partial(_require_lasting, feed, found=found, partitions=len(described.partitions))
    manifest = staging.manifest() or preparation.prepare(
        feed,
        asked.source,
        order=asked.order,
        staging=staging,
        schema_id=asked.schema_id,
        largest=found.largest_message,
        judge=judge,
        progress=progress,
    )
    judge(manifest.oldest, manifest.newest, manifest.bytes)
    staging.tidy(keep=[*manifest.names, f"{manifest.attempt}/{BEGUN}"])
    begun = _publish(
        asked,
        manifest,
        staging=staging,
        kafka=kafka,
        largest=found.largest_message,
        signing=signing,
        progress=progress,
    )
    proof = _prove(
        asked, manifest, begun, staging=staging, kafka=kafka, compacted=found.is_compacted, progress=progress
    )
    report = Report(
        import_id=staging.import_id,
        feed=feed.name,
        topic=feed.topic,
        source=manifest.source,
        total=manifest.total,
        published=manifest.rows,
        rejected=manifest.rejected,
        rejected_at=f"{staging.location}/{manifest.attempt}/{REJECTED}" if manifest.rejected else None,
        proof=proof,
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        wish=asked.wish,
    )
    report = staging.finish(report)
    _tidy(staging)
    return report


@away.tells
def discard(asked: Import, *, lake: Lake, kafka: Config) -> int:
    """Give up an import that has not ended: what is staged goes, what was published stays; how many objects went."""
    staging = _staging(asked, lake)
    if staging.report() is not None:
        return 0
    if (manifest := staging.manifest()) is not None:
        # The topic may be gone by now: nothing is sent, so how much it takes does not matter.
        with _delivery(asked, manifest, staging=staging, kafka=kafka, largest=LARGEST_BATCH):
            pass  # a run that still publishes is shut out
    return staging.remove()


@away.tells
def preview(asked: Import, *, kafka: Config) -> Preview:
    """What an import would do; nothing is written."""
    refuse_stream(asked.feed, "import")
    found = limits.limits(kafka, topic.describe(kafka, asked.feed.topic).name)
    return preparation.preview(
        asked.feed, asked.source, order=asked.order, schema_id=asked.schema_id, largest=found.largest_message
    )


def _staging(asked: Import, lake: Lake) -> Staging:
    """The folder of the import that this command means: the last one, or the next if it is to be done again.

    A wish is fulfilled once: whoever tries again after the end is told of that end.
    """
    numbers = generations(lake, asked.feed.name, asked.name)
    last = Staging(lake, asked.feed.name, f"{asked.name}-{numbers[-1] if numbers else 1}")
    done = last.report() if numbers and asked.again else None
    if done is not None and (asked.wish is None or done.wish != asked.wish):
        return Staging(lake, asked.feed.name, f"{asked.name}-{numbers[-1] + 1}")
    return last


def _tidy(staging: Staging) -> None:
    """Leave of an import that is done only what tells of it; it is done, whether that succeeds or not."""
    try:
        with away.services(lake=staging.lake, kept=away.RESUMES):
            manifest = staging.manifest()
            staging.tidy(keep=[f"{manifest.attempt}/{name}" for name in (REJECTED, BEGUN)] if manifest else [])
    except (HistoryError, ServiceAway, ServiceRefused) as error:
        log.warning(
            "feed %s: import %s is done, but what was staged is still there: %s The same command tidies up.",
            *(staging.feed, staging.import_id, error),
        )


def _require_lasting(
    feed: Feed, oldest: int | None, newest: int | None, bytes_: int, *, found: Limits, partitions: int
) -> None:
    """Refuse what the broker would refuse, or would delete before it is archived, by its size or its timestamps."""
    if found.retention_bytes is not None and bytes_ / partitions > found.retention_bytes:
        raise HistoryError(
            f"topic {feed.topic}: it keeps {found.retention_bytes:,} bytes in each of its {partitions} partitions, but "
            f"the rows take {bytes_:,}, so the broker might delete some before they are archived. Raise the topic's "
            f"retention.bytes for the time of the import, or import in parts."
        )
    if oldest is None or newest is None or not found.keeps_timestamps:
        return
    now = int(time.time() * 1000)
    behind, ahead = now - oldest, newest - now
    told = f"topic {feed.topic}: the oldest row is of {_day(oldest)}, the newest of {_day(newest)}"
    fix = "or leave --timestamp out: records are then of the time of publishing."
    if found.retention is not None and behind > found.retention:
        days = found.retention / 86_400_000
        raise HistoryError(
            f"{told}, but the broker deletes what is older than {days:.3g} days by its timestamp, maybe before it is "
            f"archived. Raise the topic's retention for the time of the import, {fix}"
        )
    if found.before is not None and behind > found.before:
        raise HistoryError(f"{told}, which the broker refuses. Raise message.timestamp.before.max.ms, {fix}")
    if found.after is not None and ahead > found.after:
        raise HistoryError(f"{told}, which the broker refuses. Raise message.timestamp.after.max.ms, {fix}")


def _day(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).date().isoformat()


def _publish(
    asked: Import,
    manifest: Manifest,
    *,
    staging: Staging,
    kafka: Config,
    largest: int,
    signing: SigningKey,
    progress: Progress,
) -> Begun:
    """Publish what is staged and not yet published."""
    with _delivery(asked, manifest, staging=staging, kafka=kafka, largest=largest) as delivery:
        found = topic.describe(kafka, asked.feed.topic)
        noted, reached = staging.begun(manifest.attempt), delivery.reached()
        if reached and not noted:
            raise HistoryError(
                f"import {staging.import_id}: it was published up to row {reached:,}, but given up meanwhile with "
                f"--discard. Do that once more, then import it anew."
            )
        begun = noted or staging.begin(manifest.attempt, Begun(topic_id=found.id, ends=counting.ends(kafka, found)))
        counting.require_same_topic(found, begun, import_id=staging.import_id)
        if noted and not reached:
            reached = _remembered(asked, begun, staging=staging, kafka=kafka)
        messages = _messages(staging, manifest, reached=reached, signing=signing)
        for batch, number in batches(messages, asked.rate):
            delivery.send(batch, reached=number)
            progress("publish", number, manifest.rows)
    return begun


def _delivery(asked: Import, manifest: Manifest, *, staging: Staging, kafka: Config, largest: int) -> Delivery:
    """The delivery of what was staged; what is staged anew is another one, which has reached nothing yet."""
    name = f"headrace.import.{asked.feed.name}.{staging.import_id}.{manifest.attempt}"
    return Delivery(
        kafka, name, topic=asked.feed.topic, largest=largest, rate=asked.rate, partitioner=asked.partitioner
    )


def _remembered(asked: Import, begun: Begun, *, staging: Staging, kafka: Config) -> int:
    """How many records an earlier run has published, asked of the topic: Kafka forgets an idle delivery in a week."""
    held = counting.count(kafka, asked.feed.topic, begun=begun, import_id=staging.import_id, progress=lambda _: None)
    if held is None:
        raise HistoryError(
            f"import {staging.import_id}: it was begun, but neither the broker nor the topic tells any more how far it "
            f"came. Give it up with --discard and begin anew: rows that come twice change no clean row."
        )
    return held


def _messages(
    staging: Staging, manifest: Manifest, *, reached: int, signing: SigningKey
) -> Iterator[tuple[Outgoing, int]]:
    """The staged records from one on, each with the number that it reaches."""
    number = 0
    for chunk in manifest.chunks:
        if number + chunk.rows > reached:
            table = staging.read(manifest.attempt, chunk.name).slice(max(reached - number, 0))
            first = number + chunk.rows - table.num_rows + 1
            yield from zip(
                _outgoing(table, staging.import_id, signing), range(first, first + table.num_rows), strict=True
            )
        number += chunk.rows


def _outgoing(table: pa.Table, import_id: str, signing: SigningKey) -> Iterator[Outgoing]:
    columns = (table.column(name).to_pylist() for name in ("key", "value", "timestamp"))
    for key, value, timestamp in zip(*columns, strict=True):
        header = provenance.imported(import_id, key=key, value=value, signing=signing)
        yield Outgoing(key, value, (header,), timestamp)


def _prove(
    asked: Import,
    manifest: Manifest,
    begun: Begun,
    *,
    staging: Staging,
    kafka: Config,
    compacted: bool,
    progress: Progress,
) -> str:
    """Count the import's records in the topic; where it no longer holds them all, what was acknowledged counts."""
    held = None
    if not compacted:
        held = counting.count(
            kafka,
            asked.feed.topic,
            begun=begun,
            import_id=staging.import_id,
            progress=lambda done: progress("count", done, manifest.rows),
        )
    if held is None:
        found = topic.describe(kafka, asked.feed.topic)
        counting.require_archived(found, begun, _archived(asked.feed, staging.lake), import_id=staging.import_id)
        return "acknowledged"
    if held != manifest.rows or manifest.rows + sum(manifest.rejected.values()) != manifest.total:
        raise HistoryError(
            f"import {staging.import_id} of feed {asked.feed.name}: of {manifest.total:,} rows "
            f"{sum(manifest.rejected.values()):,} were rejected and {held:,} are in the topic, which does not match."
        )
    return "topic"


def _archived(feed: Feed, lake: Lake) -> Heads:
    """How far the feed's archive has come."""
    table = lake.find(layout.archive_table(feed.name))
    return heads_of(table) if table is not None else Heads()
