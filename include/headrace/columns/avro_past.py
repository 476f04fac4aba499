"""What an Avro schema says of records older than itself: the names that a column had, and what it was before it was."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from headrace.columns.avro import iceberg, logical, member_name, members, values, widened
from headrace.columns.avro_names import resolved

Path = tuple[str, ...]
"""The names that lead to a column in an Iceberg schema, `element` and `value` among them."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PER_SECOND = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}
BYTES = "latin-1"
"""How Avro writes bytes in JSON: a character for each."""


@dataclass(frozen=True)
class Past:
    """What a field says of older records."""

    aliases: tuple[str, ...] = ()
    default: Any = None
    """A single value of the column's type; null where there is none, or one that no table can hold."""


def past(schema: Mapping[str, Any]) -> dict[Path, Past]:
    """The past of every column of a good schema, nested ones too."""
    return dict(_within(resolved(schema, []), ()))


def _within(type_: Any, path: Path) -> Iterator[tuple[Path, Past]]:
    if isinstance(type_, list):
        yield from _chosen(type_, path)
        return
    match type_["type"]:
        case "record" | "error":
            for field in type_["fields"]:
                place = (*path, field["name"])
                yield place, Past(tuple(field.get("aliases", ())), single_default(field))
                yield from _within(field["type"], place)
        case "array":
            yield from _within(type_["items"], (*path, "element"))
        case "map":
            yield from _within(type_["values"], (*path, "value"))


def _chosen(union: list[Any], path: Path) -> Iterator[tuple[Path, Past]]:
    """A choice of several types is a struct, whose members are called by them."""
    chosen = values(union)
    if len(chosen) == 1:
        yield from _within(chosen[0], path)
    elif not widened(union):
        for member in chosen:
            place = (*path, member_name(member))
            yield place, Past(tuple(alias.rpartition(".")[2] for alias in member.get("aliases", ())))
            yield from _within(member, place)


def single_default(field: Mapping[str, Any]) -> Any:
    """A resolved field's default as its column holds it; null for what is more than a single value."""
    written = field.get("default")
    return None if written is None or not is_single(field["type"]) else _value(values(field["type"]), written)


def is_single(type_: Any) -> bool:
    """Whether a resolved type's column is no list, map or struct: Iceberg keeps defaults of such columns only."""
    return iceberg(type_, "", []).is_primitive


def _value(chosen: list[Mapping[str, Any]], written: Any) -> Any:
    type_ = chosen[0]  # of several, all are numbers, and the wider one takes any of them
    kind = type_["type"]
    match logical(type_):
        case "decimal":
            return Decimal(int.from_bytes(written.encode(BYTES), "big", signed=True)).scaleb(-type_.get("scale", 0))
        case "uuid":
            return UUID(written) if kind == "string" else UUID(bytes=written.encode(BYTES))
        case "date":
            return date(1970, 1, 1) + timedelta(days=written)
        case str(name):
            moment = EPOCH + timedelta(microseconds=written * 1_000_000 // PER_SECOND[name.rpartition("-")[2]])
            if name.startswith("time-"):
                return moment.strftime("%H:%M:%S.%f")
            return moment.replace(tzinfo=None) if name.startswith("local-") else moment
    if kind in ("bytes", "fixed"):
        return written.encode(BYTES)
    return float(written) if any(member["type"] in ("float", "double") for member in chosen) else written


def held(schema: Any) -> Any:
    """The schema as the clean table's reader: a default that no table can hold is null.

    Else a record written without the field would have one value when it is merged before the field is added, and
    another when it is read again afterwards.
    """
    return _held(schema, resolved(schema, []))


def _held(written: Any, type_: Any) -> Any:
    if isinstance(written, str):
        return written
    if isinstance(written, list):
        return [_held(member, each) for member, each in zip(written, type_, strict=True)]
    match written["type"]:
        case "array":
            return {**written, "items": _held(written["items"], type_["items"])}
        case "map":
            return {**written, "values": _held(written["values"], type_["values"])}
        case "record" | "error":
            both = zip(written["fields"], type_["fields"], strict=True)
            return {**written, "fields": [_held_field(field, each["type"]) for field, each in both]}
        case dict() | list() as inner:
            return {**written, "type": _held(inner, type_)}
    return written


def _held_field(field: Mapping[str, Any], type_: Any) -> dict[str, Any]:
    inner = _held(field["type"], type_)
    if field.get("default") is None or is_single(type_):
        return {**field, "type": inner}
    others = [each for each in members(inner) if each not in ("null", {"type": "null"})]
    return {**field, "type": ["null", *others], "default": None}
