"""Starters: every file that is written is a good feed, and takes the records that it was derived from."""

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import fastavro
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from headrace import feed as feeds
from headrace import lint
from headrace.cli import app
from headrace.errors import FeedError
from headrace.fault import Fault
from headrace.feed import Feed, SchemaType
from headrace.starter import breaking, draft, example, personal, samples, subject, table
from headrace.starter.draft import Said, Starter
from headrace.starter.table import Column, Table

SUFFIX: Mapping[SchemaType, str] = {"AVRO": ".avsc", "JSON": ".json"}
BOTH: Sequence[SchemaType] = ("AVRO", "JSON")


def derived(records: Sequence[Mapping[str, Any]], schema_type: SchemaType = "AVRO", **said: Any) -> Starter:
    return draft.starter(samples.draft("orders", records, Said(**said)), schema_type)


def errors(starter: Starter) -> list[Fault]:
    """What `headrace lint` finds wrong; warnings are what the guesses are about."""
    return [fault for fault in lint.check(feeds.read(starter.file, starter.text)) if fault.severity == "error"]


def types(starter: Starter) -> dict[str, Any]:
    if starter.feed.schema_type == "AVRO":
        return {field["name"]: field["type"] for field in starter.feed.schema["fields"]}
    return dict(starter.feed.schema["properties"])


def told(starter: Starter) -> dict[str, str]:
    return {guess.path: guess.message for guess in starter.guesses}


# What the samples hold: any JSON, and texts that look like something.
TEXTS = st.one_of(
    st.text(max_size=5),
    st.uuids().map(str),
    st.dates().map(str),
    st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat()),
    st.from_regex(samples.TIMESTAMP, fullmatch=True),
    st.from_regex(samples.DATE, fullmatch=True),
    st.sampled_from(["12.50", "x@example.com", "+49 170 1234567"]),
)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.integers(10**12, 2 * 10**12), st.floats(allow_nan=False, allow_infinity=False)
)
NAMES = st.one_of(
    st.sampled_from(["id", "created_at", "name", "Name", "revision", "a_b", "x-y", "1st", "äö", "", "b"]),
    st.text("abC_", min_size=1, max_size=3),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(NAMES, VALUES, max_size=5), min_size=1, max_size=6).map(
    lambda records: [{"order_id": f"o-{number}", **record} for number, record in enumerate(records)]
)


@given(RECORDS)
@settings(max_examples=100, deadline=None)
def test_a_derived_json_schema_takes_every_record_that_it_was_derived_from(records: list[dict[str, Any]]) -> None:
    starter = derived(records, "JSON")
    assert not errors(starter)
    validator = jsonschema_rs.validator_for(dict(starter.feed.schema), validate_formats=True)
    for record in records:
        validator.validate(record)


@given(RECORDS)
@settings(max_examples=100, deadline=None)
def test_a_derived_avro_schema_takes_every_record_that_it_was_derived_from(records: list[dict[str, Any]]) -> None:
    starter = derived(records)
    assert not errors(starter)
    schema = starter.feed.schema
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    for record in records:
        fastavro.validation.validate(as_produced(record, schema), parsed)


def as_produced(value: Any, type_: Any) -> Any:
    """A JSON value as a producer hands it to Avro: where the schema says so, texts are dates and timestamps."""
    match type_:
        case list():
            return value if value is None else as_produced(value, next(each for each in type_ if fits(value, each)))
        case {"logicalType": "date"}:
            return date.fromisoformat(value)
        case {"logicalType": "timestamp-micros"}:
            return datetime.fromisoformat(value)
        case {"type": "record", "fields": fields}:
            return {each["name"]: as_produced(value.get(each["name"]), each["type"]) for each in fields}
        case {"type": "array", "items": items}:
            return [as_produced(each, items) for each in value]
        case {"type": "map", "values": values}:
            return {name: as_produced(each, values) for name, each in value.items()}
    return value


def fits(value: Any, type_: Any) -> bool:
    """Whether a JSON value is of a union's member, told by its kind."""
    kinds = {
        "boolean": bool, "long": int, "double": float | int, "string": str, "array": list, "map": dict, "record": dict,
    }  # fmt: skip
    name = type_["type"] if isinstance(type_, dict) else type_
    logical = isinstance(type_, dict) and type_.get("logicalType") in ("date", "timestamp-micros")
    kind = str if logical else kinds.get(name, type(None))
    return isinstance(value, kind) and (isinstance(value, bool) == (name == "boolean"))


