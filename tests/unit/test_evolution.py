"""Evolution: what a new version says of older records, and what a table's columns need to follow it."""

import json
from typing import Any

import fastavro
import pytest
from avro_defaults import DEFAULTS, logical
from pyiceberg.types import ListType, LongType, MapType, NestedField, StringType, StructType

from headrace import change, feed, fixed
from headrace.columns import JsonText, avro_past, avro_union, columns, field_types, union
from headrace.columns.avro_past import Past
from headrace.errors import FeedError
from headrace.evolution import Added, Rename, changes_of

ID = {"name": "id", "type": "string"}


def parsed(*fields: Any, declared: Any = None) -> feed.Feed:
    schema = {"type": "record", "name": "Row", "fields": [ID, *fields], "feed": {"key": ["id"], **(declared or {})}}
    return feed.parse("rows.avsc", json.dumps(schema))


@pytest.mark.parametrize("kind", DEFAULTS)
def test_a_default_is_told_as_the_column_holds_it(kind: str) -> None:
    type_, written, expected = DEFAULTS[kind]
    found = avro_past.past(
        {"type": "record", "name": "R", "fields": [{"name": "f", "type": type_, "default": written}]}
    )
    assert found["f",].default == expected
    assert type(found["f",].default) is type(expected)


def test_a_default_that_no_table_can_hold_is_null_to_the_reader_and_nothing_else_changes() -> None:
    point = {"type": "record", "name": "Point", "fields": [{"name": "tags", "type": "Tags", "default": []}]}
    tags = {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []}
    point["fields"] = [tags, {"name": "n", "type": "int", "default": 1}]
    fields = [
        {"name": "at", "type": {"type": {"type": "map", "values": ["null", point]}}},
        {"name": "last", "type": ["Point", "null"], "default": {"tags": []}},
        {"name": "choice", "type": ["string", "long"], "default": "x"},
    ]
    held = avro_past.held({"type": "record", "name": "R", "fields": fields})["fields"]
    inside = held[0]["type"]["type"]["values"][1]["fields"]
    assert inside[0] == {"name": "tags", "type": ["null", tags["type"]], "default": None}
    assert inside[1] == point["fields"][1]
    assert held[1] == {"name": "last", "type": ["null", "Point"], "default": None}
    assert held[2] == {"name": "choice", "type": ["null", "string", "long"], "default": None}
    made = parsed(*fields)
    assert [column.required for column in columns(made)] == [True, True, False, False]


def test_the_union_of_versions_knows_dropped_fields_and_no_renamed_ones() -> None:
    status = {"type": "enum", "name": "Status", "symbols": ["a"]}
    point = {"type": "record", "name": "Point", "namespace": "geo", "fields": [
        {"name": "lat", "type": "double"}, {"name": "was", "type": status}]}  # fmt: skip
    old = {"type": "record", "name": "R", "namespace": "n", "fields": [
        ID, {"name": "at", "type": ["null", point]}, {"name": "from", "type": "geo.Point"},
        {"name": "status", "type": "geo.Status"}, {"name": "n", "type": "int", "default": 1},
        {"name": "never", "type": "int"}]}  # fmt: skip
    newer = {**point, "fields": [{"name": "latitude", "type": "double", "aliases": ["lat"]}]}
    new = {"type": "record", "name": "R", "fields": [
        ID, {"name": "at", "type": [newer, "null"]}, {"name": "number", "type": "long", "aliases": ["n"]}]}  # fmt: skip
    inner = struct(("latitude", StringType()), ("was", StringType()))
    texts = [("id", StringType()), ("status", StringType()), ("number", LongType())]
    whole = avro_union.united(new, [new, old], struct(*texts, ("at", inner), ("from", inner)))
    fastavro.parse_schema(whole)
    names = {field["name"]: field for field in whole["fields"]}
    assert list(names) == ["id", "at", "number", "from", "status"]
    assert [each["name"] for each in names["at"]["type"][0]["fields"]] == ["latitude", "was"]
    assert names["at"]["type"][1] == {"type": "null"}
    assert names["from"]["default"] is None
    assert names["status"]["type"][1] == "geo.Status"


def test_what_only_a_version_that_never_ran_has_is_not_read() -> None:
    now, other = struct(("a", LongType())), {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]}
    mine = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}
    assert [each["name"] for each in avro_union.united(mine, [other], now)["fields"]] == ["a"]


def test_a_json_feed_reads_the_properties_that_it_dropped() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "number"}}}
    moment = {"type": "string", "format": "date-time"}
    old = {"properties": {"id": {"type": "string"}, "free": {}, "at": moment, "in": inner}}
    new = {"properties": {"id": {"type": "string"}, "in": {"type": "object", "properties": {"x": {"type": "number"}}}}}
    made = feed.parse("rows.json", json.dumps({"type": "object", **new, "x-feed": {"key": ["id"]}}))
    there = struct(*field_types("JSON", old).items())
    whole = union.reader(made, [json.dumps(new), json.dumps(old), '{"type": "object"}'], there=there)
    found = field_types("JSON", whole)
    assert list(found) == ["id", "in", "free", "at"]
    assert isinstance(found["free"], JsonText)
    assert str(found["in"]) == "struct<0: x: optional double, 0: y: optional double>"
    assert union.reader(made, [], there=struct(("id", StringType()))) is made.schema


def struct(*fields: tuple[str, Any]) -> StructType:
    return StructType(*(NestedField(0, name, type_, required=False) for name, type_ in fields))


