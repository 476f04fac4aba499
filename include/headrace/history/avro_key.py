"""An Avro field in a Kafka key, and in the order of keys: its written value as text, and as what Arrow sorts."""

import base64
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from headrace.columns.avro import logical
from headrace.history import scalars
from headrace.history.scalars import EPOCH, EPOCH_DAY, PER_SECOND, Read
from headrace.history.target import same

Type = Mapping[str, Any]


def sorting(type_: Type | None) -> tuple[pa.DataType | None, Read]:
    if type_ is None:
        return None, same
    if logical(type_) == "decimal":
        return pa.decimal128(38, 0), lambda value: Decimal(int.from_bytes(value, "big", signed=True))
    return SORTS.get(type_["type"]), same


SORTS = {
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
}


def key_form(type_: Type | None) -> Read:
    """A written value as a Kafka key has it: what casts back to the column's own value."""
    if type_ is None:
        return same
    match (logical(type_) or "").rpartition("-"), type_["type"]:
        case (_, _, "decimal"), _:
            scale = type_.get("scale", 0)
            return lambda value: Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale)
        case (_, _, "date"), _:
            return lambda value: date.fromordinal(value + EPOCH_DAY).isoformat()
        case ("time", _, unit), _:
            return partial(_time_text, per_second=PER_SECOND[unit])
        case ("timestamp" | "local-timestamp" as kind, _, unit), _:
            return partial(_moment_text, per_second=PER_SECOND[unit], zone="Z" if kind == "timestamp" else "")
        case (_, _, "uuid"), "fixed":
            return scalars.uuid
        case _, "bytes" | "fixed":
            return Octets
    return same


class Octets(bytes):
    """Bytes in a key: as they are where they are all of it, base64 inside JSON."""

    def base64(self) -> str:
        return base64.b64encode(self).decode("ascii")


def _micros(value: int, per_second: int) -> int:
    return value * 1_000_000 // per_second


def _time_text(value: int, *, per_second: int) -> str:
    return (EPOCH + timedelta(microseconds=_micros(value, per_second))).time().isoformat("microseconds")


def _moment_text(value: int, *, per_second: int, zone: str) -> str:
    moment: datetime = EPOCH + timedelta(microseconds=_micros(value, per_second))
    return moment.isoformat(timespec="microseconds") + zone
