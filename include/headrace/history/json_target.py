"""JSON Schema properties as targets: values as JSON has them, in the spelling that the columns read back."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    BooleanType,
    DateType,
    DoubleType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    StructType,
    TimestamptzType,
    UUIDType,
)

from headrace.columns import JsonText, columns
from headrace.feed import Feed
from headrace.history import scalars, shortcut
from headrace.history.scalars import EPOCH, EPOCH_DAY, Read, Unfit
from headrace.history.source import Values
from headrace.history.target import Shortcut, Target, same

MICROS = 1_000_000


def targets(feed: Feed) -> list[Target]:
    """The feed's properties, in the order of its schema."""
    required = feed.schema.get("required", ())
    return [
        Target(
            column.name,
            told=f"{column.type}{'' if column.required else ' or null'}",
            nullable=not column.required,
            read=reader(column.type),
            shortcut=partial(_shortcut, column.type),
            pii=column.pii,
            is_optional=column.name not in required,
            is_json=isinstance(column.type, StructType | ListType | MapType | JsonText),
            sorts=_sorts(column.type),
            sort=float if isinstance(column.type, DoubleType) else same,
        )
        for column in columns(feed)
    ]


def reader(type_: IcebergType) -> Read:
    """Reads values that are not null."""
    match type_:
        case JsonText():
            return _json
        case StructType(fields=fields):
            return partial(_object, members={field.name: reader(field.field_type) for field in fields})
        case ListType():
            return partial(_list, element=reader(type_.element_type))
        case MapType():
            return partial(_map, held=reader(type_.value_type))
        case BooleanType():
            return scalars.boolean
        case LongType():
            return scalars.whole
        case DoubleType():
            return scalars.finite
        case UUIDType():
            return scalars.uuid
        case DateType():
            return _date
        case TimestamptzType():
            return _moment
    return scalars.text


def _date(value: Any) -> str:
    from datetime import date

    return date.fromordinal(scalars.days(value) + EPOCH_DAY).isoformat()


def _moment(value: Any) -> str:
    """As RFC 3339 writes it, in UTC, all with the same number of digits: so texts sort as moments do."""
    if isinstance(value, int):
        raise Unfit("a number, not a moment")
    micros = scalars.moment(value, per_second=MICROS, zoned=True)
    return (EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds") + "Z"


def _json(value: Any) -> Any:
    """Any value that JSON has."""
    match value:
        case dict():
            return {scalars.text(name): None if each is None else _json(each) for name, each in value.items()}
        case list() | tuple():
            return [None if each is None else _json(each) for each in value]
        case bool() | int() | Decimal():
            return value
        case float():
            return scalars.finite(value)
    return scalars.text(value)


def _object(value: Any, *, members: Mapping[str, Read]) -> dict[str, Any]:
    """Members that the columns lack go on as they are: whether they may be there, the schema says."""
    found = scalars.nested(value)
    if not isinstance(found, dict):
        raise Unfit("no object")
    return {name: None if each is None else members.get(name, _json)(each) for name, each in found.items()}


def _list(value: Any, *, element: Read) -> list[Any]:
    found = scalars.nested(value)
    if not isinstance(found, list | tuple):
        raise Unfit("no list")
    return [None if each is None else element(each) for each in found]


def _map(value: Any, *, held: Read) -> dict[str, Any]:
    found = scalars.nested(value)
    if not isinstance(found, dict | list):
        raise Unfit("no object")
    pairs = found.items() if isinstance(found, dict) else found
    return {scalars.text(name): None if each is None else held(each) for name, each in pairs}


def _shortcut(type_: IcebergType, column: pa.DataType) -> Shortcut | None:
    below = shortcut.storage_type(column)
    match type_:
        case JsonText() | StructType() | ListType() | MapType():
            return None
        case BooleanType() if pa.types.is_boolean(below):
            return shortcut.values
        case LongType() if pa.types.is_integer(below):
            return lambda array: shortcut.values(array.cast(pa.int64()))
        case TimestamptzType() if pa.types.is_timestamp(below) and below.tz is not None:
            return _moments(below)
        case UUIDType():
            return shortcut.avro_shortcut({"type": "string", "logicalType": "uuid"}, column)
        case DateType() if pa.types.is_date32(below):
            return _dates
        case BooleanType() | LongType() | DoubleType() | UUIDType() | DateType() | TimestamptzType():
            return None
    return shortcut.avro_shortcut({"type": "string"}, column)


def _moments(column: pa.DataType) -> Shortcut:
    inner = shortcut.avro_shortcut({"type": "long", "logicalType": "timestamp-micros"}, column)
    assert inner is not None, "a timestamp with a zone has one"
    naive, form = pa.timestamp("us"), "%Y-%m-%dT%H:%M:%S"

    def moments(array: pa.Array) -> Values:
        inner(array)
        texts = pc.strftime(array.cast(pa.timestamp("us", "UTC")).cast(naive), format=form)
        found: list[Any] = pc.binary_join_element_wise(texts, "Z", "").to_pylist()
        return found

    return moments


def _dates(array: pa.Array) -> Values:
    inner = shortcut.avro_shortcut({"type": "int", "logicalType": "date"}, array.type)
    assert inner is not None, "a date has one"
    inner(array)
    found: list[Any] = pc.strftime(array.cast(pa.timestamp("s")), format="%Y-%m-%d").to_pylist()
    return found


def _sorts(type_: IcebergType) -> pa.DataType | None:
    match type_:
        case StructType() | ListType() | MapType() | JsonText():
            return None
        case BooleanType():
            return pa.bool_()
        case LongType():
            return pa.int64()
        case DoubleType():
            return pa.float64()
    return pa.string()