def test_an_alias_renames_a_column_that_is_there_at_any_depth() -> None:
    line, items = struct(("sku", StringType())), struct(("article", StringType()), ("unit", StringType()))
    now = struct(
        ("n", LongType()), ("lines", ListType(0, line, False)), ("by", MapType(0, StringType(), 0, line, False))
    )
    wanted = struct(
        ("number", LongType()), ("items", ListType(0, items, False)), ("by", MapType(0, StringType(), 0, items, False))
    )
    past = {
        ("number",): Past(("none", "n")),
        ("items",): Past(("lines",)),
        ("items", "element", "article"): Past(("sku",)),
        ("items", "element", "unit"): Past((), "piece"),
        ("by", "value", "article"): Past(("sku",)),
    }
    found = list(changes_of(now, wanted, past=past))
    assert [each for each in found if isinstance(each, Rename)] == [
        Rename(("n",), "number"),
        Rename(("lines",), "items"),
        Rename(("lines", "element", "sku"), "article"),
        Rename(("by", "value", "sku"), "article"),
    ]
    added = [(each.path, each.default) for each in found if isinstance(each, Added)]
    assert added == [(("items", "element", "unit"), "piece"), (("by", "value", "unit"), None)]


def test_a_name_that_is_still_a_field_is_not_an_earlier_one() -> None:
    now, wanted = struct(("a", LongType())), struct(("b", LongType()), ("a", LongType()))
    (added,) = changes_of(now, wanted, past={("b",): Past(("a",))})
    assert isinstance(added, Added)
    both = struct(("a", LongType()), ("b", LongType()))
    assert list(changes_of(both, struct(("b", LongType())), past={("b",): Past(("a",))})) == []


def test_one_column_is_renamed_once_and_other_capitals_are_a_rename() -> None:
    now, wanted = struct(("a", LongType()), ("Name", StringType())), struct(("b", LongType()), ("c", LongType()))
    past = {("b",): Past(("a",)), ("c",): Past(("a",))}
    assert [type(each) for each in changes_of(now, wanted, past=past)] == [Rename, Added]
    assert list(changes_of(now, struct(("name", StringType())), past={})) == [Rename(("Name",), "name")]


def test_key_order_and_partition_may_be_renamed_by_an_alias_and_by_nothing_else() -> None:
    at = logical("long", "timestamp-millis")
    fields = [{"name": "revision", "type": "long"}, {"name": "made", "type": at}]
    declared = {"order": ["revision"], "partition": {"field": "made"}}
    before = parsed(*fields, declared=declared)
    renamed = {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "key", "type": "string", "aliases": ["id"]},
            {"name": "rev", "type": "long", "aliases": ["revision"]},
            {"name": "made_at", "type": at, "aliases": ["made"]},
        ],
        "feed": {"key": ["key"], "order": ["rev"], "partition": {"field": "made_at"}},
    }
    after = feed.parse("rows.avsc", json.dumps(renamed))
    assert list(fixed.rebuilds(after, before, origin="main")) == []
    for field in renamed["fields"]:  # type: ignore[attr-defined]
        field.pop("aliases")
    bare = feed.parse("rows.avsc", json.dumps(renamed))
    assert [fault.path for fault in fixed.rebuilds(bare, before, origin="main")] == [
        "feed.key", "feed.order", "feed.partition",
    ]  # fmt: skip


def test_a_patch_feeds_order_is_fixed_for_no_rebuild_mends_it() -> None:
    fields = [{"name": "revision", "type": "long"}, {"name": "edition", "type": "long"}]
    before, after = (parsed(*fields, declared={"merge": "patch", "order": [name]}) for name in ("revision", "edition"))
    (fault,) = fixed.rebuilds(after, before, origin="main")
    assert (fault.path, fault.severity) == ("feed.order", "error")
    assert "headrace new --breaks" in str(fault)


def test_another_field_of_the_key_is_no_rename_though_an_alias_says_so() -> None:
    other = {"name": "code", "type": "string", "aliases": ["id"]}
    before, after = parsed({"name": "code", "type": "string"}), parsed(other, declared={"key": ["code"]})
    assert [fault.path for fault in fixed.rebuilds(after, before, origin="main")] == ["feed.key"]


def test_another_default_is_warned_of_since_merged_rows_keep_the_old_one() -> None:
    old, new = (parsed({"name": "n", "type": "int", "default": number}) for number in (1, 2))
    (fault,) = change.declared_faults(new, change.Earlier("main", old))
    assert (fault.path, fault.severity) == ("fields.1", "warning")
    assert 'the field "n" had the default 1 in main' in fault.message


def test_only_json_may_read_values_without_an_id_by_the_latest_version() -> None:
    with pytest.raises(FeedError, match=r'feed\.unframed is "latest"; only JSON'):
        parsed(declared={"unframed": "latest"})
    assert parsed(declared={"unframed": 1}).declaration.unframed == 1
    text = {"properties": {"id": {"type": "string"}}, "x-feed": {"key": ["id"], "unframed": "latest"}}
    assert feed.parse("rows.json", json.dumps(text)).declaration.unframed == "latest"


def test_another_version_for_bare_avro_is_refused() -> None:
    old, new = (parsed(declared={"unframed": number}) for number in (1, 2))
    (fault,) = change.declared_faults(new, change.Earlier("main", old))
    assert (fault.path, fault.severity) == ("feed.unframed", "error")
