"""Compare: what a branch of a clean table would change for readers, by key, read from the files that differ only."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pyiceberg.expressions.parser import parse
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask, Table

from headrace import away, layout, reckoning
from headrace.arrow import travel_type, travelling
from headrace.clean import HIDDEN_ROW
from headrace.columns import Column, columns
from headrace.errors import BranchMissing
from headrace.feed import Feed
from headrace.lake import Lake
from headrace.reckoning import Keys, Shape, differences

LISTED = 5
MAIN = "main"
BEFORE, AFTER = "before", "after"
Kind = Literal["added", "removed", "changed"]
VISIBLE = parse(f"{HIDDEN_ROW} = false")
KINDS: Mapping[Kind, reckoning.Kind] = {"added": "surplus", "removed": "lost", "changed": "altered"}
"""What reckoning calls them, for which main is what should be there."""


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
    shown = 0 if feed.personal & set(feed.declaration.key) else listed
    found = differences(
        Shape(_schema(known), tuple(feed.declaration.key)),
        expected=lambda: _rows(table, known, files=apart[BEFORE]),
        found=lambda: _rows(table, known, files=apart[AFTER]),
        listed=shown,
    )
    none = Keys(0, ())
    kinds = {kind: found.keys.get(named, none) for kind, named in KINDS.items()}
    return Difference(
        feed.name,
        branch,
        counts={kind: keys.count for kind, keys in kinds.items()},
        columns=found.columns,
        keys={kind: list(keys.listed) for kind, keys in kinds.items()},
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
