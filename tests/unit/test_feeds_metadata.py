"""A feed as the registry tells it: from a schema's own text, wherever it is registered."""

import json
from typing import Any

import pytest

from headrace.errors import FeedError
from headrace.feed import SchemaType
from headrace.registry import feeds
from headrace.registry.feeds import NAME_PROPERTY, FeedMetadata
from headrace.registry.schema import Reference, SchemaText

DECLARED: dict[str, Any] = {
    "key": ["id"],
    "order": ["revision"],
    "owner": "shop-team",
    "partition": {"field": "day", "by": "month"},
    "correctness": {"sum": ["price"]},
    "warehouses": {"finance": {"keep": ["email"]}, "engineering": {"drop": ["price"]}},
}
FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": "long"},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "price", "type": "double"},
    {"name": "email", "type": "string", "pii": "email"},
]


def avro(declared: Any = DECLARED, **more: Any) -> SchemaText:
    schema = {"type": "record", "name": "Order", "doc": "One order.", "fields": FIELDS, "feed": declared}
    return SchemaText("AVRO", json.dumps(schema), **more)


def test_a_feed_is_told_whole() -> None:
    feed = feeds.feed_of("orders-value", avro())
    assert feed
    assert feeds.metadata(feed, version=3, id_=7).as_json() == {
        "name": "orders",
        "description": "One order.",
        "owner": "shop-team",
        "topic": "orders",
        "subject": "orders-value",
        "type": "AVRO",
        "version": 3,
        "id": 7,
        "key": ["id"],
        "order": ["revision"],
        "merge": "latest",
        "partition": {"field": "day", "by": "month", "immutable": False},
        "schedule": "*/5 * * * *",
        "aggregates": {"sum": ["price"]},
        "personal": ["email"],
        "tables": {"archive": "archive.orders", "clean": "clean.orders", "quarantine": "quarantine.orders"},
        "warehouses": {
            "finance": {
                "keep": ["email"],
                "drop": [],
                "mask": {},
                "flatten": [],
                "index": [],
                "distribute": None,
                "table": "orders",
                "connection": "headrace_warehouse_finance",
            },
            "engineering": {
                "keep": [],
                "drop": ["price"],
                "mask": {},
                "flatten": [],
                "index": [],
                "distribute": None,
                "table": "orders",
                "connection": "headrace_warehouse_engineering",
            },
        },
    }


def test_what_is_told_reads_back_as_it_was() -> None:
    feed = feeds.feed_of("orders-value", avro())
    assert feed
    told = feeds.metadata(feed, version=1, id_=1)
    assert FeedMetadata.model_validate_json(json.dumps(told.as_json())) == told


def test_a_json_schema_is_a_feed_too() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "x-feed": {"key": ["id"]}}
    feed = feeds.feed_of("clicks-value", SchemaText("JSON", json.dumps(schema)))
    assert feed
    assert (feed.name, feed.schema_type) == ("clicks", "JSON")


@pytest.mark.parametrize(
    ("subject", "type_", "text"),
    [
        ("orders-key", "AVRO", avro().text),
        ("orders", "AVRO", avro().text),
        (":.test:orders-value", "AVRO", avro().text),
        ("orders-value", "AVRO", '"string"'),
        ("orders-value", "AVRO", '{"type": "record", "name": "A", "fields": []}'),
        ("orders-value", "JSON", "true"),
        ("orders-value", "JSON", '{"feed": {"key": ["id"]}}'),
    ],
)
def test_a_schema_that_declares_no_feed_is_none(subject: str, type_: SchemaType, text: str) -> None:
    assert feeds.feed_of(subject, SchemaText(type_, text)) is None


@pytest.mark.parametrize(
    ("subject", "schema"),
    [
        ("orders-value", avro({"key": ["nothing"]})),
        ("shop.orders-value", avro()),
        ("orders-value", avro(references=(Reference("Part", "part", 1),))),
    ],
)
def test_a_wrong_declaration_is_an_error(subject: str, schema: SchemaText) -> None:
    with pytest.raises(FeedError):
        feeds.feed_of(subject, schema)


def test_a_feed_that_is_not_named_like_its_topic_is_named_by_the_schemas_metadata() -> None:
    schema = avro(
        {**DECLARED, "topic": {"name": "shop.orders"}}, metadata={"properties": {NAME_PROPERTY: "shop_orders"}}
    )
    feed = feeds.feed_of("shop.orders-value", schema)
    assert feed
    assert (feed.name, feed.topic, feed.subject) == ("shop_orders", "shop.orders", "shop.orders-value")
