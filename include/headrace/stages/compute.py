"""Compute: a team's own job makes a feed's records of other feeds' clean rows, and publishes what changed.

The records go to the feed's topic, as any producer's would, and everything else follows. They are held against what
the feed's clean table has, so that only differences are published; keys that the job no longer gives are deleted by
tombstones. What was computed from is noted in the transaction that publishes the last of it: run again with nothing
changed, it does nothing; killed anywhere, it computes again. Whoever starts later shuts out the one before.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pydantic import BaseModel, ConfigDict
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from headrace import away, clean, effort, layout, personal, scratch
from headrace.columns import field_types
from headrace.errors import JobError
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.history import records
from headrace.kafka import limits, span, topic
from headrace.kafka.delivery import Delivery, Outgoing, batches
from headrace.kafka.span import Span
from headrace.kafka.topic import Config
from headrace.lake import Lake, heads_of
from headrace.stages.transform import spark_name, spark_type

LANE = "computed"
"""Where a delivery notes what was computed from; zero while it is not whole."""
CHANGED, GONE, KEYS = "changed.arrow", "gone.arrow", "keys.arrow"
"""What a job leaves in its plan's folder: rows to publish, keys that are gone and, where they are asked for, all."""


class InputPlan(BaseModel):
    """One feed's clean rows, at one snapshot."""

    model_config = ConfigDict(frozen=True)

    table: str
    snapshot: int
    columns: list[str]
    """Those that the job may see."""


class ComputePlan(BaseModel):
    """One computation: which function, of what, and what its rows are held against."""

    model_config = ConfigDict(frozen=True)

    feed: str
    file: str
    inputs: dict[str, InputPlan]
    columns: dict[str, str]
    key: list[str]
    clean: str | None = None
    """The feed's own clean table, where there is one."""
    base: int | None = None
    small: bool = False
    """Whether so little is read that its queries are not worth compiling."""
    whole: bool = False
    """Whether all rows are wanted: some that were published before are not merged yet."""
    folder: str


@dataclass(frozen=True)
class Computed:
    """What was published."""

    rows: int
    changed: int
    gone: int


Run = Callable[[str], str]
"""Asks Spark: a plan in, figures out, both as JSON."""


@away.tells
def compute(feed: Feed, *, lake: Lake, kafka: Config, jobs: Path, schema_id: int, run: Run) -> Computed | None:
    """Run the feed's job and publish what changed; None when nothing it reads has changed since."""
    largest = limits.limits(kafka, feed.topic).largest_message
    with Delivery(kafka, f"headrace.compute.{feed.name}", topic=feed.topic, largest=largest) as delivery:
        # From here on nobody else's computation comes in between: what is looked at now is no older than what the one
        # before looked at, and what the topic holds now is all there is.
        inputs, file = _inputs(feed, lake), _file(feed, jobs)
        if inputs is None:
            return None
        mark = _mark(inputs, text=file.read_bytes(), schema_id=schema_id)
        if delivery.reached(LANE) == mark:
            return None
        pending = _pending(feed, lake=lake, kafka=kafka)
        with scratch.folder() as folder:
            planned = _plan(feed, lake=lake, inputs=inputs, file=file, whole=bool(pending), folder=str(folder))
            figures = json.loads(run(planned.model_dump_json()))
            published = _published(feed, folder, schema_id=schema_id, largest=largest, pending=pending)
            for batch, _ in batches((each, 0) for each in published):
                delivery.send(batch, reached=0, lane=LANE)
        delivery.send((), reached=mark, lane=LANE)
    return Computed(**figures)


def _inputs(feed: Feed, lake: Lake) -> dict[str, InputPlan] | None:
    """Every input as it is published now; None while one of them has nothing yet."""
    assert feed.declaration.job is not None, "only such feeds are computed"
    found = {}
    for name, declared in feed.declaration.job.inputs.items():
        table = lake.find(layout.clean_table(name))
        snapshot = table.current_snapshot() if table else None
        if table is None or snapshot is None:
            return None
        columns = [field.name for field in clean.shown(feed, table.schema()).fields]
        kinds = personal.kinds(columns, feed=None, noted=table.properties.get(personal.PROPERTY))
        seen = [column for column in columns if kinds[column] is None or column in declared.keep]
        place = spark_name(lake.name, layout.clean_table(name))
        found[name] = InputPlan(table=place, snapshot=snapshot.snapshot_id, columns=seen)
    return found


