"""Columns: what the fields of a schema become, whether they may be null, and what is refused with its place."""

import json
from typing import Any

import pytest
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace import feed
from headrace.columns import Column, JsonText, TimeText, columns
from headrace.errors import FeedError

ADDRESS = {
    "type": "record",
    "name": "Address",
    "namespace": "shop.places",
    "fields": [
        {"name": "street", "type": "string", "pii": "address"},
        {"name": "country", "type": {"type": "enum", "name": "Country", "symbols": ["de", "fr"]}},
    ],
}

HOME = {"street": StringType(), "country": StringType()}


def avro_columns(*fields: Any, **declared: Any) -> dict[str, Column]:
    schema = {
        "type": "record",
        "name": "Row",
        "namespace": "shop",
        "fields": [{"name": "id", "type": "string"}, *fields],
    }
    found = columns(feed.parse("rows.avsc", json.dumps({**schema, "feed": {"key": ["id"], **declared}})))
    return {column.name: column for column in found}


def avro_column(type_: Any) -> Column:
    return avro_columns({"name": "field", "type": type_})["field"]


def json_column(schema: Any, *, required: bool = True, **root: Any) -> Column:
    whole = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "field": schema},
        "required": ["id", "field"] if required else ["id"],
        "x-feed": {"key": ["id"]},
        **root,
    }
    return columns(feed.parse("rows.json", json.dumps(whole)))[1]


def plain(type_: IcebergType) -> Any:
    """A type without field ids, which the catalog gives."""
    match type_:
        case StructType(fields=fields):
            return {field.name: plain(field.field_type) for field in fields}
        case ListType():
            return [plain(type_.element_type)]
        case MapType():
            return ("map", plain(type_.value_type))
    return type_


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("string", StringType()),
        ({"type": "long"}, LongType()),
        ({"type": {"type": "long"}}, LongType()),
        ({"type": "enum", "name": "E", "symbols": ["a"]}, StringType()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}, DecimalType(12, 2)),
        ({"type": "int", "logicalType": "date"}, DateType()),
        ({"type": "string", "logicalType": "date"}, StringType()),
        ({"type": "int", "logicalType": "time-millis"}, TimeText()),
        ({"type": "long", "logicalType": "timestamp-millis"}, TimestamptzType()),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, TimestampType()),
        ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, UUIDType()),
        (["null", "int", "long"], LongType()),
        (["string", "long"], {"string": StringType(), "long": LongType()}),
        (["null", "string", ADDRESS], {"string": StringType(), "Address": HOME}),
        ({"type": "map", "values": ["null", {"type": "array", "items": "long"}]}, ("map", [LongType()])),
    ],
)  # fmt: skip
def test_an_avro_type_becomes_its_iceberg_type(type_: Any, expected: object) -> None:
    assert plain(avro_column(type_).type) == expected


@pytest.mark.parametrize("name", ["shop.places.Country", "Country"])
def test_a_name_is_found_by_its_namespace_and_inside_of_it(name: str) -> None:
    inner = {"type": "record", "name": "shop.places.Stop", "fields": [{"name": "country", "type": "Country"}]}
    found = avro_columns(
        {"name": "home", "type": ADDRESS},
        {"name": "country", "type": {"type": "array", "items": name if "." in name else inner}},
    )["country"]
    assert plain(found.type) == [StringType() if "." in name else {"country": StringType()}]


def test_a_union_with_null_is_a_column_that_may_be_null() -> None:
    assert not avro_column(["null", "string"]).required
    assert not avro_column(["string", "long", "null"]).required
    assert avro_column(["string", "long"]).required


def test_personal_data_inside_a_record_makes_the_column_personal() -> None:
    assert avro_column(["null", ADDRESS]).pii == "address"


