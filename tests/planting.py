"""Planting: faults put into tables behind Headrace's back, as a broken disk or a careless hand would."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DATA_FILE_TYPE, DataFile
from pyiceberg.table import Table
from workshop import Workshop

from headrace import heads, layout
from headrace.lake import heads_of

Change = Callable[[pa.Table], pa.Table]


def archive_table(shop: Workshop) -> Table:
    table: Table = shop.lake.find(layout.archive_table(shop.feed.name))
    return table


def files(table: Table, partition: int = 0) -> list[DataFile]:
    """A partition's data files, in the order of their names."""
    every = (task.file for task in table.scan().plan_files())
    return sorted((file for file in every if file.partition[0] == partition), key=lambda file: file.file_path)


def plant(shop: Workshop, change: Change, *, partition: int = 0, claims: Mapping[str, Any] | None = None) -> None:
    """Write a partition's first file anew with other rows, and let the manifest claim what it claimed before."""
    table = archive_table(shop)
    old = files(table, partition)[0]
    with table.io.new_input(old.file_path).open() as stream:
        rows = change(pq.read_table(stream))
    path = old.file_path.replace(".parquet", ".planted.parquet")
    with table.io.new_output(path).create(overwrite=True) as stream:
        pq.write_table(rows, stream, compression="zstd")
    new = copy(old, **{"file_path": path, "record_count": len(rows), **(claims or {})})
    replace(table, new, without=[old])


def plant_clean(shop: Workshop, content: list[dict[str, Any]]) -> int:
    """Write all rows of a clean table anew, in one file of which the manifest claims little; its snapshot."""
    table: Table = shop.lake.find(layout.clean_table(shop.feed.name))
    before = [task.file for task in table.scan().plan_files()]
    path = f"{before[0].file_path.rpartition('/')[0]}/{uuid.uuid4().hex}.planted.parquet"
    with table.io.new_output(path).create() as stream:
        pq.write_table(pa.Table.from_pylist(content, schema=table.schema().as_arrow()), stream)
    unknown = dict.fromkeys(("lower_bounds", "upper_bounds", "null_value_counts", "value_counts", "nan_value_counts"))
    claimed = {"file_path": path, "record_count": len(content), "split_offsets": None, **unknown}
    replace(table, copy(before[0], **claimed), without=before)
    return int(table.metadata.current_snapshot_id or 0)


def copy(file: DataFile, **changes: Any) -> DataFile:
    names = [field.name for field in DATA_FILE_TYPE[2].fields]
    same = {name: getattr(file, name) for name in names if hasattr(file, name)}
    made = DataFile.from_args(_table_format_version=2, **{**same, **changes})
    made.spec_id = file.spec_id
    return made


def replace(table: Table, *new: DataFile, without: list[DataFile] = []) -> None:  # noqa: B006
    """Commit files and take others out, with the heads as they were."""
    properties = {heads.PROPERTY: heads_of(table).to_json()}
    with (
        table.transaction() as transaction,
        transaction.update_snapshot(snapshot_properties=properties).overwrite() as overwrite,
    ):
        for file in new:
            overwrite.append_data_file(file)
        for file in without:
            overwrite.delete_data_file(file)


def altered(rows: pa.Table, column: str, *, at: int, value: Any) -> pa.Table:
    """The rows with another value in one of them."""
    values = rows[column].to_pylist()
    values[at] = value
    field = rows.schema.field(column)
    return rows.set_column(rows.schema.get_field_index(column), field, pa.array(values, field.type))
