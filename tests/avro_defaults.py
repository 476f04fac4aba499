"""Defaults of Avro fields: as they are written, and as a column holds them."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

SOME_UUID = UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")


def logical(type_: str, name: str, **others: Any) -> dict[str, Any]:
    return {"type": type_, "logicalType": name, **others}


DEFAULTS: dict[str, tuple[Any, Any, Any]] = {
    "boolean": ("boolean", False, False),
    "int": ("int", 3, 3),
    "double": ("double", 3, 3.0),
    "string": ("string", "x", "x"),
    "enum": ({"type": "enum", "name": "E", "symbols": ["a", "b"]}, "b", "b"),
    "bytes": ("bytes", "\u0000\u00ff", b"\x00\xff"),
    "fixed": ({"type": "fixed", "name": "F", "size": 2}, "\u0000\u00ff", b"\x00\xff"),
    "union": (["string", "null"], "x", "x"),
    "wide union": (["int", "long"], 3, 3),
    "wide union of fractions": (["null", "float", "double"], None, None),
    "decimal": (logical("bytes", "decimal", precision=9, scale=2), "\u00ff\u0000", Decimal("-2.56")),
    "uuid": (logical("string", "uuid"), str(SOME_UUID).upper(), SOME_UUID),
    "date": (logical("int", "date"), -1, date(1969, 12, 31)),
    "time-millis": (logical("int", "time-millis"), 1, "00:00:00.001000"),
    "time-micros": (logical("long", "time-micros"), 86_399_999_999, "23:59:59.999999"),
    "timestamp-millis": (logical("long", "timestamp-millis"), -1, datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)),
    "timestamp-nanos": (logical("long", "timestamp-nanos"), -1, datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)),
    "local-timestamp-micros": (logical("long", "local-timestamp-micros"), 1, datetime(1970, 1, 1, 0, 0, 0, 1)),  # noqa: DTZ001
    "array": ({"type": "array", "items": "int"}, [], None),
    "map": ({"type": "map", "values": "int"}, {"a": 1}, None),
    "choice": (["string", "long"], "x", None),
    "duration": ({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}, "\u0000" * 12, None),
}  # fmt: skip