@pytest.mark.parametrize(
    ("values", "avro", "json_schema"),
    [
        ([1, 2], "long", {"type": "integer"}),
        ([1, 2.5], "double", {"type": "number"}),
        ([1, 2**80], "double", {"type": "number"}),
        ([True, False], "boolean", {"type": "boolean"}),
        (["a", "b"], "string", {"type": "string"}),
        (["2026-01-31"], {"type": "int", "logicalType": "date"}, {"type": "string", "format": "date"}),
        (["2026-02-31"], "string", {"type": "string"}),
        (
            ["2026-01-31T10:00:00Z", "2026-01-31T10:00:00.123456+02:00"],
            {"type": "long", "logicalType": "timestamp-micros"},
            {"type": "string", "format": "date-time"},
        ),
        (["2026-01-31T10:00:00"], "string", {"type": "string"}),
        (["2026-01-31T10:00:00.123456789Z"], "string", {"type": "string"}),
        (["12.50", "3.10"], "string", {"type": "string"}),
        ([str(uuid.UUID(int=7))], {"type": "string", "logicalType": "uuid"}, {"type": "string", "format": "uuid"}),
        ([str(uuid.UUID(int=0xA << 100)).upper()], "string", {"type": "string"}),
        ([[1], []], {"type": "array", "items": "long"}, {"type": "array", "items": {"type": "integer"}}),
        (
            [{"x-1": 1, "x-2": 2}],
            {"type": "map", "values": "long"},
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        (["a", 1], ["string", "long"], {"type": ["string", "integer"]}),
    ],
    ids=str,
)
def test_a_type_is_as_narrow_as_every_value_allows_and_no_narrower(
    values: list[Any], avro: Any, json_schema: Any
) -> None:
    records = [{"id": number, "field": value} for number, value in enumerate(values)]
    assert types(derived(records))["field"] == avro
    assert types(derived(records, "JSON"))["field"] == json_schema


def test_what_is_missing_or_null_somewhere_may_be_so_everywhere() -> None:
    records: list[dict[str, Any]] = [{"id": 1, "a": None, "b": 2}, {"id": 2, "a": "x"}]
    avro, json_schema = derived(records), derived(records, "JSON")
    assert types(avro) == {"id": "long", "a": ["null", "string"], "b": ["null", "long"]}
    assert types(json_schema)["a"] == {"type": ["string", "null"]}
    assert json_schema.feed.schema["required"] == ["id", "a"]


def test_numbers_in_a_field_named_like_a_time_are_milliseconds() -> None:
    avro = derived([{"id": 1, "created_at": 1_790_000_000_000, "amount": 1_790_000_000_000}])
    assert types(avro)["created_at"] == {"type": "long", "logicalType": "timestamp-millis"}
    assert types(avro)["amount"] == "long"


@pytest.mark.parametrize(
    ("records", "key", "order"),
    [
        ([{"name": "x", "id": 1}, {"name": "x", "id": 2}], ["id"], []),
        ([{"customer_id": 1, "order_id": 1}, {"customer_id": 2, "order_id": 2}], ["order_id"], []),
        ([{"customer_id": 1, "orderId": 1}, {"customer_id": 1, "orderId": 2}], ["orderId"], []),
        ([{"id": 1, "revision": 1}, {"id": 1, "revision": 2}], ["id"], ["revision"]),
        ([{"id": 1, "seq": 5}, {"id": 1, "seq": 5}], ["id"], ["seq"]),
        ([{"id": None, "code": "a"}, {"id": 2, "code": "b"}], ["code"], []),
        ([{"updated_at": 1_790_000_000_000, "id": 1}], ["id"], []),
    ],
    ids=str,
)
def test_the_key_is_an_id_that_tells_records_apart_and_the_order_no_clock(
    records: list[dict[str, Any]], key: list[str], order: list[str]
) -> None:
    declared = derived(records).feed.declaration
    assert (declared.key, declared.order) == (key, order)


def test_records_without_any_sure_field_need_a_word_about_the_key() -> None:
    with pytest.raises(FeedError, match="Say which: --key FIELD, one of a, b"):
        derived([{"a": 1}, {"b": 2}])
    with pytest.raises(FeedError, match="one of b"):
        derived([{"a": 1.5, "b": "x"}, {"a": 2.5}])
    with pytest.raises(FeedError, match=r"identifies a row\.$"):
        derived([{"a": 2**64}])
    with pytest.raises(FeedError, match=r'--key names "idd", which is not a field. Did you mean "id"\?'):
        derived([{"id": 1}], key=["idd"])


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("email", [], "email"), ("contactEmail", [], "email"), ("e_mail", [], "email"),
        ("phone_number", [], "phone"), ("telephone", [], "phone"), ("dob", [], "birth_date"),
        ("birthDate", [], "birth_date"), ("last_name", [], "name"), ("customerName", [], "name"),
        ("username", [], "user_name"), ("ip_address", [], "address"), ("client_ip", [], "network_address"),
        ("billing_address_2", [], "address"), ("card", [], "payment"), ("tax_number", [], "official_number"),
        ("contact", ["office", "x@example.com"], "email"), ("contact", ["+49 170 1234567"], "phone"),
        ("source", ["10.0.0.1"], "network_address"), ("account", ["DE89 3704 0044 0532 0130 00"], "payment"),
        ("order_id", ["a-1"], None), ("status", ["open"], None), ("filename", [], None), ("page", [], None),
        ("version", ["1.2.3"], None), ("price", ["12.50"], None),
    ],
)  # fmt: skip
def test_personal_data_is_told_by_its_name_or_its_values(name: str, values: list[str], kind: str | None) -> None:
    assert personal.kind(name, values) == kind


