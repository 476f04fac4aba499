"""Arrow: a column's type in the clean table, and the plainer one in which its values travel to a warehouse."""

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.types import (
    BinaryType,
    DateType,
    FixedType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace.columns import JsonText, TimeText
from headrace.json_text import canonical, decoder

Jsonable = Callable[[Any], Any]
"""Turns a value as Arrow gives it into one that JSON has."""


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
    changed: list[Any]
    match type_:
        case TimeText():
            changed = [None if text is None else time.fromisoformat(text) for text in values.to_pylist()]
        case UUIDType():
            changed = [None if value is None else str(value) for value in values.to_pylist()]
        case JsonText():
            return values.cast(target)  # canonical since it was decoded
        case _ if is_json(type_):
            jsonable = _jsonable(type_)
            changed = [None if value is None else canonical(jsonable(value)) for value in values.to_pylist()]
        case _:
            return values.cast(target)
    return pa.chunked_array([pa.array(changed, target)])


def _jsonable(type_: IcebergType) -> Jsonable:
    """A function for all values of a type, so that the type is looked at once."""
    match type_:
        case StructType(fields=fields):
            members = {field.name: _nullable(_jsonable(field.field_type)) for field in fields}
            # A snapshot from before a member was added does not know it.
            return lambda value: {name: member(value.get(name)) for name, member in members.items()}
        case ListType():
            element = _nullable(_jsonable(type_.element_type))
            return lambda value: [element(each) for each in value]
        case MapType():
            held = _nullable(_jsonable(type_.value_type))
            return lambda value: {name: held(each) for name, each in value}
        case JsonText():
            return decoder()
        case FloatType():
            return _shortest
        case BinaryType() | FixedType():
            return _base64
        case DateType():
            return date.isoformat
        case TimestamptzType():
            return _moment
        case TimestampType():
            return datetime.isoformat
        case UUIDType():
            return _uuid
    return lambda value: value


def _nullable(change: Jsonable) -> Jsonable:
    return lambda value: None if value is None else change(value)


def _shortest(value: float) -> float:
    """A float's own digits, not those that a double shows of it."""
    return float(str(pa.scalar(value, pa.float32()).cast(pa.string()).as_py()))


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _uuid(value: UUID | bytes) -> str:
    return str(value if isinstance(value, UUID) else UUID(bytes=value))
