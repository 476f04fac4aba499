"""Avro: what each of its types becomes as a column."""

from collections.abc import Mapping
from typing import Any

from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace.columns.avro_names import resolved
from headrace.columns.field_type import FieldType, alike, list_of, map_of, struct, whole
from headrace.columns.texts import TimeText
from headrace.columns.unfit import Unfit

DIGITS = 38
"""What a decimal may have in Iceberg, Arrow, Spark and Redshift."""

PRIMITIVES: Mapping[str, IcebergType] = {
    "null": StringType(),  # a column needs some type; this one is never filled
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
}
LOGICALS: Mapping[tuple[str, str], IcebergType] = {
    ("int", "date"): DateType(),
    ("int", "time-millis"): TimeText(),
    ("long", "time-micros"): TimeText(),
    ("long", "timestamp-millis"): TimestamptzType(),
    ("long", "timestamp-micros"): TimestamptzType(),
    ("long", "timestamp-nanos"): TimestamptzType(),
    ("long", "local-timestamp-millis"): TimestampType(),
    ("long", "local-timestamp-micros"): TimestampType(),
    ("long", "local-timestamp-nanos"): TimestampType(),
    ("string", "uuid"): UUIDType(),
}
NANOS = ("timestamp-nanos", "local-timestamp-nanos")
SIZES = {"uuid": 16, "duration": 12}
DURATION = whole(FieldType(part, LongType(), required=True) for part in ("months", "days", "millis"))

# What Spark reads as one wider number, instead of as a choice.
WIDENED: Mapping[frozenset[str], IcebergType] = {
    frozenset({"int", "long"}): LongType(),
    frozenset({"float", "double"}): DoubleType(),
}


def fields(schema: Mapping[str, Any], unfit: list[Unfit]) -> list[FieldType]:
    """The fields of a record; what cannot be a column is added to `unfit`."""
    return _fields(resolved(schema, unfit), "", unfit)


def _fields(record: Mapping[str, Any], path: str, unfit: list[Unfit]) -> list[FieldType]:
    names = [field["name"] for field in record["fields"]]
    for name in alike(names):
        unfit.append(Unfit(f"{path}{name}", "differs from another field only in capitals.", "Rename one.", name))
    return [
        FieldType(
            field["name"],
            iceberg(field["type"], f"{path}{field['name']}", unfit),
            required=not any(member["type"] == "null" for member in members(field["type"])) and not _emptied(field),
            doc=field.get("doc"),
            cut=any(logical(member) in NANOS for member in members(field["type"])),
        )
        for field in record["fields"]
    ]


def _emptied(field: Mapping[str, Any]) -> bool:
    """Whether a record written without the field has null there, though its default says otherwise (avro_past)."""
    return field.get("default") is not None and not iceberg(field["type"], "", []).is_primitive


def members(type_: Any) -> list[Mapping[str, Any]]:
    """The members of a union; any other type is its own only one."""
    return type_ if isinstance(type_, list) else [type_]


def values(type_: Any) -> list[Mapping[str, Any]]:
    """The members that hold a value."""
    return [member for member in members(type_) if member["type"] != "null"]


def member_name(member: Mapping[str, Any]) -> str:
    """What a union's member is called: its type, or the short name of a named one, as in Avro's own JSON."""
    return str(member.get("name", member["type"])).rpartition(".")[2]


def widened(type_: Any) -> IcebergType | None:
    """The one number type that holds every member of a union, if there is one."""
    return WIDENED.get(frozenset(member["type"] for member in values(type_)))


def logical(type_: Mapping[str, Any]) -> str | None:
    """The logical type; as the specification says, one over another type than its own or unknown here is ignored."""
    kind, name = type_["type"], type_.get("logicalType")
    if (kind, name) in LOGICALS or (kind in ("bytes", "fixed") and name == "decimal"):
        return str(name)
    return str(name) if kind == "fixed" and SIZES.get(str(name)) == type_.get("size") else None


def iceberg(type_: Any, path: str, unfit: list[Unfit]) -> IcebergType:
    """The Iceberg type of a resolved Avro type."""
    if isinstance(type_, list):
        return _union(type_, path, unfit)
    kind = type_["type"]
    match logical(type_), kind:
        case "decimal", _:
            return _decimal(type_, path, unfit)
        case "uuid", _:
            return UUIDType()
        case "duration", _:
            return DURATION
        case str(name), _:
            return LOGICALS[kind, name]
        case _, "fixed":
            return FixedType(type_["size"])
        case _, "record" | "error":
            return struct(_fields(type_, f"{path}.", unfit))
        case _, "array":
            return list_of(iceberg(type_["items"], f"{path}[]", unfit))
        case _, "map":
            return map_of(iceberg(type_["values"], f"{path}{{}}", unfit))
    return PRIMITIVES[kind]


def _union(type_: list[Any], path: str, unfit: list[Unfit]) -> IcebergType:
    chosen = values(type_)
    if len(chosen) < 2:
        return iceberg(chosen[0] if chosen else {"type": "null"}, path, unfit)
    if wide := widened(type_):
        return wide
    names = [member_name(member) for member in chosen]
    for name in alike(names):
        message = f'is a union with two members called "{name}", whatever their namespaces and capitals.'
        unfit.append(Unfit(path, message, "Rename one of the two types.", name))
    return whole(
        FieldType(name, iceberg(member, f"{path}.{name}", unfit), required=False)
        for name, member in zip(names, chosen, strict=True)
    )


def _decimal(type_: Mapping[str, Any], path: str, unfit: list[Unfit]) -> IcebergType:
    precision, scale = type_.get("precision"), type_.get("scale", 0)
    if not (isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision >= 1):
        message = f"is a decimal of precision {precision!r} and scale {scale!r}."
        unfit.append(Unfit(path, message, "Give a precision from 1 to 38, and a scale from 0 to it.", precision))
    elif precision > DIGITS:
        message = f"is a decimal of {precision} digits; Iceberg, Spark and Redshift hold {DIGITS}."
        unfit.append(Unfit(path, message, "Lower its precision, or make it a string.", precision))
    else:
        return DecimalType(precision, scale)
    return StringType()
