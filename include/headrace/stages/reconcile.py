"""Reconcile: prove that a warehouse holds exactly the clean table's rows: their count, their sums, every row's hash."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import duckdb
import pyarrow as pa
from psycopg import sql

from headrace import away, layout
from headrace.errors import ReconcileError
from headrace.feed import Feed
from headrace.lake import Lake
from headrace.masks import MaskKey
from headrace.share import VISIBLE, Share, rows, share
from headrace.warehouses.postgres import PostgresWarehouse

LISTED = 20
SIDES = (("clean", "warehouse"), ("warehouse", "clean"))
CHECKSUM = sql.SQL("coalesce(sum(hash({})::hugeint), 0)")


@dataclass(frozen=True)
class Figures:
    """What is compared of a store: three depths, each finer than the one before."""

    count: int
    sums: Mapping[str, str | None]
    checksum: int


@dataclass(frozen=True)
class Reconciled:
    """A warehouse that agrees with the clean table at a snapshot."""

    snapshot: int | None
    figures: Figures


@away.tells
def reconcile(feed: Feed, *, lake: Lake, warehouse: PostgresWarehouse, mask_key: MaskKey) -> Reconciled:
    """Compare the warehouse with the clean table at the very snapshot that it records; raises when they differ."""
    shared = share(feed, warehouse.name)
    sums = [name for name in feed.declaration.correctness.sum if name in shared.names and name not in shared.masks]
    with warehouse.reading() as session, closing(duckdb.connect()) as engine:
        snapshot = session.loaded(feed.name).snapshot
        table = lake.find(layout.clean_table(feed.name))
        if table is None or snapshot is None:
            raise ReconcileError(f"{warehouse.name}.{feed.name}: nothing was loaded yet. Clear the run's load task.")
        visible = rows(table, shared, snapshot=snapshot, where=VISIBLE, mask_key=mask_key)
        keep(engine, "clean", shared, batches=(batch.select(shared.names) for batch in visible))
        keep(engine, "warehouse", shared, batches=same_types(session.rows(shared), shared.schema))
        expected, found = (measure(engine, side, sums=sums, names=shared.names) for side in ("clean", "warehouse"))
        if expected != found:
            raise ReconcileError(_tell(engine, shared, expected=expected, found=found))
    return Reconciled(snapshot, found)


def same_types(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A warehouse's batches in the clean side's types, so that one engine hashes equal values equally."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays(
            [_storage(column).cast(field.type) for column, field in zip(batch.columns, schema, strict=True)],
            schema=schema,
        )


def _storage(column: pa.Array) -> pa.Array:
    """Postgres numerics arrive as an opaque type over their text."""
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def keep(engine: duckdb.DuckDBPyConnection, side: str, share: Share, *, batches: Iterator[pa.RecordBatch]) -> None:
    """Stream one side into the engine."""
    engine.register("source", pa.RecordBatchReader.from_batches(share.schema, batches))
    engine.execute(sql.SQL("create table {} as from source").format(sql.Identifier(side)).as_string())
    engine.unregister("source")


def measure(engine: duckdb.DuckDBPyConnection, side: str, *, sums: list[str], names: list[str]) -> Figures:
    """Count, sums and an order-free checksum over every row; a sum, not an xor, so that doubled rows show."""
    # Floating-point sums depend on the order of rows, and NaN differs from itself: sort, and compare as text.
    totals = [sql.SQL("sum({0} order by {0})::varchar").format(sql.Identifier(name)) for name in sums]
    query = sql.SQL("select {} from {}").format(
        sql.SQL(", ").join([sql.SQL("count(*)"), CHECKSUM.format(_names(names)), *totals]), sql.Identifier(side)
    )
    row = engine.execute(query.as_string()).fetchone()
    assert row is not None, "an aggregate without groups gives one row"
    return Figures(row[0], dict(zip(sums, row[2:], strict=True)), row[1])


def _names(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)


def _tell(engine: duckdb.DuckDBPyConnection, share: Share, *, expected: Figures, found: Figures) -> str:
    """How far the two are apart, and where."""
    return (
        f"{share.warehouse}.{share.feed} does not agree with clean: {found.count} rows of {expected.count}; "
        f"{_tell_sums(expected, found)}{_tell_keys(engine, share)}. "
        f"Clear the run's load task; if they still differ, somebody else writes to the table."
    )


def _tell_keys(engine: duckdb.DuckDBPyConnection, share: Share) -> str:
    """The keys that differ; of values only these, and not even these where they are personal."""
    missing, surplus = (_keys(engine, share, left=left, right=right) for left, right in SIDES)
    altered = set(missing) & set(surplus)
    kinds = {
        "altered": sorted(altered),
        "lost": [key for key in missing if key not in altered],
        "surplus": [key for key in surplus if key not in altered],
    }
    personal = any(column.pii for column in share.columns if column.name in share.key)
    return "; ".join(
        f"{kind} {len(keys)}" + ("" if personal else f": {', '.join(keys[:LISTED])}")
        for kind, keys in kinds.items()
        if keys
    )


def _keys(engine: duckdb.DuckDBPyConnection, share: Share, *, left: str, right: str) -> list[str]:
    query = sql.SQL("select concat_ws('/', {}) from (from {} except all from {}) order by 1").format(
        _names(share.key), sql.Identifier(left), sql.Identifier(right)
    )
    return [key for (key,) in engine.execute(query.as_string()).fetchall()]


def _tell_sums(expected: Figures, found: Figures) -> str:
    return "".join(f"sum of {name} {found.sums[name]} of {total}; " for name, total in expected.sums.items())
