"""Shortcuts: a whole column read at once by Arrow, where that gives exactly what reading each value by itself would."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.columns.avro import logical
from headrace.history.scalars import DAYS, SECONDS, Unfit, signed
from headrace.history.target import Shortcut

Cast = Callable[[pa.Array], pa.Array]
UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
LONGS = 18
"""The digits that an integer of 64 bits always holds."""


def storage(array: pa.Array) -> pa.Array:
    """What lies below an extension type: Postgres' numeric is a text, its uuid sixteen bytes."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def storage_type(type_: pa.DataType) -> pa.DataType:
    return type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_


def is_text(type_: pa.DataType) -> bool:
    below = storage_type(type_)
    return bool(pa.types.is_string(below) or pa.types.is_large_string(below) or pa.types.is_string_view(below))


def values(array: pa.Array) -> list[Any]:
    """Python's values of a column that has been read."""
    if array.null_count == 0 and (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        found: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
        return found
    listed: list[Any] = array.to_pylist()
    return listed


def avro_shortcut(type_: Mapping[str, Any], column: pa.DataType) -> Shortcut | None:  # noqa: PLR0912 - a table
    """The shortcut from a column's type to an Avro type that is no union."""
    below, name = storage_type(column), logical(type_) or ""
    match type_["type"], name.rpartition("-"):
        case "boolean", _ if pa.types.is_boolean(below):
            return values
        case ("int" | "long") as kind, (_, _, ""):
            target = pa.int32() if kind == "int" else pa.int64()
            return (lambda array: values(array.cast(target))) if pa.types.is_integer(below) else None
        case "double", _ if pa.types.is_float64(below):
            return values
        case "float", _ if pa.types.is_float32(below):
            return values
        case "string", ("", _, ""):
            return _texts if is_text(column) else None
        case "string", (_, _, "uuid") if pa.types.is_fixed_size_binary(below) and below.byte_width == 16:
            return lambda array: _uuids(storage(array))
        case "bytes", (_, _, "") if pa.types.is_binary(below) or pa.types.is_large_binary(below):
            return values
        case "enum", _ if is_text(column):
            symbols = pa.array(type_["symbols"], pa.string())
            return lambda array: _symbols(array, symbols)
        case "int", (_, _, "date") if pa.types.is_date32(below):
            return lambda array: values(_within(array.cast(pa.int32()), DAYS))
        case ("int" | "long") as kind, ("time", _, unit) if pa.types.is_time(below):
            width = pa.int32() if kind == "int" else pa.int64()
            wanted = pa.time32("ms") if unit == "millis" else pa.time64(UNITS[unit])
            return lambda array: values(array.cast(wanted).cast(width))
        case "long", (("timestamp" | "local-timestamp") as kind, _, unit) if pa.types.is_timestamp(below):
            if (below.tz is not None) != (kind == "timestamp"):
                return None
            return _moments(below, UNITS[unit])
        case "bytes", (_, _, "decimal"):
            return _decimals(type_, column)
    return None


def _texts(array: pa.Array) -> list[Any]:
    below = storage(array)
    if pc.any(pc.match_substring(below, "\0")).as_py():
        raise Unfit("a text with a NUL")
    return values(below)


def _symbols(array: pa.Array, symbols: pa.Array) -> list[Any]:
    below = storage(array)
    if not pc.all(pc.is_in(below.drop_null(), value_set=symbols.cast(below.type))).as_py():
        raise Unfit("none of the enum's symbols")
    return values(below)


def _uuids(array: pa.Array) -> list[Any]:
    found = [None if value is None else value.hex() for value in array.to_pylist()]
    return [
        None if text is None else f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}" for text in found
    ]


def _within(array: pa.Array, bounds: range) -> pa.Array:
    extremes = pc.min_max(array).as_py()
    if extremes["min"] is not None and not (bounds.start <= extremes["min"] and extremes["max"] < bounds.stop):
        raise Unfit("outside the years 1 to 9999")
    return array


def _moments(column: pa.DataType, unit: str) -> Shortcut:
    wanted = pa.timestamp(unit, column.tz)
    scale = PER_SECOND[unit]
    bounds = range(SECONDS.start * scale, SECONDS.stop * scale)
    return lambda array: values(_within(array.cast(wanted).cast(pa.int64()), bounds))


def _decimals(type_: Mapping[str, Any], column: pa.DataType) -> Shortcut | None:
    precision, below = type_["precision"], storage_type(column)
    if precision > LONGS or not (is_text(column) or pa.types.is_decimal128(below)):
        return None
    scale = type_.get("scale", 0)
    wanted, whole = pa.decimal128(precision, scale), pa.decimal128(38, 0)
    shift = pa.scalar(10**scale, pa.decimal128(scale + 1, 0))

    def decimals(array: pa.Array) -> list[Any]:
        exact = storage(array).cast(wanted)
        digits = pc.multiply(exact, shift).cast(whole).cast(pa.int64())
        return [None if number is None else signed(number) for number in values(digits)]

    return decimals
