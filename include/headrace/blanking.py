"""Blanking: archive files written anew without what some of their records said; where these lay stays told.

A file's name tells its partition, its hour and its first and last offset, all of which stay. Only its ending is new.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from headrace import archive, archive_file, layout
from headrace.archive_file import Encoder
from headrace.filed import claim
from headrace.forgotten import HEADERS
from headrace.lake import Lake

Places = Mapping[int, Collection[int]]
"""By the archive's partition: offsets."""


@dataclass(frozen=True)
class Replacement:
    """A file and the one that takes its place."""

    old: DataFile
    new: DataFile
    records: int
    """How many of its records were blanked."""


def affected(table: Table, places: Places) -> Iterator[tuple[DataFile, list[int]]]:
    """The files that may hold some of the records, with these records' offsets."""
    for task in table.scan().plan_files():
        known = claim(task.file)
        offsets = [offset for offset in places.get(known.partition, ()) if known.first <= offset <= known.last]
        if offsets:
            yield task.file, sorted(offsets)


def replacements(lake: Lake, table: Table, places: Places, *, feed: str, nonce: str) -> list[Replacement]:
    """Put a new file for each that holds some of the records; nothing names them yet."""
    plan = layout.plan(feed, nonce=nonce)
    found = (_replacement(lake, table, file, offsets, plan=plan) for file, offsets in affected(table, places))
    return [each for each in found if each]


def _replacement(lake: Lake, table: Table, file: DataFile, offsets: list[int], *, plan: str) -> Replacement | None:
    schema = schema_to_pyarrow(table.schema())
    encoder, records = Encoder(schema), 0
    with table.io.new_input(file.file_path).open() as stream, pq.ParquetFile(stream) as opened:
        for number in range(opened.num_row_groups):
            rows, count = blanked(opened.read_row_group(number), offsets)
            encoder.write(conformed(rows, schema))
            records += count
    if not records:
        return None
    body, footer = encoder.close()
    path = f"{file.file_path.rpartition('-')[0]}-{plan}.parquet"
    archive_file.put(lake.s3, path, body)
    metadata = pq.read_metadata(pa.BufferReader(footer))
    return Replacement(file, archive.data_file(table, path, size=len(body), metadata=metadata), records)


def blanked(rows: pa.Table, offsets: Collection[int]) -> tuple[pa.Table, int]:
    """The rows, those at the offsets with nothing but their coordinates and the mark; and how many these are."""
    hit = pc.is_in(rows["offset"], pa.array(offsets, pa.int64()))
    headers = [{"name": name, "value": value} for name, value in HEADERS]
    left = {"key": None, "value": None, "headers": headers}
    for name, value in left.items():
        place, field = rows.schema.get_field_index(name), rows.schema.field(name)
        rows = rows.set_column(place, field, _where(hit, value, rows[name]))
    return rows, int(pc.sum(hit).as_py() or 0)


def _where(hit: pa.ChunkedArray, value: object, column: pa.ChunkedArray) -> pa.Array:
    """The column with another value where it was hit."""
    chosen = pa.concat_arrays([pa.array([value], column.type), *column.chunks])
    places = pc.if_else(hit.combine_chunks(), 0, pa.array(range(1, len(column) + 1), pa.int64()))
    return chosen.take(places)


def conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with every column of the archive: a file from before one was added has nulls there."""
    columns = [
        rows[each.name].cast(each.type) if each.name in rows.column_names else pa.nulls(rows.num_rows, each.type)
        for each in schema
    ]
    return pa.table(columns, schema=schema)
