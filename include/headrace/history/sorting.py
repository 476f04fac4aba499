"""Sorting: more records than memory holds, by key, on this machine's disk instead of in the source.

Sorted runs are written one after another, then merged a batch at a time: of all runs, what is not above the lowest last
key at hand can be told in order. All of it is done in columns; Python looks at a few keys per batch.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.scratch import writing

MEMORY = 256 * 1024 * 1024
BATCH_ROWS = 8192
POSITION = "position"
LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


def in_order(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, *, scratch: Path, memory: int = MEMORY
) -> Iterator[pa.RecordBatch]:
    """The records by their sort columns, nulls lowest, then as they came; the sort columns are left out."""
    by = [name for name in schema.names if name.startswith("sort_")] + [POSITION]
    paths = [
        _written(run, scratch / f"run_{number}") for number, run in enumerate(_runs(batches, by, size=memory // 4))
    ]
    for table in _merged(paths, by):
        yield from table.drop_columns(by[:-1]).to_batches(max_chunksize=BATCH_ROWS)


def _runs(batches: Iterator[pa.RecordBatch], by: Sequence[str], *, size: int) -> Iterator[pa.Table]:
    """The records in sorted parts, each of about so many bytes."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        waiting.append(batch)
        held += batch.nbytes
        if held >= size:
            yield _sorted(waiting, by)
            waiting, held = [], 0
    if waiting:
        yield _sorted(waiting, by)


def _sorted(batches: Sequence[pa.RecordBatch], by: Sequence[str]) -> pa.Table:
    table = pa.Table.from_batches(batches)
    keys = [(name, "ascending", "at_start") for name in by]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def _written(run: pa.Table, path: Path) -> Path:
    """A run on disk, in batches that are small whatever their rows are."""
    rows = max(1, min(BATCH_ROWS, run.num_rows * 2**20 // max(run.nbytes, 1)))
    with (
        writing(path.parent),
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_stream(file, run.schema, options=LZ4) as writer,
    ):
        writer.write_table(run, max_chunksize=rows)
    return path


def _merged(paths: Sequence[Path], by: Sequence[str]) -> Iterator[pa.Table]:
    with ExitStack() as stack:
        files = [stack.enter_context(pa.OSFile(str(path), "rb")) for path in paths]
        runs = [run for run in (_Run(pa.ipc.open_stream(file), by) for file in files) if run.fill()]
        while runs:
            bound = min(run.last() for run in runs)
            yield _sorted([part for part in (run.take(bound) for run in runs) if part.num_rows], by)
            runs = [run for run in runs if run.fill()]


class _Run:
    """A sorted run that is being read, and the part of its current batch that is still to come."""

    def __init__(self, reader: pa.RecordBatchReader, by: Sequence[str]) -> None:
        self._reader, self._by = reader, by
        self._rest: pa.RecordBatch | None = None

    def fill(self) -> bool:
        """Read on where the batch is used up; False at the end of the run."""
        while self._rest is None or self._rest.num_rows == 0:
            try:
                self._rest = self._reader.read_next_batch()
            except StopIteration:
                return False
        return True

    def last(self) -> tuple[Any, ...]:
        assert self._rest is not None, "it was filled"
        return self._key(self._rest.num_rows - 1)

    def take(self, bound: tuple[Any, ...]) -> pa.RecordBatch:
        """The rows that are not above the bound."""
        assert self._rest is not None, "it was filled"
        count = bisect_right(range(self._rest.num_rows), bound, key=self._key)
        taken, self._rest = self._rest.slice(0, count), self._rest.slice(count)
        return taken

    def _key(self, row: int) -> tuple[Any, ...]:
        assert self._rest is not None, "it was filled"
        return tuple(_rank(self._rest.column(name)[row].as_py()) for name in self._by)


def _rank(value: Any) -> tuple[Any, ...]:
    """A value as Arrow sorts it: null, then what is no number, then the others."""
    if value is None:
        return (0,)
    return (1,) if isinstance(value, float) and math.isnan(value) else (2, value)
