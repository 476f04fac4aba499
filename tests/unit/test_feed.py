"""Feed files: what they declare, and what is said when they are wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from headrace import feed
from headrace.errors import FeedError

SCHEMAS = Path(__file__).parents[2] / "schemas"


def avro(declaration: dict[str, Any], *fields: dict[str, Any]) -> str:
    some = fields or ({"name": "order_id", "type": "string"}, {"name": "price", "type": "double"})
    return json.dumps({"type": "record", "name": "Order", "fields": list(some), "feed": declaration})


def fault(declaration: dict[str, Any], *fields: dict[str, Any]) -> str:
    with pytest.raises(FeedError) as raised:
        feed.parse("orders.avsc", avro(declaration, *fields))
    return str(raised.value)


@pytest.mark.parametrize("path", feed.files(SCHEMAS), ids=lambda path: path.name)
def test_every_example_is_a_good_feed_that_documents_its_fields(path: Path) -> None:
    example = feed.load(path)
    assert example.name == path.stem
    assert example.doc
    assert all(note.doc for note in example.fields)


def test_a_key_is_all_that_a_feed_needs() -> None:
    orders = feed.parse("orders.avsc", avro({"key": ["order_id"]}))
    assert orders.topic == "orders"
    assert orders.subject == "orders-value"
    assert orders.declaration.merge == "latest"
    assert orders.declaration.warehouses == {}


def test_a_json_schema_declares_its_feed_with_x_feed() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string", "pii": "name"}}, "x-feed": {"key": ["id"]}}
    clicks = feed.parse("clicks.json", json.dumps(schema))
    assert clicks.schema_type == "JSON"
    assert clicks.personal == {"id"}


def test_an_unknown_attribute_names_the_nearest_known_one() -> None:
    assert fault({"key": ["order_id"], "ordr": ["price"]}) == (
        'orders.avsc: feed.ordr is not an attribute. Did you mean "order"?'
    )


def test_an_unknown_attribute_deep_inside_is_explained_by_its_own_place() -> None:
    declared = {"key": ["order_id"], "warehouses": {"finance": {"maks": {}}}}
    assert 'feed.warehouses.finance.maks is not an attribute. Did you mean "mask"?' in fault(declared)


def test_a_misspelt_field_names_the_nearest_field() -> None:
    assert fault({"key": ["order_idd"]}) == (
        'orders.avsc: feed.key names "order_idd", which is not a field. Did you mean "order_id"?'
    )


def test_every_fault_of_a_file_is_told_at_once() -> None:
    told = fault({"key": ["nope"], "order": ["neither"], "correctness": {"sum": ["prise"]}})
    assert len(told.splitlines()) == 3


def test_a_file_without_a_declaration_says_what_to_write() -> None:
    with pytest.raises(FeedError, match=r'feed is missing. The least that makes it a feed: "feed": {"key": \[…\]}'):
        feed.parse("orders.avsc", json.dumps({"type": "record", "name": "Order", "fields": []}))


def test_text_that_is_not_json_is_told_by_line_and_column() -> None:
    with pytest.raises(FeedError, match=r"orders.avsc: line 2, column 1: not JSON"):
        feed.parse("orders.avsc", '{"type":\n}')


def test_a_name_that_no_table_could_have_is_refused() -> None:
    with pytest.raises(FeedError, match=r"got 'Orders-2'\. Rename the file"):
        feed.parse("Orders-2.avsc", avro({"key": ["order_id"]}))


def test_a_warehouse_cannot_do_without_the_key() -> None:
    declared = {"key": ["order_id"], "warehouses": {"finance": {"drop": ["order_id"]}}}
    assert 'drop names "order_id", which is part of the key, and every warehouse needs that' in fault(declared)


def test_a_personal_key_must_be_kept_by_name() -> None:
    personal = {"name": "order_id", "type": "string", "pii": "account"}
    told = fault({"key": ["order_id"], "warehouses": {"finance": {}}}, personal)
    assert 'does not say what becomes of "order_id", which is part of the key and personal' in told


def test_a_field_cannot_be_dropped_and_masked_at_once() -> None:
    declared = {"key": ["order_id"], "warehouses": {"finance": {"drop": ["price"], "mask": {"price": "null"}}}}
    assert 'drops "price" and also keeps or masks it' in fault(declared)


def test_a_field_that_no_column_could_be_named_after_is_refused() -> None:
    told = fault({"key": ["order_id"]}, {"name": "order_id", "type": "string"}, {"name": "_hidden", "type": "string"})
    assert 'the field "_hidden": a name has letters' in told


def test_an_append_feed_has_no_order() -> None:
    assert "Leave order out" in fault({"key": ["order_id"], "merge": "append", "order": ["price"]})


def test_a_check_has_exactly_one_form() -> None:
    both = {"column": "price", "between": [0, 1], "not_null": True}
    assert "a check takes exactly one of" in fault({"key": ["order_id"], "checks": [both]})
