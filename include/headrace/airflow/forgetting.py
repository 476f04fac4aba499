"""Forgetting as people ask for it: in the lake, in every warehouse, then proven, with the connections at hand."""

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from headrace import feed as feeds
from headrace import forgotten, layout
from headrace.airflow import connections, feed_file, planning
from headrace.airflow.spark import Spark
from headrace.airflow.upkeep import stagings
from headrace.columns import columns
from headrace.duration import spoken
from headrace.errors import HeadraceError
from headrace.feed import Feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.lake import Lake
    from headrace.stages.absence import Absence
    from headrace.stages.forget import Forgotten
    from headrace.stages.locating import Located
    from headrace.stages.transform import TransformPlan

log = logging.getLogger(__name__)

WINDOW = (0, 1)
"""A plan is asked for by a window of records; which one is of no account here."""


@dataclass(frozen=True)
class Emptied:
    """What became of a warehouse: rows deleted, and rows of the keys that are left; `fault` tells why that is open."""

    name: str
    deleted: int = 0
    left: int = 0
    fault: str = ""


@dataclass(frozen=True)
class Holder:
    """A topic that still holds some of the records, and until when."""

    topic: str
    records: int
    until: str


@dataclass(frozen=True)
class Report:
    """What was forgotten, and the proof."""

    done: "Forgotten"
    dry_run: bool
    topics: tuple[Holder, ...] = ()
    downstream: tuple[str, ...] = ()
    """Feeds whose jobs read this one."""
    warehouses: tuple[Emptied, ...] = ()
    left: "Located | None" = field(default=None, repr=False)
    """What a second look at every record and row found."""
    absence: "Absence | None" = None
    later: int = 0
    """Records that the topic has and the archive has not: later ones, which may live."""

    @property
    def rows_left(self) -> int:
        found = self.left
        return len(found.archive) + len(found.quarantine) + found.clean if found else 0

    @property
    def is_whole(self) -> bool:
        """Whether everything was done, and proven."""
        if self.dry_run:
            return True
        warehouses = any(each.fault or each.left for each in self.warehouses)
        return not (warehouses or self.rows_left or (self.absence and self.absence.found))


def forget(feed: Feed, keys: Sequence[str], *, by: str, dry_run: bool = False) -> Report | None:
    """Forget keys, as they are typed; None while nothing is archived."""
    from headrace.stages import absence, forget

    lake, shared = connections.lake(Settings()), feed_file.sharing(feed)
    octets = [column.name for column in columns(feed) if str(column.type).startswith(("binary", "fixed"))]
    parsed = forgotten.parsed(keys, key=feed.declaration.key, binary=octets)

    def plan() -> "TransformPlan | None":
        return planning.transform(feed, lake=lake, run=f"forget_{uuid.uuid4().hex[:12]}", window=WINDOW)

    def spark(planned: str) -> str:
        return Spark.of(feed, lake).run("forget", planned)

    staged = stagings()
    done = forget.forget(
        feed,
        parsed,
        lake=lake,
        plan=plan,
        spark=spark,
        signing=connections.signing_key(),
        by=by,
        stagings=staged,
        dry_run=dry_run,
    )
    if done is None:
        return None
    topics, downstream = tuple(_topics(feed, done)), tuple(_downstream(feed))
    if dry_run:
        return Report(done, dry_run, topics, downstream)
    warehouses = tuple(_emptied(shared, lake=lake, shown=done.located.shown))
    left = forget.look_again(feed, parsed, lake=lake, plan=plan, spark=spark, upto=done.heads)
    proof = absence.prove(feed, done.located.values, lake=lake, stagings=staged)
    return Report(done, dry_run, topics, downstream, warehouses, left, proof, _later(feed, done))


def _emptied(feed: Feed, *, lake: "Lake", shown: Sequence[Sequence[str]]) -> Iterator[Emptied]:
    """Every warehouse of the feed, brought to what is published now; one that is down is told, and left."""
    from headrace.stages import load

    for name in feed.declaration.warehouses:
        try:
            warehouse, mask_key = connections.warehouse(name), connections.mask_key()
            done = load.load(feed, lake=lake, warehouse=warehouse, mask_key=mask_key)
            warehouse.vacuum(feed.name)
            yield Emptied(name, done.counts.deleted, _left(feed, name, lake=lake, shown=shown))
        except HeadraceError as error:
            yield Emptied(name, fault=str(error))
    yield from _abandoned(feed)


