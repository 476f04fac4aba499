"""Columns: what the fields of a schema become."""

import json
from typing import Any

import pytest
from pyiceberg.types import DateType, DecimalType, DoubleType, LongType, StringType, TimestampType, TimestamptzType

from headrace import feed
from headrace.columns import Column, columns
from headrace.errors import FeedError


def avro_column(type_: Any) -> Column:
    fields = [{"name": "id", "type": "string"}, {"name": "field", "type": type_}]
    schema = {"type": "record", "name": "Row", "fields": fields, "feed": {"key": ["id"]}}
    return columns(feed.parse("rows.avsc", json.dumps(schema)))[1]


def json_column(schema: dict[str, Any], *, required: bool = True) -> Column:
    whole = {
        "properties": {"id": {"type": "string"}, "field": schema},
        "required": ["id", "field"] if required else ["id"],
        "x-feed": {"key": ["id"]},
    }
    return columns(feed.parse("rows.json", json.dumps(whole)))[1]


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("string", StringType()),
        ({"type": "long"}, LongType()),
        ({"type": "enum", "name": "E", "symbols": ["a"]}, StringType()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}, DecimalType(12, 2)),
        ({"type": "int", "logicalType": "date"}, DateType()),
        ({"type": "long", "logicalType": "timestamp-millis"}, TimestamptzType()),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, TimestampType()),
    ],
)
def test_an_avro_type_becomes_its_iceberg_type(type_: Any, expected: object) -> None:
    assert avro_column(type_).type == expected


def test_a_union_with_null_is_a_column_that_may_be_null() -> None:
    column = avro_column(["null", "string"])
    assert column.type == StringType()
    assert not column.required


def test_a_union_of_two_types_is_refused_with_its_place() -> None:
    with pytest.raises(FeedError, match="field: a union is null and one other type"):
        avro_column(["string", "long"])


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, LongType()),
        ({"type": "number"}, DoubleType()),
        ({"type": "string", "format": "date-time"}, TimestamptzType()),
    ],
)
def test_a_json_type_becomes_its_iceberg_type(schema: dict[str, Any], expected: object) -> None:
    assert json_column(schema).type == expected


def test_a_json_field_is_required_when_it_is_listed_and_may_not_be_null() -> None:
    assert json_column({"type": "string"}).required
    assert not json_column({"type": ["string", "null"]}).required
    assert not json_column({"type": "string"}, required=False).required