def test_every_field_that_cannot_be_a_column_is_told_at_once_with_its_path() -> None:
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "inner", "type": ["null", "Tree"]}]}
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 40}
    geo = {"type": "record", "name": "Geo", "fields": [{"name": "lat", "type": {"type": "array", "items": wide}}]}
    with pytest.raises(FeedError) as told:
        avro_columns({"name": "tree", "type": tree}, {"name": "geo", "type": {"type": "map", "values": geo}})
    lines = str(told.value).splitlines()
    assert lines[0].startswith('rows.avsc: tree.inner refers to "Tree", the record that it is in')
    assert lines[1].startswith("rows.avsc: geo{}.lat[] is a decimal of 40 digits")
    assert [fault.path for fault in told.value.faults] == ["tree.inner", "geo{}.lat[]"]


@pytest.mark.parametrize("place", ["key", "order"])
def test_nanoseconds_neither_identify_nor_order_rows(place: str) -> None:
    at = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-nanos"}}
    assert avro_columns(at)["at"].type == TimestamptzType()
    with pytest.raises(FeedError, match=f'feed.{place} names "at", of which the clean table keeps microseconds'):
        avro_columns(at, **{place: ["at"]})


ANIMAL = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
DEFINED = {
    "$defs": {"animal": ANIMAL, "tree": {"properties": {"of": {"$ref": "#/$defs/tree"}, "at": {"type": "number"}}}}
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, LongType()),
        ({"type": "number"}, DoubleType()),
        ({"minimum": 0}, DoubleType()),
        ({"type": "string", "format": "date-time"}, TimestamptzType()),
        ({"type": "string", "format": "uuid"}, UUIDType()),
        ({"format": "date"}, DateType()),
        ({"enum": ["a", None]}, StringType()),
        ({"enum": ["a", 1]}, JsonText()),
        ({"const": True}, BooleanType()),
        ({"oneOf": [{"const": "a"}, {"const": "b"}, {"const": None}]}, StringType()),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, DoubleType()),
        ({"type": "string", "anyOf": [{"format": "date"}, {"format": "uuid"}]}, JsonText()),
        (True, JsonText()),
        ({"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}}, [[BooleanType()]]),
        ({"type": "array", "items": [{"type": "string"}]}, JsonText()),
        ({"type": "array", "items": {}}, JsonText()),
        ({"type": "object", "additionalProperties": {"type": "number"}}, ("map", DoubleType())),
        ({"type": "object", "additionalProperties": True}, JsonText()),
        ({"type": "object", "patternProperties": {"^x": {"type": "string"}}}, JsonText()),
        ({"type": "object", "properties": {"a": {}, "A": {}}}, JsonText()),
        ({**ANIMAL, "anyOf": [{"required": ["name"]}, {"required": ["tag"]}]}, {"name": StringType()}),
        ({"$ref": "#/$defs/animal"}, {"name": StringType()}),
        ({"oneOf": [{"type": "null"}, {"$ref": "#/$defs/animal"}]}, {"name": StringType()}),
        ({"allOf": [ANIMAL, {"properties": {"age": {"type": "integer"}}}]}, {"age": LongType(), "name": StringType()}),
        ({"allOf": [{"type": ["string", "null"]}, {"type": "string", "format": "date"}]}, DateType()),
        ({"$ref": "#/$defs/tree"}, {"of": JsonText(), "at": DoubleType()}),
    ],
)  # fmt: skip
def test_a_json_schema_becomes_its_iceberg_type(schema: Any, expected: object) -> None:
    found = plain(json_column(schema, **DEFINED).type)
    assert sorted(found.items()) == sorted(expected.items()) if isinstance(expected, dict) else found == expected


def test_older_drafts_keep_their_definitions_elsewhere() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "definitions": {"day": {"type": "string", "format": "date"}},
    }
    assert json_column({"$ref": "#/definitions/day"}, **schema).type == DateType()


def test_a_json_field_is_required_when_it_is_listed_and_may_not_be_null() -> None:
    assert json_column({"type": "string"}).required
    assert not json_column({"type": ["string", "null"]}).required
    assert not json_column({"anyOf": [{"type": "null"}, {"type": "string"}]}).required
    assert not json_column({}).required
    assert not json_column({"type": "string"}, required=False).required