def test_personal_fields_are_noted_and_told_wherever_they_are() -> None:
    records = [{"id": 1, "user": {"email": "x@example.com"}, "phones": ["+49 170 1234567"], "email_verified": True}]
    for schema_type in BOTH:
        starter = derived(records, schema_type)
        assert starter.feed.personal == {"user", "phones"}
        assert told(starter)["pii"].startswith("user.email, phones:")


def test_what_was_guessed_names_no_value_of_a_record() -> None:
    secret = "s3cr3t"
    for records in (
        [{"id": secret, "a": secret, "b-c": secret}],
        [{"id": secret, "a": 1}, {"id": secret, "a": secret}],
    ):
        assert not any(secret in guess.message + guess.path for guess in derived(records).guesses)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}\n{"a": 2}\n', '[{"a": 1}, {"a": 2}]', '{"a": 1} {"a":\n2}', '\n[{"a": 1}]\n{"a": 2}'],
    ids=["one per line", "a list", "one after another", "both"],
)
def test_records_come_one_per_line_or_in_a_list(text: str) -> None:
    assert samples.records(text) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are none"),
        ("[]", "there are none"),
        ('{"a": 1}\n{"a": }', "line 2, column 7: not JSON"),
        ('{"a": 1}\n7', "number 2 is no JSON object but a number"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
    ids=["nothing", "an empty list", "no JSON", "no object", "no number", "too deep"],
)
def test_records_that_cannot_be_read_are_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(FeedError, match=re.escape(message)):
        samples.records(text)


def test_names_that_cannot_be_columns_are_left_out_and_told() -> None:
    starter = derived([{"id": 1, "order-id": 1, "note": "a", "Note": "b"}])
    assert list(types(starter)) == ["id", "note"]
    assert {"order-id", "Note"} <= told(starter).keys()


SHOP = Table(
    [
        Column("order_no", True, "Identifies the order.", "bigint", []),
        Column("shop", True, None, "character varying(20)", []),
        Column("version", True, None, "integer", []),
        Column("price", False, None, "numeric(12,2)", []),
        Column("weight", False, None, "numeric", []),
        Column("huge", False, None, "numeric(60,2)", []),
        Column("status", True, None, "order_status", ["open", "closed"]),
        Column("size", True, None, "shoe_size", ["7", "8"]),
        Column("tags", True, None, "text[]", []),
        Column("email", True, None, "citext", []),
        Column("at", True, None, "timestamp(3) with time zone", []),
        Column("local", True, None, "timestamp without time zone", []),
        Column("day", True, None, "date", []),
        Column("uid", True, None, "uuid", []),
        Column("raw", True, None, "bytea", []),
        Column("extra", True, None, "jsonb", []),
        Column("address", True, None, "inet", []),
        Column("is-odd", True, None, "boolean", []),
    ],
    ["shop", "order_no"],
    "One order.",
)


