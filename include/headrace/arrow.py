"""Arrow: a column's type in the clean table, and the plainer one in which its values travel to a warehouse."""

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.types import BinaryType, FixedType, IcebergType, StringType, UUIDType

from headrace import json_column, uuids
from headrace.columns import JsonText, TimeText

DAY = "1970-01-01T"
"""Arrow reads no times of a day alone."""


def arrow_type(type_: IcebergType) -> pa.DataType:
    """The type that a reader of the clean table gets."""
    converted = schema_to_pyarrow(type_)
    assert isinstance(converted, pa.DataType), "a type, not a schema, was converted"
    return converted


def is_json(type_: IcebergType) -> bool:
    """Whether a warehouse holds the column as JSON: all that is nested, or JSON already."""
    return not type_.is_primitive or isinstance(type_, JsonText)


def travel_type(type_: IcebergType) -> pa.DataType:
    """The type on the way to a warehouse, in which both sides are compared too: JSON and uuids go as texts."""
    if is_json(type_):
        return pa.string()
    match type_:
        case TimeText():
            return pa.time64("us")
        case StringType() | UUIDType():
            return pa.string()
        case BinaryType() | FixedType():
            return pa.binary()
    return arrow_type(type_)


def travelling(values: pa.ChunkedArray, type_: IcebergType) -> pa.ChunkedArray:
    """A column of the clean table as it travels."""
    target = travel_type(type_)
    return pa.chunked_array([_travelling(chunk, type_).cast(target) for chunk in values.chunks], target)


def _travelling(values: pa.Array, type_: IcebergType) -> pa.Array:
    match type_:
        case _ if is_json(type_):
            return json_column.texts(values, type_)
        case TimeText():
            return pc.binary_join_element_wise(DAY, values.cast(pa.string()), "").cast(pa.timestamp("us"))
        case UUIDType():
            return uuids.texts(values)
    return values
