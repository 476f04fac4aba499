"""The columns of a feed: its schema's fields as Iceberg types, the hub that every other type system is derived from."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from headrace.errors import FeedError
from headrace.feed import Feed


@dataclass(frozen=True)
class Column:
    """One field of a feed as a column of its clean table."""

    name: str
    type: IcebergType
    required: bool
    doc: str | None = None
    pii: str | None = None


AVRO_PRIMITIVES: Mapping[str, IcebergType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
}
AVRO_LOGICALS: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], IcebergType]] = {
    ("bytes", "decimal"): lambda schema: DecimalType(schema["precision"], schema.get("scale", 0)),
    ("fixed", "decimal"): lambda schema: DecimalType(schema["precision"], schema.get("scale", 0)),
    ("int", "date"): lambda _: DateType(),
    ("long", "timestamp-millis"): lambda _: TimestamptzType(),
    ("long", "timestamp-micros"): lambda _: TimestamptzType(),
    ("long", "local-timestamp-millis"): lambda _: TimestampType(),
    ("long", "local-timestamp-micros"): lambda _: TimestampType(),
}
JSON_PRIMITIVES: Mapping[str, IcebergType] = {
    "boolean": BooleanType(),
    "integer": LongType(),
    "number": DoubleType(),
    "string": StringType(),
}
JSON_FORMATS: Mapping[str, IcebergType] = {"date-time": TimestamptzType(), "date": DateType()}


def columns(feed: Feed) -> list[Column]:
    """The columns of the feed's clean table, in the order of its schema."""
    if feed.schema_type == "AVRO":
        return list(_avro_columns(feed.schema))
    return list(_json_columns(feed.schema))


def _avro_columns(schema: Mapping[str, Any]) -> Iterator[Column]:
    for field in schema["fields"]:
        type_, required = _avro_type(field["type"], path=field["name"])
        yield Column(field["name"], type_, required, field.get("doc"), field.get("pii"))


def _avro_type(schema: Any, *, path: str) -> tuple[IcebergType, bool]:
    """The type of an Avro schema, and whether it refuses null."""
    if isinstance(schema, list):
        members = [member for member in schema if member != "null"]
        if len(members) != 1:
            raise FeedError(f"{path}: a union is null and one other type; got {schema!r}. Use a record instead.")
        return _avro_type(members[0], path=path)[0], len(members) == len(schema)
    if isinstance(schema, str):
        schema = {"type": schema}
    return _avro_named(schema, path=path), True


def _avro_named(schema: Mapping[str, Any], *, path: str) -> IcebergType:
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _avro_type(kind, path=path)[0]
    if logical := AVRO_LOGICALS.get((kind, schema.get("logicalType", ""))):
        return logical(schema)
    if kind in AVRO_PRIMITIVES:
        return AVRO_PRIMITIVES[kind]
    match kind:
        case "enum":
            return StringType()
        case "fixed":
            return FixedType(schema["size"])
        case "record":
            return _struct(_avro_columns(schema))
        case "array":
            return _list(*_avro_type(schema["items"], path=f"{path}[]"))
        case "map":
            element, required = _avro_type(schema["values"], path=f"{path}{{}}")
            return MapType(key_id=0, key_type=StringType(), value_id=0, value_type=element, value_required=required)
    raise FeedError(f"{path}: the Avro type {kind!r} is not supported.")


def _json_columns(schema: Mapping[str, Any]) -> Iterator[Column]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        type_, nullable = _json_type(field, path=name)
        yield Column(name, type_, name in required and not nullable, field.get("description"), field.get("pii"))


def _json_type(schema: Mapping[str, Any], *, path: str) -> tuple[IcebergType, bool]:
    """The type of a JSON Schema, and whether it allows null."""
    declared = schema.get("type")
    kinds = [declared] if isinstance(declared, str) else list(declared or ())
    others = [kind for kind in kinds if kind != "null"]
    if len(others) != 1:
        raise FeedError(f"{path}: needs one type (and null if it may be absent); got {declared!r}.")
    nullable = len(others) < len(kinds)
    match others[0]:
        case "object":
            return _struct(_json_columns(schema)), nullable
        case "array":
            element, element_nullable = _json_type(schema.get("items", {}), path=f"{path}[]")
            return _list(element, not element_nullable), nullable
        case "string" if schema.get("format") in JSON_FORMATS:
            return JSON_FORMATS[schema["format"]], nullable
        case kind if kind in JSON_PRIMITIVES:
            return JSON_PRIMITIVES[kind], nullable
    raise FeedError(f"{path}: the JSON Schema type {others[0]!r} is not supported.")


# Field ids are given by the catalog when the table is made; the zeros here only fill the constructor.
def _struct(fields: Iterator[Column]) -> StructType:
    return StructType(*(NestedField(0, field.name, field.type, required=False, doc=field.doc) for field in fields))


def _list(element: IcebergType, required: bool) -> ListType:
    return ListType(element_id=0, element_type=element, element_required=required)