def test_a_table_becomes_a_feed_with_its_types_key_and_comments() -> None:
    starter = draft.starter(table.draft("orders", SHOP, Said()), "AVRO")
    assert types(starter) == {
        "order_no": "long",
        "shop": "string",
        "version": "int",
        "price": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}],
        "weight": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}],
        "huge": ["null", "string"],
        "status": {"type": "enum", "name": "OrdersStatus", "symbols": ["open", "closed"]},
        "size": "string",
        "tags": {"type": "array", "items": ["null", "string"]},
        "email": "string",
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "local": {"type": "long", "logicalType": "local-timestamp-micros"},
        "day": {"type": "int", "logicalType": "date"},
        "uid": {"type": "string", "logicalType": "uuid"},
        "raw": "bytes",
        "extra": "string",
        "address": "string",
    }
    assert starter.feed.doc == "One order."
    assert starter.feed.fields[0].doc == "Identifies the order."
    assert starter.feed.declaration.key == ["shop", "order_no"]
    assert starter.feed.declaration.order == ["version"]
    assert starter.feed.personal == {"email", "address"}
    assert told(starter)["key"] == "shop, order_no: the primary key"
    assert {"weight", "extra", "is-odd"} <= told(starter).keys()


def test_a_table_becomes_a_json_feed_too() -> None:
    starter = draft.starter(table.draft("orders", SHOP, Said()), "JSON")
    assert types(starter)["size"] == {"type": "string", "enum": ["7", "8"]}
    assert types(starter)["price"] == {"type": ["number", "null"]}


@pytest.mark.parametrize("schema_type", BOTH)
def test_the_plain_starter_is_a_good_feed(schema_type: SchemaType) -> None:
    plain = draft.starter(example.draft("orders", Said()), schema_type).feed
    assert lint.check(feeds.read(f"orders{SUFFIX[schema_type]}", json.dumps(plain.schema))) == []
    assert (plain.declaration.key, plain.declaration.order, plain.personal) == (["id"], ["revision"], {"email"})
    assert all(field.doc for field in plain.fields)
    said = Said(key=["shop", "created_at"], order=["seq"], owner="shop-team")
    own = draft.starter(example.draft("orders", said), schema_type).feed
    assert (own.declaration.key, own.declaration.order) == (["shop", "created_at"], ["seq"])
    assert own.declaration.owner == "shop-team"


REGISTERED = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "order_id", "type": "string"},
        {"name": "revision", "type": "long"},
        {"name": "email", "type": ["null", "string"], "default": None},
        {"name": "product_name", "type": "string", "pii": False},
    ],
}


def test_a_registered_schema_becomes_a_feed_of_its_own_topic() -> None:
    text = json.dumps(REGISTERED)
    made = subject.starter("orders", "shop.orders-value", text=text, schema_type="AVRO", said=Said()).feed
    assert made.topic == "shop.orders"
    assert made.subject == "shop.orders-value"
    assert (made.declaration.key, made.declaration.order) == (["order_id"], ["revision"])
    assert made.personal == {"email"}
    without = {key: value for key, value in made.schema.items() if key != "feed"}
    assert [{**field, "pii": False} if field["name"] == "product_name" else field for field in without["fields"]] == [
        {**field, "pii": "email"} if field["name"] == "email" else field for field in REGISTERED["fields"]
    ]


def test_a_registered_feed_keeps_what_it_declares() -> None:
    text = json.dumps({**REGISTERED, "feed": {"key": ["revision"], "topic": {"partitions": 9}}})
    made = subject.starter("orders", "orders-value", text=text, schema_type="AVRO", said=Said()).feed
    assert (made.declaration.key, made.declaration.topic.partitions) == (["revision"], 9)


def test_a_registered_json_schema_becomes_a_feed() -> None:
    text = json.dumps({"type": "object", "properties": {"id": {"type": "string"}, "mail": {}}, "required": ["id"]})
    made = subject.starter("clicks", "clicks-value", text=text, schema_type="JSON", said=Said()).feed
    assert (made.declaration.key, made.personal) == (["id"], {"mail"})


def test_a_schema_that_is_no_record_is_no_feed() -> None:
    for text in ('"string"', '{"type": "enum", "name": "E", "symbols": ["A"]}'):
        with pytest.raises(FeedError):
            subject.starter("orders", "orders-value", text=text, schema_type="AVRO", said=Said())


def old(**declared: Any) -> Feed:
    return feeds.parse("orders.avsc", json.dumps({**REGISTERED, "feed": {"key": ["order_id"], **declared}}))