def _left(feed: Feed, name: str, *, lake: "Lake", shown: Sequence[Sequence[str]]) -> int:
    """How many rows of the keys a warehouse has."""
    from headrace.share import keys, share_of

    share = share_of(feed, name, lake.catalog.load_table(layout.clean_table(feed.name)))
    with connections.warehouse(name).reading(feed.name) as session:
        session.look_for(share, iter([keys(share, shown, mask_key=connections.mask_key())]))
        return sum(batch.num_rows for batch in session.rows(share, looked_for=True))


def _abandoned(feed: Feed) -> Iterator[Emptied]:
    """Warehouses that have a table of the feed from a time when it went there."""
    from headrace.airflow import warehouses

    for each in warehouses.every():
        if each.name in feed.declaration.warehouses:
            continue
        if each.fault:
            yield Emptied(each.name, fault=f"whether it has a table {feed.name} of before is not known: {each.fault}")
        elif feed.name in {held.table for held in each.held}:
            told = (
                f"it has a table {feed.name} of before, which is loaded no more: drop it there, or name the warehouse"
            )
            yield Emptied(each.name, fault=f"{told} in the feed's file again.")


def _downstream(feed: Feed) -> Iterator[str]:
    found = (feeds.read_file(path).feed for path in feeds.files(Settings().schemas))
    for each in found:
        if each is not None and each.declaration.job and feed.name in each.declaration.job.inputs:
            yield each.name


def _topics(feed: Feed, done: "Forgotten") -> Iterator[Holder]:
    """The topics that the records came from, with how many of them each still has."""
    if feed.declaration.kinesis:
        yield _stream(feed, done)
        return
    from headrace.errors import TopicMissing
    from headrace.kafka import limits, topic
    from headrace.slice import kafka_number
    from headrace.stages.retained import until

    kafka, drains = connections.kafka(), feed.declaration.topic.drains
    for name, is_drained in ((feed.topic, False), *([(drains.topic, True)] if drains else [])):
        try:
            reach = topic.describe(kafka, name).partitions
            kept = limits.limits(kafka, name)
        except TopicMissing:
            continue
        places = (each for each in done.located.archive if (each.partition < 0) == is_drained)
        held = sum(
            (at := reach.get(kafka_number(each.partition))) is not None and each.offset >= at.start for each in places
        )
        yield Holder(name, held, until(kept, topic=name, now=datetime.now(UTC)))


def _stream(feed: Feed, done: "Forgotten") -> Holder:
    from headrace.kinesis import stream

    kept = timedelta(milliseconds=stream.describe(connections.kinesis(), feed.topic).retention)
    last = datetime.now(UTC) + kept
    return Holder(feed.topic, len(done.located.archive), f"{last:%Y-%m-%d %H:%M} UTC at the latest ({spoken(kept)})")


def _later(feed: Feed, done: "Forgotten") -> int:
    """How many records the topics have that the archive has not: the drained one's too."""
    from headrace.errors import TopicMissing
    from headrace.heads import mirrored
    from headrace.kafka import topic

    if feed.declaration.kinesis:
        return 0
    later, drains = 0, feed.declaration.topic.drains
    for name, is_drained in ((feed.topic, False), *([(drains.topic, True)] if drains else [])):
        try:
            found = topic.describe(connections.kafka(), name)
        except TopicMissing:
            continue
        heads = {number: done.heads.of(mirrored(number) if is_drained else number) for number in found.partitions}
        later += sum(max(0, reach.end - heads[number]) for number, reach in found.partitions.items())
    return later


def told(report: Report) -> dict[str, Any]:
    """The report for programs; no key and no value is in it."""
    from dataclasses import asdict

    done, left, proof = report.done, report.left, report.absence
    return {
        "feed": done.feed,
        "keys": done.keys,
        "dry_run": report.dry_run,
        "whole": report.is_whole,
        "undecoded": done.undecoded,
        "stores": [asdict(store) for store in done.stores],
        "warehouses": [asdict(each) for each in report.warehouses],
        "topics": [asdict(each) for each in report.topics],
        "downstream": list(report.downstream),
        "later": report.later,
        "proof": None
        if proof is None or left is None
        else {
            "archive": len(left.archive),
            "quarantine": len(left.quarantine),
            "clean": left.clean,
            **asdict(proof),
        },
    }
