"""Feed files: what they declare, and what is said when they are wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import feed
from headrace.errors import FeedError

SCHEMAS = Path(__file__).parents[2] / "schemas"
ID = {"name": "order_id", "type": "string"}
PRICE = {"name": "price", "type": "double"}
FIELDS = (
    ID,
    PRICE,
    {"name": "revision", "type": "long"},
    {"name": "deleted", "type": "boolean"},
    {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["placed", "paid"]}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "lines", "type": {"type": "array", "items": "string"}},
    {"name": "email", "type": ["null", "string"], "default": None, "pii": "email"},
    {"name": "address", "type": {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}},
)


WORDS = st.sampled_from([
    "key", "order", "topic", "name", "type", "fields", "properties", "feed", "x-feed", "checks", "column",
    "between", "items", "partition", "field", "warehouses", "mask", "delete", "one_of", "drains", "pii",
    "$ref", "anyOf", "record", "object", "null", "enum", "symbols", "string", "id", "#", "#/properties/id",
    "hash", "latest", "expect", "schedule", "matches", "alerts", "to", "keep", "*", "(", "true", "false",
])  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)


def avro(declaration: Any, *fields: Any) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields or (ID, PRICE)), "feed": declaration})


def fault(declaration: Any, *fields: Any) -> str:
    with pytest.raises(FeedError) as raised:
        feed.parse("orders.avsc", avro(declaration, *fields))
    assert str(raised.value).splitlines() == [str(each) for each in raised.value.faults]
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


def test_hidden_files_are_no_feeds(tmp_path: Path) -> None:
    for name in (".editor.json", "orders.avsc", "notes.txt"):
        (tmp_path / name).write_text("{}")
    assert [path.name for path in feed.files(tmp_path)] == ["orders.avsc"]


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


@pytest.mark.parametrize("name", ["import", "rebuild", "replay", "upkeep", "watch"])
def test_a_feed_is_not_called_like_a_dag_of_the_platform(name: str) -> None:
    with pytest.raises(FeedError, match=f"DAG of its own called {name}"):
        feed.parse(f"{name}.avsc", (SCHEMAS / "orders.avsc").read_text(encoding="utf-8"))


def test_a_warehouse_cannot_do_without_the_key() -> None:
    declared = {"key": ["order_id"], "warehouses": {"finance": {"drop": ["order_id"]}}}
    assert 'drop names "order_id", which is part of the key, and every warehouse needs that' in fault(declared)


def test_a_personal_key_must_be_kept_or_hashed_by_name() -> None:
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


def test_a_hashed_key_is_a_key() -> None:
    personal = {"name": "order_id", "type": "string", "pii": "account"}
    declared = {"key": ["order_id"], "warehouses": {"finance": {"mask": {"order_id": "hash"}}}}
    assert feed.parse("orders.avsc", avro(declared, personal)).personal == {"order_id"}


def test_any_other_mask_would_let_rows_of_different_keys_fall_together() -> None:
    declared = {"key": ["order_id"], "warehouses": {"finance": {"mask": {"order_id": "last4"}}}}
    assert 'mask.order_id is "last4", but "order_id" is part of the key' in fault(declared)


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"order": ["revison"]}, 'feed.order names "revison", which is not a field. Did you mean "revision"?'),
        ({"key": ["price"]}, 'feed.key names "price", a field of kind float; a key needs an exact, single value.'),
        ({"key": ["lines"]}, 'feed.key names "lines", a field of kind array'),
        ({"key": ["address"]}, 'feed.key names "address", a field of kind struct'),
        ({"key": ["order_id", "order_id"]}, 'feed.key names "order_id" more than once'),
        ({"order": ["lines"]}, 'feed.order names "lines", a field of kind array'),
        ({"correctness": {"sum": ["status"]}}, 'feed.correctness.sum names "status", a field of kind string'),
        ({"partition": {"field": "status"}}, "a partition needs a date or a timestamp"),
        ({"partition": {"field": "day", "by": "hour"}}, 'feed.partition.by is "hour", but "day" is a date'),
        ({"partition": {"field": "day", "by": "week"}}, '"week", which is not one of hour, day, month, year'),
        ({"delete": {"field": "status"}}, "only a boolean deletes by being true. Name the values that delete."),
        ({"delete": {"field": "status", "one_of": ["pait"]}}, '"pait", which "status" never is. Did you mean "paid"?'),
        ({"delete": {"field": "revision", "one_of": ["1"]}}, 'has "1", but "revision" is a whole number'),
        ({"merge": "append", "delete": {"field": "deleted"}}, "does not go with append, which has no deletes"),
        ({"checks": [{"column": "price", "between": [9, 1]}]}, "feed.checks.0.between has its larger value first"),
        ({"checks": [{"column": "price", "between": ["a", "b"]}]}, 'has "a", but "price" is a number'),
        ({"checks": [{"column": "price", "between": [1]}]}, "feed.checks.0.between.1 is missing. It takes two values."),
        ({"checks": [{"column": "day", "between": ["1/2/26", "2026-01-01"]}]}, '"day" is a date, such as "2026-01-31"'),
        ({"checks": [{"column": "order_id", "matches": "("}]}, "is not a regular expression"),
        ({"checks": [{"column": "order_id", "matches": "(?P<a>b)"}]}, "Java writes a named group as (?<name>…)"),
        ({"checks": [{"column": "lines", "one_of": ["a"]}]}, "this check needs a single value"),
        ({"checks": [{"column": "order_id", "between": ["a", "b"]}]}, "between needs numbers, dates or timestamps"),
        ({"checks": [{"column": "day", "one_of": ["20260131"]}]}, '"day" is a date, such as "2026-01-31"'),
        ({"checks": [{"column": "revision", "one_of": [2**63]}]}, '"revision" is a whole number of at most 64 bits'),
        ({"owner": " "}, "feed.owner is empty."),
        ({"schedule": "R R * * *"}, "which is another time whenever it is read"),
        ({"checks": [{"column": "price", "not_null": False}]}, "not_null is false; it has to be true."),
        ({"partition": {"field": "day", "by": "week"}}, 'is "week", which is not one of hour, day, month, year.'),
        ({"checks": [{"between": [0, 1]}]}, "between needs the column that it is about"),
        ({"checks": [{"unique": True}]}, "unique needs the column that it is about"),
        ({"checks": [{"column": "price", "row_count": [1, 2]}]}, "row_count takes no column"),
        ({"checks": [{"column": "price", "unique": ["price", "day"]}]}, "unique takes no column"),
        ({"checks": [{"unique": ["price", "dya"]}]}, 'feed.checks.0.unique names "dya", which is not a field'),
        ({"checks": [{"unique": ["day", "day"]}]}, "names a field more than once"),
        ({"checks": [{"column": "price", "length": [1, 2]}]}, "length needs a text"),
        ({"checks": [{"column": "order_id", "length": [2, 1]}]}, "feed.checks.0.length has its larger number first"),
        ({"checks": [{"column": "order_id", "length": [None, None]}]}, "feed.checks.0.length has no limit"),
        ({"checks": [{"row_count": [9, 1]}]}, "feed.checks.0.row_count has its larger number first"),
        ({"checks": [{"row_count": [1, 2], "mostly": 0.5}]}, "mostly goes with what is asked of each row"),
        ({"checks": [{"column": "price", "not_null": True, "mostly": 2}]}, "feed.checks.0.mostly is 2"),
        (
            {"checks": [{"column": "price", "not_null": True, "mostly": 0.5, "severity": "quarantine"}]},
            "feed.checks.0.mostly does not go with quarantine",
        ),
        ({"checks": [{"column": "price", "one_of": []}]}, "is []; it has to be at least 1 long"),
        ({"checks": [{"column": "price", "not_null": True, "arguments": {"a": 1}}]}, "they belong to expect"),
        ({"schedule": "*/5 * * *"}, '"*/5 * * *", which is not a cron expression. Write five fields'),
        ({"schedule": "* * * * * *"}, "which is not a cron expression"),
        ({"schedule": "0 0 31 2 *"}, "a date that never comes"),
        ({"topic": {"name": "a b"}}, 'feed.topic.name is "a b"; a topic has letters'),
        ({"topic": {"drains": {"topic": ".."}}}, 'feed.topic.drains.topic is ".."'),
        ({"topic": {"drains": {"topic": "orders"}}}, "which is this feed's own topic"),
        ({"topic": {"drains": {"topic": "old", "fields": {"prise": "cost"}}}}, 'names "prise", which is not a field'),
        ({"topic": "orders"}, 'feed.topic is "orders"; it has to be an object'),
        ({"topic": {"partitions": "3"}}, 'feed.topic.partitions is "3"; it has to be a whole number'),
        ({"topic": {"partitions": 0}}, "is 0; it has to be at least 1"),
        ({"topic": {"compaction": 1}}, "is 1; it has to be true or false"),
        ({"topic": {"retention": "7 days"}}, "a duration is a whole number and a unit"),
        ({"topic": {"largest_message": "16 parsecs"}}, "a size is a number of bytes, or a number and a unit"),
        ({"partition": {}}, "feed.partition.field is missing: a date or timestamp field."),
        ({"warehouses": {"Finance": {}}}, "feed.warehouses.Finance is no name of a warehouse"),
        ({"warehouses": {"finance": {"mask": {"status": "year"}}}}, "only a date or a timestamp has a year"),
        ({"warehouses": {"finance": {"mask": {"day": "last4"}}}}, "has last four characters"),
        ({"warehouses": {"finance": {"mask": {"email": "hsah"}}}}, 'Did you mean "hash"?'),
        ({"warehouses": {"finance": {"keep": ["email"], "mask": {"email": "hash"}}}}, "and also masks it"),
        ({"alerts": {"to": ["somebody"]}}, 'names "somebody", which is not a mail address'),
        (
            {"merge": "patch", "topic": {"drains": {"topic": "old"}}},
            "feed.topic.drains does not go with patch",
        ),
        (
            {
                "checks": [
                    {"expect": "expect_table_row_count_to_equal", "arguments": {"value": 1}, "severity": "quarantine"}
                ]
            },
            "which goes with between, one_of, matches, not_null: they judge one record alone",
        ),
    ],
)
def test_a_declaration_that_does_not_fit_its_fields_is_explained(declared: dict[str, Any], told: str) -> None:
    assert told in fault({"key": ["order_id"], **declared}, *FIELDS)


@pytest.mark.parametrize(
    "declared",
    [
        {"order": ["revision"], "merge": "first"},
        {"delete": {"field": "deleted"}},
        {"delete": {"field": "status", "one_of": ["placed"]}},
        {"partition": {"field": "placed_at", "by": "hour"}, "schedule": "@daily"},
        {"checks": [{"column": "order_id", "matches": r"^\p{L}+$"}]},
        {"checks": [{"column": "order_id", "matches": "(?<shop>a+)-(?<!b)1"}]},
        {"checks": [{"column": "day", "between": ["2026-01-01", "2026-02-01"]}]},
        {"topic": {"name": "shop.orders-2", "retention": "forever", "largest_message": "16 MiB", "compaction": True}},
        {"topic": {"drains": {"topic": "old_orders", "fields": {"price": "cost"}}}},
        {"warehouses": {"finance": {"mask": {"email": "hash", "day": "year", "status": "null", "address": "hash"}}}},
        {"retention": {"archive": "10d"}, "runs": {"retries": 0, "time_limit": "90s"}},
        {"alerts": {"to": ["a@b.c"], "lag": 5}},
    ],
)
def test_a_declaration_that_fits_is_taken(declared: dict[str, Any]) -> None:
    feed.parse("orders.avsc", avro({"key": ["order_id"], **declared}, *FIELDS))


def test_a_broken_attribute_does_not_hide_what_is_wrong_elsewhere() -> None:
    checks = [{"column": "price"}, {"column": "prise", "not_null": True}]
    declared = {
        "key": "order_id",
        "ordr": [],
        "partition": {"by": "day"},
        "checks": checks,
        "correctness": {"sum": ["x"]},
    }
    paths = [each.path for each in feed.read("orders.avsc", avro(declared)).faults]
    broken = ["feed.checks.0", "feed.key", "feed.ordr", "feed.partition.field"]
    assert sorted(paths) == sorted([*broken, "feed.checks.1.column", "feed.correctness.sum"])


def test_a_broken_schema_does_not_hide_a_misspelt_attribute() -> None:
    text = json.dumps({"type": "enum", "fields": [{"type": "string"}], "feed": {"key": ["id"], "ordr": ["x"]}})
    assert [each.path for each in feed.read("orders.avsc", text).faults] == ["feed.ordr", "type"]


@given(root=st.dictionaries(WORDS, ANYTHING), declared=ANYTHING, fields=ANYTHING)
def test_whatever_stands_in_a_file_is_told_and_never_an_accident(root: Any, declared: Any, fields: Any) -> None:
    for file in ("rows.avsc", "rows.json"):
        whole = {"type": "record", "name": "Row", **root, "fields": fields, "feed": declared, "x-feed": declared}
        found = feed.read(file, json.dumps(whole))
        assert found.feed is not None
        assert all(each.file == file and each.message for each in found.faults)


def test_a_list_that_was_forgotten_is_written_down() -> None:
    assert 'feed.key is "order_id"; it has to be a list. Write ["order_id"].' in fault({"key": "order_id"})


@pytest.mark.parametrize(
    ("file", "schema", "fix"),
    [
        ("orders.avsc", {"type": "record", "x-feed": {}}, 'Did you mean "x-feed"? Rename it.'),
        ("orders.json", {"type": "object", "feed": {}}, 'Did you mean "feed"? Rename it.'),
        ("orders.avsc", {"type": "record", "fed": {}}, 'Did you mean "fed"? Rename it.'),
    ],
)
def test_a_declaration_under_another_name_is_recognised(file: str, schema: dict[str, Any], fix: str) -> None:
    told = feed.read(file, json.dumps(schema)).faults[0]
    assert (told.path, told.message) == (feed.ATTRIBUTES[feed.SUFFIXES[Path(file).suffix]], "is missing.")
    assert told.fix == fix


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"feed": {}, "feed": {}}', '"feed" stands twice in one object'),
        ('{"feed": NaN}', "NaN is not JSON"),
        ("[]", "a schema is a JSON object; got []"),
        ("", "is empty. headrace new writes"),
        ("\ufeff{}", "begins with a byte order mark"),
        ("[" * 100_000, "is nested too deeply to be read"),
        ('{"a":' * 100_000, "is nested too deeply to be read"),
    ],
)
def test_text_that_only_some_would_read_is_refused(text: str, told: str) -> None:
    assert told in " ".join(str(each) for each in feed.read("orders.avsc", text).faults)


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "orders.avsc").write_bytes(b'{"doc": "\xff"}')
    with pytest.raises(FeedError, match=r"orders.avsc: byte 9 is not UTF-8"):
        feed.load(tmp_path / "orders.avsc")


def test_a_file_of_another_kind_is_no_feed(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match=r"ends in .avsc or .json, not '.yaml'"):
        feed.parse("orders.yaml", "{}")


def test_two_fields_that_differ_only_in_case_are_refused() -> None:
    assert 'the field "ORDER_ID" has the name of "order_id"' in fault(
        {"key": ["order_id"]}, ID, {**ID, "name": "ORDER_ID"}
    )


@pytest.mark.parametrize("note", ["PII", "x-pii", "Pii"])
def test_a_personal_note_that_nobody_would_read_is_refused(note: str) -> None:
    assert 'Did you mean "pii"?' in fault({"key": ["order_id"]}, {**ID, note: "account"})


@pytest.mark.parametrize("value", [True, "", 1, None])
def test_a_personal_note_says_the_kind(value: object) -> None:
    assert "it is a word for the kind of personal data, or false" in fault({"key": ["order_id"]}, {**ID, "pii": value})


def test_the_description_of_a_declaration_goes_before_the_schemas_own() -> None:
    schema = {"type": "record", "name": "Order", "doc": "The schema's.", "fields": [ID], "feed": {"key": ["order_id"]}}
    assert feed.parse("orders.avsc", json.dumps(schema)).doc == "The schema's."
    schema["feed"] = {"key": ["order_id"], "description": "The feed's."}
    assert feed.parse("orders.avsc", json.dumps(schema)).doc == "The feed's."


def test_personal_data_deep_inside_makes_its_column_personal() -> None:
    street = {"type": "record", "name": "Street", "fields": [{"name": "name", "type": "string", "pii": "address"}]}
    home = {
        "type": "record",
        "name": "Home",
        "fields": [{"name": "streets", "type": {"type": "array", "items": street}}],
    }
    again = {"name": "work", "type": ["null", {"type": "map", "values": "Home"}]}
    orders = feed.parse("orders.avsc", avro({"key": ["order_id"]}, ID, {"name": "home", "type": home}, again, PRICE))
    assert orders.personal == {"home", "work"}


def test_a_record_that_contains_itself_twice_is_read_in_no_time() -> None:
    node = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": side, "type": ["null", "Node"]} for side in "abcdefgh"],
    }
    assert (
        feed.parse("orders.avsc", avro({"key": ["order_id"]}, ID, {"name": "tree", "type": node})).personal
        == frozenset()
    )


def test_a_json_schemas_notes_behind_references_count() -> None:
    schema = {
        "x-feed": {"key": ["id"], "partition": {"field": "at"}},
        "allOf": [{"$ref": "#/$defs/Base"}],
        "properties": {
            "id": {"$ref": "#/$defs/Id"},
            "home": {"type": ["object", "null"], "properties": {"street": {"$ref": "#/$defs/Street"}}},
            "friend": {"anyOf": [{"type": "null"}, {"$ref": "#"}]},
        },
        "required": ["id"],
        "$defs": {
            "Id": {"type": "string", "description": "Identifies it."},
            "Street": {"type": "string", "pii": "address"},
            "Base": {"properties": {"at": {"type": "string", "format": "date-time"}}, "required": ["at"]},
        },
    }
    people = feed.parse("people.json", json.dumps(schema))
    found = {field.name: (field.kind, field.nullable, field.doc, field.pii) for field in people.fields}
    assert found == {
        "id": ("string", False, "Identifies it.", None),
        "home": ("struct", True, None, "address"),
        "friend": ("unknown", True, None, "address"),
        "at": ("timestamp", False, None, None),
    }


def json_feed(given: Any, **more: Any) -> str:
    """A feed of an id and of one property, with more in its root."""
    properties = {"id": {"type": "string"}, "given": given}
    return json.dumps({"type": "object", "properties": properties, "x-feed": {"key": ["id"]}, **more})


NOTED = {"type": "string", "pii": "email"}
NOTED_IN_JSON: list[tuple[Any, dict[str, Any]]] = [
    ({"items": NOTED}, {}),
    ({"items": [{"type": "string"}, NOTED]}, {}),
    ({"prefixItems": [NOTED]}, {}),
    ({"items": [], "additionalItems": NOTED}, {}),
    ({"unevaluatedItems": NOTED}, {}),
    ({"contains": NOTED}, {}),
    ({"additionalProperties": NOTED}, {}),
    ({"unevaluatedProperties": NOTED}, {}),
    ({"patternProperties": {"^x": NOTED}}, {}),
    ({"propertyNames": NOTED}, {}),
    ({"if": {"type": "object"}, "then": {"properties": {"a": NOTED}}}, {}),
    ({"if": {"type": "object"}, "else": NOTED}, {}),
    ({"dependentSchemas": {"a": {"properties": {"b": NOTED}}}}, {}),
    ({"dependencies": {"a": {"properties": {"b": NOTED}}}}, {}),
    ({"properties": {"pii": NOTED}}, {}),
    ({"properties": {"default": NOTED}}, {}),
    ({"$ref": "#/$defs/Mail"}, {"$defs": {"Mail": NOTED}}),
    ({"$ref": "#/$defs/E%20Mail"}, {"$defs": {"E Mail": NOTED}}),
    ({"$ref": "#/oneOf/0"}, {"oneOf": [NOTED, {}]}),
    ({"$ref": "#mail"}, {"$defs": {"Mail": {"$anchor": "mail", **NOTED}}}),
    ({"$ref": "#mail"}, {"definitions": {"Mail": {"$id": "#mail", **NOTED}}}),
    ({"items": [{"$ref": "people.json#/$defs/A"}]}, {"$id": "people.json", "oneOf": [{"properties": {"a": NOTED}}]}),
    ({"$dynamicRef": "#mail"}, {"$defs": {"Mail": {"$dynamicAnchor": "mail", **NOTED}}}),
    ({}, {"allOf": [{"properties": {"given": NOTED}}]}),
    ({}, {"if": {"required": ["given"]}, "then": {"properties": {"given": NOTED}}}),
    ({}, {"dependentSchemas": {"id": {"properties": {"given": NOTED}}}}),
    ({}, {"patternProperties": {"^giv": NOTED}}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "more"), NOTED_IN_JSON, ids=[json.dumps(each) for each in NOTED_IN_JSON])
def test_a_personal_note_counts_wherever_it_stands_in_a_json_schema(given: Any, more: dict[str, Any]) -> None:
    found = {field.name: field.kinds for field in feed.read("people.json", json_feed(given, **more)).feed.fields}
    assert found["given"] == ("email",)
    assert found["id"] == ()


@pytest.mark.parametrize("note", [{"x-pii": "email"}, {"pii": True}, {"pii": ["email"]}, {"PII": "email"}])
@pytest.mark.parametrize("place", range(len(NOTED_IN_JSON)))
def test_a_mistaken_note_is_told_wherever_it_stands_in_a_json_schema(place: int, note: dict[str, Any]) -> None:
    text = json_feed(*NOTED_IN_JSON[place][:1], **NOTED_IN_JSON[place][1])
    mistaken = text.replace('"pii": "email"', json.dumps(note)[1:-1])
    told = [str(each) for each in feed.read("people.json", mistaken).faults]
    wanted = "it is a word for the kind" if "pii" in note else f'notes "{next(iter(note))}"'
    assert any(wanted in each for each in told), told


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({"const": {"pii": "email"}}, {}),
        ({"enum": [{"pii": "email"}]}, {}),
        ({"default": {"pii": True}}, {}),
        ({"examples": [{"x-pii": 1}]}, {}),
        ({"properties": {"pii": {"type": "string"}, "x-pii": {"type": "string"}}}, {}),
        ({"dependentRequired": {"pii": ["a"]}}, {}),
        ({"pii": False}, {}),
        ({"items": {"pii": False}}, {}),
        ({}, {"$defs": {"Nobody": NOTED}}),
        ({}, {"patternProperties": {"^x_": NOTED}, "additionalProperties": NOTED}),
        ({}, {"pii": False}),
    ],
)
def test_what_is_data_or_somebody_elses_is_no_personal_note(given: Any, more: dict[str, Any]) -> None:
    found = feed.read("people.json", json_feed(given, **more))
    assert found.faults == ()
    assert found.feed.personal == frozenset()


MAIL = {"type": "string", "pii": "email"}
NOTED_IN_AVRO: list[Any] = [
    MAIL,
    ["null", MAIL],
    {"type": MAIL},
    {"type": "string", "pii": "email", "logicalType": "uuid"},
    {"type": "array", "items": MAIL},
    {"type": "array", "items": ["null", MAIL]},
    {"type": "array", "items": "string", "pii": "email"},
    {"type": "map", "values": MAIL},
    {"type": "record", "name": "R", "fields": [{"name": "pii", "type": MAIL}]},
    {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "map", "values": MAIL}}]},
    {"type": "record", "name": "R", "pii": "email", "fields": []},
    {"type": "enum", "name": "E", "symbols": ["pii"], "pii": "email"},
    {"type": "fixed", "name": "F", "size": 4, "pii": "email"},
]


@pytest.mark.parametrize("type_", NOTED_IN_AVRO, ids=json.dumps)
def test_a_personal_note_counts_wherever_it_stands_in_an_avro_schema(type_: Any) -> None:
    name = type_.get("name", "string") if isinstance(type_, dict) else "string"
    again = {"name": "again", "type": ["null", name], "default": None}
    text = avro({"key": ["order_id"]}, ID, {"name": "given", "type": type_}, again)
    found = {field.name: field.kinds for field in feed.parse("orders.avsc", text).fields}
    assert found == {"order_id": (), "given": ("email",), "again": ("email",) if name != "string" else ()}


@pytest.mark.parametrize("note", [{"x-pii": "email"}, {"pii": True}, {"pii": None}])
@pytest.mark.parametrize("type_", NOTED_IN_AVRO, ids=json.dumps)
def test_a_mistaken_note_is_told_once_wherever_it_stands_in_an_avro_schema(type_: Any, note: dict[str, Any]) -> None:
    name = type_.get("name", "string") if isinstance(type_, dict) else "string"
    fields = [ID, {"name": "given", "type": type_}, {"name": "again", "type": name}]
    mistaken = avro({"key": ["order_id"]}, *fields).replace('"pii": "email"', json.dumps(note)[1:-1])
    [told] = feed.read("orders.avsc", mistaken).faults
    assert told.path.startswith("fields.1.type")
    assert 'the field "given"' in told.message or told.path.endswith(".pii")


def test_two_types_of_one_short_name_both_count() -> None:
    def street(namespace: str, **note: str) -> dict[str, Any]:
        fields = [{"name": "name", "type": "string", **note}]
        return {"type": "record", "name": "Street", "namespace": namespace, "fields": fields}

    fields = [
        {"name": "home", "type": street("a", pii="address")},
        {"name": "work", "type": street("b")},
        {"name": "other", "type": ["null", "a.Street"]},
    ]
    orders = feed.parse("orders.avsc", avro({"key": ["order_id"]}, ID, *fields))
    assert orders.personal == {"home", "other"}


def test_several_kinds_inside_a_field_are_all_told_its_own_first() -> None:
    given = {"type": "array", "pii": "contact", "items": [{"pii": "email"}, {"pii": "phone"}, {"pii": "email"}]}
    found = feed.parse("people.json", json_feed(given)).fields[1]
    assert found.kinds == ("contact", "email", "phone")


@pytest.mark.parametrize("note", ["pii", "x-pii"])
def test_a_note_of_the_whole_record_is_refused(note: str) -> None:
    whole = {"type": "record", "name": "Order", "fields": [ID], "feed": {"key": ["order_id"]}, note: "person"}
    for file, text in (("orders.avsc", json.dumps(whole)), ("people.json", json_feed({}, allOf=[{note: "person"}]))):
        with pytest.raises(FeedError, match=f'notes "{note}" of the whole record, which is not read. Note it of the'):
            feed.parse(file, text)


def test_a_check_has_exactly_one_form() -> None:
    both = {"column": "price", "between": [0, 1], "not_null": True}
    assert "a check takes exactly one of" in fault({"key": ["order_id"], "checks": [both]})


def test_a_field_of_several_enums_has_no_one_list_of_words() -> None:
    either = {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["b"]}, {"type": "null"}]}
    properties = {"id": {"type": "string"}, "either": either, "one": {"anyOf": [either["anyOf"][0], {"type": "null"}]}}
    schema = {"type": "object", "properties": properties, "required": ["id"], "x-feed": {"key": ["id"]}}
    found = {field.name: field.symbols for field in feed.parse("clicks.json", json.dumps(schema)).fields}
    assert found == {"id": None, "either": None, "one": ("a",)}


def test_a_feed_is_found_by_its_name_or_told_the_nearest() -> None:
    folder = Path(__file__).parents[2] / "schemas"
    assert feed.named("orders", folder).topic == "orders"
    with pytest.raises(FeedError, match=r'no file of a feed "oders". Did you mean "orders"\? Feeds there: calls'):
        feed.named("oders", folder)
