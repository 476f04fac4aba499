"""Avro records to rows: Spark's own reader, and what it leaves to do to be the columns' types."""

import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from headrace.columns.avro import logical, member_name, values, widened
from headrace.columns.avro_names import separate

# A union's members are called by their types, as in Avro's own JSON, whatever their order.
OPTIONS = {
    "mode": "PERMISSIVE",
    "enableStableIdentifiersForUnionType": "true",
    "stableIdentifierPrefixForUnionType": "",
}
TIME_UNITS = {"time-millis": 1000, "time-micros": 1}
SECOND = 1_000_000
UUID_PARTS = "(.{8})(.{4})(.{4})(.{4})(.{12})"


def read(payload: Column, *, writer: str, reader: str) -> Column:
    """A record as the reader's schema sees it; a struct of nulls when it does not decode."""
    return from_avro(payload, writer, {**OPTIONS, "avroSchema": reader})


def typed(value: Column, type_: Any) -> Column:
    """A value that Spark has read, in its column's type; `type_` is the resolved Avro type."""
    if not differs(type_):
        return value
    if isinstance(type_, list):
        return _choice(value, values(type_))
    match type_["type"]:
        case "record" | "error":
            return _struct(value, {field["name"]: field["type"] for field in type_["fields"]})
        case "array":
            return F.transform(value, lambda each: typed(each, type_["items"]))
        case "map":
            return F.transform_values(value, lambda _, each: typed(each, type_["values"]))
        case "null":
            return value.cast("string")
    return _logical(value, type_)


def differs(type_: Any) -> bool:
    """Whether Spark reads a type as another one than its column's; what does not differ is not taken apart."""
    if isinstance(type_, list):
        return not widened(type_) and any(differs(member) for member in values(type_) or type_)
    match type_["type"]:
        case "record" | "error":
            return any(differs(field["type"]) for field in type_["fields"])
        case "array":
            return differs(type_["items"])
        case "map":
            return differs(type_["values"])
        case "null":
            return True
    name = logical(type_) or ""
    return name in ("uuid", "duration") or name.endswith("-nanos") or name.startswith("time-")


def _choice(value: Column, members: list[Mapping[str, Any]]) -> Column:
    if len(members) < 2:
        return typed(value, members[0] if members else {"type": "null"})
    return _struct(value, {member_name(member): member for member in members})


def _struct(value: Column, members: Mapping[str, Any]) -> Column:
    whole = F.struct(*(typed(value[name], type_).alias(name) for name, type_ in members.items()))
    return F.when(value.isNotNull(), whole)


def _logical(value: Column, type_: Mapping[str, Any]) -> Column:
    match logical(type_), type_["type"]:
        case "uuid", "string":
            return F.lower(value)
        case "uuid", _:
            return F.regexp_replace(F.lower(F.hex(value)), UUID_PARTS, "$1-$2-$3-$4-$5")
        case "duration", _:
            parts = {"months": 1, "days": 5, "millis": 9}
            whole = F.struct(*(_unsigned(value, first).alias(name) for name, first in parts.items()))
            return F.when(value.isNotNull(), whole)
        case "timestamp-nanos", _:
            return _from_nanos(value)
        case "local-timestamp-nanos", _:
            return _from_nanos(value).cast("timestamp_ntz")
        case str(name), _:
            return _time(value.cast("bigint") * TIME_UNITS[name])
    raise AssertionError(f"{type_} does not differ")


def _unsigned(value: Column, first: int) -> Column:
    """Four bytes, the lowest first, as a number."""
    digits = F.concat(*(F.hex(F.substring(value, place, 1)) for place in range(first + 3, first - 1, -1)))
    return F.conv(digits, 16, 10).cast("bigint")


def _from_nanos(value: Column) -> Column:
    """Whole microseconds, cut towards the past, before 1970 too."""
    micros = _div(value, 1000) - F.when(value % 1000 < 0, F.lit(1)).otherwise(F.lit(0))
    return F.timestamp_micros(micros)


def _time(micros: Column) -> Column:
    """A time of day as text; one that no day has makes a text that is no time, which is told from its form."""
    parts = [_div(micros, 3600 * SECOND), _div(micros, 60 * SECOND) % 60, _div(micros, SECOND) % 60, micros % SECOND]
    return F.when(micros.isNotNull(), F.format_string("%02d:%02d:%02d.%06d", *parts))


def _div(value: Column, by: int) -> Column:
    return F.call_function("div", value, F.lit(by))


def defaults(fields: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    """The default of each resolved field that has one, typed: what a reader sees that was written without it."""
    numbers = count()
    declared = [{**field, "type": separate(field["type"], numbers)} for field in fields if "default" in field]
    if not declared:
        return {}
    writer, reader = (json.dumps({"type": "record", "name": "Row", "fields": each}) for each in ([], declared))
    row = read(F.lit(b""), writer=writer, reader=reader)
    return {field["name"]: typed(row[field["name"]], field["type"]) for field in declared}