def _file(feed: Feed, jobs: Path) -> Path:
    assert feed.declaration.job is not None, "only such feeds are computed"
    file = jobs / feed.declaration.job.file
    if not file.is_file():
        raise JobError(
            f"feed {feed.name}: its job's file {feed.declaration.job.file} is not in the folder of jobs "
            f"(HEADRACE_JOBS). Put it there, or mend {feed.attribute}.job.file in {feed.file}."
        )
    return file


def _mark(inputs: Mapping[str, InputPlan], *, text: bytes, schema_id: int) -> int:
    """A number for everything that decides what comes out; never zero."""
    read = {name: [each.snapshot, each.columns] for name, each in sorted(inputs.items())}
    told = json.dumps([read, hashlib.sha256(text).hexdigest(), schema_id]).encode()
    return 1 + int.from_bytes(hashlib.sha256(told).digest()[:7], "big")


def _pending(feed: Feed, *, lake: Lake, kafka: Config) -> set[bytes]:
    """The keys of records that the topic has and the clean table has not yet."""
    table = lake.find(layout.clean_table(feed.name))
    reached = heads_of(table) if table else Heads()
    spans = {
        number: Span(max(reach.start, reached.of(number)), reach.end)
        for number, reach in topic.describe(kafka, feed.topic).partitions.items()
        if reach.end > max(reach.start, reached.of(number))
    }
    found = (batch.column("key").to_pylist() for batch in span.read(kafka, feed.topic, spans=spans)) if spans else ()
    return {key for keys in found for key in keys if key is not None}


def _plan(
    feed: Feed, *, lake: Lake, inputs: Mapping[str, InputPlan], file: Path, whole: bool, folder: str
) -> ComputePlan:
    table = lake.find(layout.clean_table(feed.name))
    base = table.current_snapshot() if table and _has_all(table, feed) else None
    types = field_types(feed.schema_type, feed.schema)
    return ComputePlan(
        feed=feed.name,
        file=str(file.resolve()),
        inputs=dict(inputs),
        columns={name: spark_type(type_) for name, type_ in types.items()},
        key=feed.declaration.key,
        clean=spark_name(lake.name, layout.clean_table(feed.name)) if base else None,
        base=base.snapshot_id if base else None,
        small=effort.is_small(_snapshots(lake, feed)),
        whole=whole,
        folder=folder,
    )


def _snapshots(lake: Lake, feed: Feed) -> list[Snapshot | None]:
    """What the inputs hold, and the feed itself."""
    assert feed.declaration.job is not None, "only such feeds are computed"
    tables = (lake.find(layout.clean_table(name)) for name in (*feed.declaration.job.inputs, feed.name))
    return [table.current_snapshot() if table else None for table in tables]


def _has_all(table: Table, feed: Feed) -> bool:
    """Whether the table has every field already; a new version's are added by the run that merges them."""
    return {field.name for field in feed.fields} <= {field.name for field in table.schema().fields}


def _published(feed: Feed, folder: Path, *, schema_id: int, largest: int, pending: set[bytes]) -> Iterator[Outgoing]:
    """The records: rows that are new or other than before, then tombstones."""
    for rows in _read(folder / CHANGED):
        encoded = records.encoded(feed, rows, schema_id=schema_id, largest=largest)
        for key, value in zip(encoded["key"].to_pylist(), encoded["value"].to_pylist(), strict=True):
            yield Outgoing(key, value)
    gone = {key for rows in _read(folder / GONE) for key in records.keys(feed, rows)}
    if pending:
        gone |= pending - {key for rows in _read(folder / KEYS) for key in records.keys(feed, rows)}
    yield from (Outgoing(key, None) for key in sorted(gone))


def _read(file: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as opened:
        yield from (opened.get_batch(number) for number in range(opened.num_record_batches))
