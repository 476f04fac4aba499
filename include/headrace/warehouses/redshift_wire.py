"""Rows on the way to and from Redshift: Parquet of plain types, which COPY reads and UNLOAD writes, and casts."""

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from pyiceberg.types import BinaryType, FixedType, IcebergType, TimestamptzType, UUIDType

from headrace import json_column
from headrace.arrow import DAY, is_json, travel_type
from headrace.columns import JsonText, TimeText
from headrace.errors import WarehouseError
from headrace.share import Share
from headrace.warehouses.redshift_types import LONGEST_BYTES, LONGEST_TEXT

MICROS = pa.timestamp("us")


def schema(travelling: pa.Schema, share: Share) -> pa.Schema:
    """The types in which rows are staged."""
    return pa.schema([pa.field(each.name, _staged_type(share.types.get(each.name), each.type)) for each in travelling])


def _staged_type(type_: IcebergType | None, travelling: pa.DataType) -> pa.DataType:
    match type_:
        case TimestamptzType():
            return MICROS  # of UTC: Parquet's form of a zone is not one that COPY is documented to take
        case TimeText():
            return pa.string()
    return travelling


def sent(batch: pa.RecordBatch, share: Share) -> pa.RecordBatch:
    """A batch as it is staged; raises where a value is longer than Redshift's types."""
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        _refuse_long(values, name, share)
    return pa.RecordBatch.from_arrays(
        [values.cast(wanted.type) for values, wanted in zip(batch.columns, schema(batch.schema, share), strict=True)],
        schema=schema(batch.schema, share),
    )


def _refuse_long(values: pa.Array, name: str, share: Share) -> None:
    if not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)) or name not in share.types:
        return
    binary = isinstance(share.types[name], BinaryType | FixedType)
    most, longest = LONGEST_BYTES if binary else LONGEST_TEXT, pc.max(pc.binary_length(values)).as_py() or 0
    if longest > most:
        raise WarehouseError(
            f"{share.warehouse}.{share.feed}: a value of {name} has {longest:,} bytes, and Redshift takes {most:,} in "
            f"one. Nothing was changed. Drop the column for this warehouse, or flatten it if it is a record."
        )


def converted(name: str, type_: IcebergType) -> sql.Composed:
    """A column that COPY brought, in the table's own type."""
    column = sql.Identifier(name)
    if is_json(type_):
        return sql.SQL("json_parse({})").format(column)
    match type_:
        case TimestamptzType():
            return sql.SQL("{} at time zone 'UTC'").format(column)
        case TimeText():
            return sql.SQL("{}::time").format(column)
        case UUIDType():
            return sql.SQL("{}::char(36)").format(column)
    return sql.SQL("{}").format(column)


def selected(share: Share, table: str) -> sql.Composed:
    """A table's columns in the plain types that Parquet is unloaded in; of a null, Redshift would write `null`."""
    return sql.SQL(", ").join(
        _selected(sql.Identifier(table, name), name, type_) for name, type_ in share.types.items()
    )


def _selected(column: sql.Identifier, name: str, type_: IcebergType) -> sql.Composed:
    form = "{0}"
    if is_json(type_):
        form = "case when {0} is not null then json_serialize({0}) end as {1}"
    elif isinstance(type_, TimestamptzType):
        form = "{0} at time zone 'UTC' as {1}"
    elif isinstance(type_, TimeText):
        form = "{0}::varchar(15) as {1}"
    elif isinstance(type_, UUIDType):
        form = "{0}::varchar(36) as {1}"
    return sql.SQL(form).format(column, sql.Identifier(name))


def received(batch: pa.RecordBatch, share: Share) -> pa.RecordBatch:
    """A batch that was unloaded, in the types in which rows travel."""
    columns = [_received(values, share.types[name]) for name, values in zip(share.names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=share.schema)


def _received(values: pa.Array, type_: IcebergType) -> pa.Array:
    wanted = travel_type(type_)
    if is_json(type_):
        return json_column.texts(values, JsonText()).cast(wanted)
    match type_:
        case TimestamptzType():
            return pc.assume_timezone(values.cast(MICROS), "UTC")
        case TimeText():
            return pc.binary_join_element_wise(DAY, values.cast(pa.string()), "").cast(MICROS).cast(wanted)
    return values.cast(wanted)
