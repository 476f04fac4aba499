"""Compare: what a branch of a clean table would change for readers, by key, read from the files that differ only."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import pyarrow as pa
from psycopg import sql
from pyiceberg.expressions.parser import parse
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask, Table

from headrace import away, layout
from headrace.arrow import travel_type, travelling
from headrace.clean import HIDDEN_ROW
from headrace.columns import Column, columns
from headrace.errors import BranchMissing
from headrace.feed import Feed
from headrace.lake import Lake

LISTED = 5
MAIN = "main"
BEFORE, AFTER = "before", "after"
Kind = Literal["added", "removed", "changed"]
VISIBLE = parse(f"{HIDDEN_ROW} = false")
NOTHING = sql.SQL("")


@dataclass(frozen=True)
class Difference:
    """The rows that readers would get, lose or see otherwise."""

    feed: str
    branch: str
    counts: Mapping[Kind, int]
    columns: Mapping[str, int]
    """Of the changed rows: in how many each column differs."""
    keys: Mapping[Kind, Sequence[str]]
    """The first few; none where a key is personal."""
    files: int
    """How many were read, of both sides."""


@away.tells
def compare(feed: Feed, branch: str, *, lake: Lake, listed: int = LISTED) -> Difference:
    """Hold a branch against main; a row that did not change lies in a file that both have, which is not read."""
    table = lake.find(layout.clean_table(feed.name))
    branches = sorted(name for name in table.metadata.refs if name != MAIN) if table else []
    if table is None or branch not in branches:
        raise BranchMissing(
            f"feed {feed.name}: clean.{feed.name} has no branch {branch}; one goes when its run is published, or was "
            f"left too long. There are: {', '.join(branches) or 'none'}."
        )
    main, other = (_files(table, name) for name in (MAIN, branch))
    apart = {
        BEFORE: [main[path] for path in main.keys() - other.keys()],
        AFTER: [other[path] for path in other.keys() - main.keys()],
    }
    known = [column for column in columns(feed) if column.name in table.schema().column_names]
    with closing(duckdb.connect()) as engine:
        for side, files in apart.items():
            _keep(engine, side, rows=_rows(table, known, files=files), columns=known, key=feed.declaration.key)
        join = _Join(engine, tuple(feed.declaration.key), tuple(column.name for column in known))
        shown = 0 if feed.personal & set(feed.declaration.key) else listed
        return Difference(
            feed.name,
            branch,
            counts={kind: join.count(kind) for kind in KINDS},
            columns=join.by_column(),
            keys={kind: join.keys(kind, shown) for kind in KINDS},
            files=sum(map(len, apart.values())),
        )


def _files(table: Table, branch: str) -> dict[str, FileScanTask]:
    """The files that a reader of a branch would open, by their path."""
    snapshot = table.metadata.refs[branch].snapshot_id if branch in table.metadata.refs else None
    if snapshot is None:
        return {}
    tasks = table.scan(row_filter=VISIBLE, snapshot_id=snapshot).plan_files()
    return {task.file.file_path: task for task in tasks}


def _rows(table: Table, columns: Sequence[Column], *, files: Sequence[FileScanTask]) -> Iterator[pa.RecordBatch]:
    """The visible rows of some files, in the types that values of every kind can be compared in."""
    projected = table.schema().select(*(column.name for column in columns), HIDDEN_ROW)
    for batch in ArrowScan(table.metadata, table.io, projected, VISIBLE).to_record_batches(files):
        rows = pa.Table.from_batches([batch])
        changed = {column.name: travelling(rows.column(column.name), column.type) for column in columns}
        yield from pa.table(changed).cast(_schema(columns)).to_batches()


def _schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([pa.field(column.name, travel_type(column.type)) for column in columns])


def _keep(
    engine: duckdb.DuckDBPyConnection,
    side: str,
    *,
    rows: Iterator[pa.RecordBatch],
    columns: Sequence[Column],
    key: Sequence[str],
) -> None:
    """Stream one side into the engine: keys as they are, of everything else a hash."""
    hashes = [
        sql.SQL("hash({}) as {}").format(sql.Identifier(column.name), sql.Identifier(_hash(column.name)))
        for column in columns
    ]
    kept = sql.SQL(", ").join([*map(sql.Identifier, key), *hashes])
    engine.register("source", pa.RecordBatchReader.from_batches(_schema(columns), rows))
    made = sql.SQL("create table {} as select {} from source").format(sql.Identifier(side), kept)
    engine.execute(made.as_string())
    engine.unregister("source")


def _hash(column: str) -> str:
    return f"{column} #"  # no field is called so


@dataclass(frozen=True)
class _Join:
    """Both sides, joined by their key in one of three ways."""

    engine: duckdb.DuckDBPyConnection
    key: tuple[str, ...]
    columns: tuple[str, ...]

    def count(self, kind: Kind) -> int:
        count: int = self._asked(kind, sql.SQL("count(*)"))[0][0]
        return count

    def by_column(self) -> dict[str, int]:
        """In how many of the changed rows each column differs, the busiest first."""
        counts = [sql.SQL("count(*) filter (where {})").format(self._differs(name)) for name in self.columns]
        found = self._asked("changed", sql.SQL(", ").join(counts))[0]
        named = zip(self.columns, found, strict=True)
        return dict(sorted(((name, count) for name, count in named if count), key=lambda each: -each[1]))

    def keys(self, kind: Kind, most: int) -> list[str]:
        side = BEFORE if kind == "removed" else AFTER
        names = sql.SQL(", ").join(sql.Identifier(side, name) for name in self.key)
        told = sql.SQL("concat_ws('/', {})").format(names)
        rows = self._asked(kind, told, sql.SQL("order by {} limit {}").format(names, sql.Literal(most)))
        return [key for (key,) in rows]

    def _asked(self, kind: Kind, wanted: sql.Composable, more: sql.Composable = NOTHING) -> list[tuple[Any, ...]]:
        one, join, other = KINDS[kind]
        where: sql.Composable = NOTHING
        if kind == "changed":
            differs = sql.SQL(" or ").join(self._differs(name) for name in self.columns)
            where = sql.SQL("where {}").format(differs)
        query = sql.SQL("select {} from {} {} {} using ({}) {} {}").format(
            wanted,
            sql.Identifier(one),
            sql.SQL(join),
            sql.Identifier(other),
            sql.SQL(", ").join(map(sql.Identifier, self.key)),
            where,
            more,
        )
        return self.engine.execute(query.as_string()).fetchall()

    def _differs(self, column: str) -> sql.Composed:
        name = _hash(column)
        return sql.SQL("{} <> {}").format(sql.Identifier(BEFORE, name), sql.Identifier(AFTER, name))


KINDS: Mapping[Kind, tuple[str, str, str]] = {
    "added": (AFTER, "anti join", BEFORE),
    "removed": (BEFORE, "anti join", AFTER),
    "changed": (AFTER, "join", BEFORE),
}
"""How the rows of each kind are found."""
