"""Derivation: prove that a clean table holds what follows from its archive, by making it once more and comparing.

Spark decodes and merges every record that the table has merged, as a rebuild would, and writes to no table: the rows
lie in a file of the one who asks, and are held against those that readers get. Which records were rejected, quarantine
says: rules that have changed since have not changed the table either.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict
from pyiceberg.table import Table
from pyiceberg.types import IcebergType

from headrace import away, layout
from headrace.arrow import travel_type, travelling
from headrace.clean import BOTTOM, FROM_OFFSET, FROM_PARTITION, HIDDEN_ROW, RANK_PARTITION
from headrace.columns import field_types
from headrace.dropped import Span, dropped_of
from headrace.feed import Feed
from headrace.lake import Lake
from headrace.reckoning import Shape, Verdict, reckon
from headrace.share import Share, SharedColumn, rows
from headrace.stages.transform import TransformPlan

EXPECTED = "expected.arrow"
"""The file in a plan's folder that the job leaves."""

Run = Callable[[str], str]
"""Asks Spark: a plan in, figures out, both as JSON."""


class DerivationPlan(BaseModel):
    """What Spark is to make once more, and where it leaves the rows."""

    model_config = ConfigDict(frozen=True)

    made: TransformPlan
    verdicts_kept: bool
    """Whether quarantine still has every record that was rejected: then what it does not have was good."""
    dropped: dict[int, list[Span]] = {}
    """Records that the archive no longer has; rows that they made cannot be made once more."""
    folder: str


@dataclass(frozen=True)
class Derived:
    """How a clean table compares with what follows from its archive."""

    snapshot: int
    verdict: Verdict
    has_personal_key: bool = field(default=False)


@away.tells
def derive(feed: Feed, *, lake: Lake, made: TransformPlan, run: Run, folder: Path) -> Derived:
    """Make the table's rows once more, in `folder`, and hold those that readers get against them."""
    table, archive = lake.find(layout.clean_table(feed.name)), lake.find(layout.archive_table(feed.name))
    assert table is not None, "what has no clean table is not planned"
    assert archive is not None, "what has no archive is not planned"
    dropped = {number: list(spans) for number, spans in dropped_of(archive).spans.items()}
    plan = DerivationPlan(
        made=made,
        verdicts_kept=feed.declaration.retention.quarantine == "forever",
        dropped=dropped,
        folder=str(folder),
    )
    run(plan.model_dump_json())
    compared = shape(feed, made, dropped=dropped)
    verdict = reckon(
        compared,
        expected=lambda: expected(folder / EXPECTED, types(made), compared),
        found=lambda: found(table, made, compared, dropped=dropped),
    )
    return Derived(made.base, verdict, bool(feed.personal & set(feed.declaration.key)))


def types(made: TransformPlan) -> Mapping[str, IcebergType]:
    return field_types(made.schema_type, json.loads(made.reader))


def shape(feed: Feed, made: TransformPlan, *, dropped: Mapping[int, Sequence[Span]]) -> Shape:
    """What is compared: what readers see, and which keys are deleted.

    A patched row has parts of many records; where some were dropped, only its key can be told. Sums and partitions are
    told, so there are none of personal fields.
    """
    only_keys = bool(dropped) and feed.declaration.merge == "patch"
    named = {name: type_ for name, type_ in types(made).items() if name in made.key or not only_keys}
    fields = [pa.field(name, travel_type(type_)) for name, type_ in named.items()]
    public = named.keys() - feed.personal
    partition = feed.declaration.partition
    return Shape(
        pa.schema([*fields, pa.field(HIDDEN_ROW, pa.bool_())]),
        tuple(feed.declaration.key),
        tuple(name for name in feed.declaration.correctness.sum if name in public),
        partition if partition and partition.field in public else None,
    )


def expected(file: Path, types: Mapping[str, IcebergType], shape: Shape) -> Iterator[pa.RecordBatch]:
    """The rows that Spark has left."""
    with pa.OSFile(str(file), "rb") as source, pa.ipc.open_stream(source) as opened:
        for batch in opened:
            rows = pa.Table.from_batches([batch])
            told = {name: travelling(rows[name], types[name]) for name in shape.names if name in types}
            yield from pa.table({**told, HIDDEN_ROW: rows[HIDDEN_ROW]}).select(shape.names).to_batches()


def found(
    table: Table, made: TransformPlan, shape: Shape, *, dropped: Mapping[int, Sequence[Span]]
) -> Iterator[pa.RecordBatch]:
    """The rows that readers get, and of a deleted one its key."""
    named = {name: type_ for name, type_ in types(made).items() if name in shape.names}
    columns = tuple(SharedColumn(name, type_, required=False, path=(name,)) for name, type_ in named.items())
    whole = Share(made.feed, "clean", "", shape.key, columns, masks={})
    for batch in rows(table, whole, snapshot=made.base, where=told(dropped), mask_key=b""):
        hidden = batch.column(HIDDEN_ROW)
        bare = {
            name: batch.column(name)
            if name in (*shape.key, HIDDEN_ROW)
            else pc.if_else(hidden, pa.scalar(None, batch.column(name).type), batch.column(name))
            for name in shape.names
        }
        yield pa.record_batch(bare, schema=shape.schema)


def told(dropped: Mapping[int, Sequence[Span]]) -> str:
    """The rows that can be made once more from what the archive holds, as a filter."""
    if not dropped:
        # A hidden row of which no record is left would not be there if the table were made anew.
        return f"{HIDDEN_ROW} = false or {RANK_PARTITION} > {BOTTOM}"
    # What deleted a key may have taken its place in the order from a record that is gone.
    gone = (
        f"({FROM_PARTITION} = {number} and {FROM_OFFSET} >= {first} and {FROM_OFFSET} < {next_})"
        for number, spans in dropped.items()
        for first, next_ in spans
    )
    return f"{HIDDEN_ROW} = false and not ({' or '.join(gone)})"