def test_breaking_makes_a_feed_with_a_topic_of_its_own_that_drains_the_old_one() -> None:
    before = old(order=["revision"], topic={"name": "shop.orders", "partitions": 9, "retention": "3d"}, owner="shop")
    made = breaking.starter(before, breaking.next_name(before.name)).feed
    assert (made.name, made.topic, made.declaration.owner) == ("orders_v2", "orders_v2", "shop")
    topic = made.declaration.topic
    assert (topic.partitions, topic.retention) == (9, "3d")
    assert topic.drains is not None
    assert topic.drains.topic == "shop.orders"
    assert made.schema["fields"] == before.schema["fields"]


def test_breaking_again_drains_the_newer_topic_and_says_that_the_oldest_is_not_in_it() -> None:
    second = breaking.starter(old(), "orders_v2")
    third = breaking.starter(second.feed, breaking.next_name("orders_v2"))
    assert third.feed.name == "orders_v3"
    assert third.feed.declaration.topic.drains is not None
    assert third.feed.declaration.topic.drains.topic == "orders_v2"
    assert "whose records are not in orders_v2" in third.guesses[-1].message


def test_breaking_under_the_same_name_or_a_name_too_long_is_refused() -> None:
    with pytest.raises(FeedError, match="a new name, such as orders_v2"):
        breaking.starter(old(), "orders")
    with pytest.raises(FeedError, match="too long"):
        breaking.next_name("x" * 46)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path / "schemas"))
    return tmp_path / "schemas"


def run(*arguments: str, given: str | None = None) -> Any:
    return CliRunner().invoke(app, ["new", *arguments], input=given)


def test_the_command_writes_a_good_file_and_says_what_to_look_at(folder: Path) -> None:
    result = run("clicks", "--from-records", "-", given='{"id": 1, "email": "x@example.com"}\n{"id": 2, "email": null}')
    assert result.exit_code == 0
    assert feeds.load(folder / "clicks.json").declaration.key == ["id"]
    assert "key         id: no two different records share it (2 seen)" in result.stdout
    assert "headrace lint" in result.stdout


def test_what_lint_would_refuse_is_not_written(folder: Path) -> None:
    deep = f'{{"id": 1, "a": {"[" * 200}{"]" * 200}}}'
    refused = run("clicks", "--from-records", "-", given=deep)
    assert refused.exit_code == 1
    assert "the schema is nested too deeply" in str(refused.exception)
    assert not folder.exists()


def test_a_byte_order_mark_before_the_records_is_passed_over(folder: Path) -> None:
    (folder.parent / "clicks.jsonl").write_text('\ufeff{"id": 1}\n')
    result = run("clicks", "--from-records", str(folder.parent / "clicks.jsonl"))
    assert (result.exit_code, "1 field, key id." in result.stdout) == (0, True)


def test_the_command_speaks_json_to_programs(folder: Path) -> None:
    answer = json.loads(run("orders", "--json", "--owner", "shop").stdout)
    assert (answer["feed"], answer["file"], answer["topic"]) == ("orders", str(folder / "orders.avsc"), "orders")
    assert {guess["path"] for guess in answer["guesses"]} == {"fields", "warehouses"}


def test_a_file_that_is_there_stays_unless_forced(folder: Path) -> None:
    assert run("orders").exit_code == 0
    path = folder / "orders.avsc"
    path.write_text("mine")
    refused = run("orders")
    assert (refused.exit_code, path.read_text()) == (1, "mine")
    assert "--force" in str(refused.exception)
    assert run("orders", "--force").exit_code == 0
    assert path.read_text() != "mine"
    assert "declares the feed orders already" in str(run("orders", "--format", "json", "--force").exception)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["orders", "--from-records", "x", "--breaks", "orders"],
        ["--breaks", "orders", "--owner", "shop"],
        ["orders", "--from-subject", "orders-value", "--format", "json"],
        ["orders", "--format", "protobuf"],
    ],
    ids=str,
)
def test_options_that_do_not_fit_together_are_a_matter_of_usage(folder: Path, arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2
    assert not folder.exists()


def test_the_command_breaks_with_a_feed_by_its_name_or_its_file(folder: Path) -> None:
    run("orders")
    assert run("--breaks", "orders").exit_code == 0
    assert run("sales", "--breaks", str(folder / "orders.avsc")).exit_code == 0
    assert {path.name for path in folder.iterdir()} == {"orders.avsc", "orders_v2.avsc", "sales.avsc"}
    assert 'Did you mean "orders"?' in str(run("--breaks", "ordrs").exception)


def test_a_name_that_no_feed_may_have_is_refused_before_anything_is_written(folder: Path) -> None:
    assert "'Bad-Name' is no name of a feed" in str(run("Bad-Name").exception)
    assert not folder.exists()
