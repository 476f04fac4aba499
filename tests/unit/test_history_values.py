"""Values on their way into a feed: each exactly, or refused; at once or one by one, it is the same."""

import io
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import feed as feeds
from headrace.feed import Feed
from headrace.history.avro_target import reader
from headrace.history.column_reading import column_reader
from headrace.history.encoding import Encoder
from headrace.history.mapping import map_columns, targets
from headrace.history.scalars import Unfit
from headrace.history.source import Rows, SourceColumn

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
SOME_UUID = UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")


def logical(type_: str, name: str) -> dict[str, Any]:
    return {"type": type_, "logicalType": name}


def feed_of(*types: Any) -> Feed:
    fields = [{"name": "id", "type": "long"}, *({"name": f"f{n}", "type": type_} for n, type_ in enumerate(types))]
    return feeds.parse("t.avsc", json.dumps({"type": "record", "name": "R", "feed": {"key": ["id"]}, "fields": fields}))


GOOD: list[tuple[Any, Any, Any]] = [
    ("boolean", "t", True),
    ("boolean", "false", False),
    ("int", "-7", -7),
    ("int", Decimal("7.00"), 7),
    ("long", 7.0, 7),
    ("long", "9223372036854775807", 2**63 - 1),
    ("float", "0.1", 0.10000000149011612),
    ("float", 0.1, 0.10000000149011612),
    ("double", "0.1", 0.1),
    ("double", "1e3", 1000.0),
    ("double", "-Infinity", -math.inf),
    ("double", Decimal("0.1"), 0.1),
    ("bytes", "3q0=", b"\xde\xad"),
    ("bytes", r"\xdead", b"\xde\xad"),
    ("string", 42, "42"),
    ("string", SOME_UUID, str(SOME_UUID)),
    (DECIMAL, "1.5", b"\x00\x96"),
    (DECIMAL, 1.5, b"\x00\x96"),
    (DECIMAL, "-1e3", b"\xfe\x79\x60"),
    (DECIMAL, "0", b"\x00"),
    (logical("int", "date"), "1969-12-31", -1),
    (logical("int", "date"), date(9999, 12, 31), 2_932_896),
    (logical("int", "date"), datetime(1970, 1, 2), 1),  # noqa: DTZ001
    (logical("int", "date"), 3, 3),
    (logical("int", "time-millis"), "23:59:59.999", 86_399_999),
    (logical("long", "time-micros"), time(0, 0, 1), 1_000_000),
    (logical("long", "timestamp-millis"), "2026-01-31T12:00:00.500+02:00", 1_769_853_600_500),
    (logical("long", "timestamp-millis"), "2026-01-31 10:00:00.5+00", 1_769_853_600_500),
    (logical("long", "timestamp-micros"), "1969-12-31T23:59:59.999999Z", -1),
    (logical("long", "timestamp-nanos"), "1970-01-01T00:00:00.000000001Z", 1),
    (logical("long", "timestamp-millis"), datetime(1, 1, 1, tzinfo=UTC), -62_135_596_800_000),
    (logical("long", "timestamp-millis"), 1_769_853_600_500, 1_769_853_600_500),
    (logical("long", "local-timestamp-millis"), "2026-01-31 10:00:00", 1_769_853_600_000),
    (logical("string", "uuid"), str(SOME_UUID).upper(), str(SOME_UUID)),
    (logical("string", "uuid"), SOME_UUID.bytes, str(SOME_UUID)),
    ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, str(SOME_UUID), SOME_UUID.bytes),
    ({"type": "array", "items": "int"}, "[1, 2]", [1, 2]),
    ({"type": "map", "values": "int"}, {"a": 1}, {"a": 1}),
    ({"type": "map", "values": "int"}, [("a", 1)], {"a": 1}),
    ({"type": "record", "name": "X", "fields": [{"name": "a", "type": DECIMAL}]}, '{"a": 1.10}', {"a": b"\x6e"}),
    (["null", "string", "long"], {"long": 1}, ("long", 1)),
    (["null", "string", "long"], "x", ("string", "x")),
]


@pytest.mark.parametrize(("type_", "value", "expected"), GOOD)
def test_a_value_is_read_exactly(type_: Any, value: Any, expected: Any) -> None:
    assert targets(feed_of(type_))[1].read(value) == expected


BAD: list[tuple[Any, Any, str]] = [
    ("boolean", 1, "neither true nor false"),
    ("int", 2**31, "more than 32 bits"),
    ("int", True, "no number"),
    ("long", "1.5", "no whole number"),
    ("long", 1.5, "no whole number"),
    ("long", math.nan, "no whole number"),
    ("long", "9" * 5000, "more than 64 bits"),
    ("float", "0.123456789012", "more digits"),
    ("float", 1e39, "more"),
    ("double", "0.12345678901234567890", "more digits"),
    ("double", 2**53 + 1, "more digits"),
    ("double", "1e400", "more"),
    ("string", "a\0b", "NUL"),
    ("string", "\ud800", "half a character"),
    ("string", True, "no text"),
    ("string", 1.5, "no text"),
    ("bytes", "not base64!", "neither base64"),
    ({"type": "fixed", "name": "F", "size": 2}, b"abc", "not 2 bytes"),
    ({"type": "enum", "name": "E", "symbols": ["a"]}, "b", "none of the enum's symbols"),
    (DECIMAL, "1.234", "more than 2 digits after the point"),
    (DECIMAL, "12345", "more than 6 digits"),
    (DECIMAL, "NaN", "no number"),
    (DECIMAL, 0.1 + 0.2, "more than 2 digits after the point"),
    (logical("int", "date"), "2026-02-30", "no date"),
    (logical("int", "date"), datetime(2026, 1, 1, 1, tzinfo=UTC), "a moment, not a date"),
    (logical("int", "date"), 2_932_897, "years 1 to 9999"),
    (logical("int", "time-millis"), "24:00:00", "no time"),
    (logical("int", "time-millis"), "00:00:00.0001", "finer than 1/1,000"),
    (logical("long", "timestamp-millis"), "2026-01-31T12:00:00", "no offset from UTC"),
    (logical("long", "timestamp-millis"), "2026-01-31T12:00:00.0001Z", "finer than 1/1,000"),
    (logical("long", "timestamp-millis"), datetime(2026, 1, 1), "no offset from UTC"),  # noqa: DTZ001
    (logical("long", "timestamp-millis"), 253_402_300_800_000, "years 1 to 9999"),
    (logical("long", "local-timestamp-millis"), "2026-01-31T12:00:00Z", "no moment"),
    (logical("string", "uuid"), "f81d4fae", "no UUID"),
    ({"type": "array", "items": "int"}, [None], "null inside"),
    ({"type": "array", "items": "int"}, "{", "no JSON"),
    ({"type": "record", "name": "X", "fields": []}, {"b": 1}, "a member that the schema lacks"),
    (["null", "string", "bytes"], 1, "of no one type"),
    (["null", "float", "double", "string"], 1.5, "of no one type"),
]


@pytest.mark.parametrize(("type_", "value", "why"), BAD)
def test_a_value_that_would_lose_something_is_refused_without_being_told(type_: Any, value: Any, why: str) -> None:
    with pytest.raises(Unfit, match=why) as refused:
        reader(targets_type(type_))(value)
    assert str(value)[:20] not in str(refused.value) or len(str(value)) < 3


def targets_type(type_: Any) -> Any:
    """A type as targets see it: with all its parts resolved."""
    from headrace.history.avro_target import _fields

    return _fields(feed_of(type_))[1]["type"]


COLUMNS: list[tuple[Any, Any]] = [
    ("boolean", pa.bool_()),
    ("int", pa.int64()),
    ("long", pa.int16()),
    ("double", pa.float64()),
    ("float", pa.float32()),
    ("string", pa.string()),
    ("bytes", pa.binary()),
    (DECIMAL, pa.decimal128(8, 3)),
    (DECIMAL, pa.string()),
    ({"type": "enum", "name": "E", "symbols": ["a", "b"]}, pa.string()),
    (logical("int", "date"), pa.date32()),
    (logical("int", "time-millis"), pa.time64("us")),
    (logical("long", "time-micros"), pa.time64("us")),
    (logical("long", "timestamp-millis"), pa.timestamp("us", "UTC")),
    (logical("long", "timestamp-micros"), pa.timestamp("ms", "Europe/Berlin")),
    (logical("long", "local-timestamp-millis"), pa.timestamp("us")),
    (logical("string", "uuid"), pa.uuid()),
]

VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int64": st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "double": st.floats(),
    "float": st.floats(width=32),
    "binary": st.binary(max_size=5),
    "decimal128(8, 3)": st.decimals(-99_999, 99_999, places=3),
    "date32[day]": st.dates(),
    "time64[us]": st.times(),
    "timestamp[us, tz=UTC]": st.datetimes(timezones=st.just(UTC)),
    "timestamp[ms, tz=Europe/Berlin]": st.datetimes(timezones=st.just(UTC)).map(
        lambda moment: moment.replace(microsecond=0)
    ),
    "timestamp[us]": st.datetimes(),
    "extension<arrow.uuid>": st.uuids().map(lambda each: each.bytes),
}
TEXTS = st.one_of(
    st.sampled_from(["a", "b", "", "1.5", "-0.01", "1e2", "1e9", ".5", "+1", "NaN", " 1", "1.", "0x10", "a\0"]),
    st.decimals(-9999, 9999, places=2).map(str),
)


@settings(deadline=None, max_examples=40)
@given(data=st.data())
@pytest.mark.parametrize(("type_", "column"), COLUMNS, ids=str)
def test_a_column_read_at_once_is_what_its_values_are_one_by_one(type_: Any, column: pa.DataType, data: Any) -> None:
    values = data.draw(st.lists(st.one_of(st.none(), VALUES.get(str(column), TEXTS)), min_size=1, max_size=5))
    target = targets(feed_of(type_))[1]
    assert target.shortcut(column) is not None
    array = pa.array(values, column)
    whole, unfit = column_reader(target, column)(array)
    for index, value in enumerate(array.to_pylist()):
        if index in unfit:
            with pytest.raises(Unfit, match=re.escape(unfit[index])):
                target.read(value)
        else:
            expected = None if value is None else target.read(value)
            assert whole[index] == expected or math.isnan(expected)


def test_what_is_encoded_is_what_fastavro_would_write() -> None:
    types = [DECIMAL, logical("long", "timestamp-millis"), logical("int", "date"), ["null", "string"], "double"]
    feed = feed_of(*types)
    row = {
        "id": 1,
        "f0": Decimal("-12.34"),
        "f1": datetime(2026, 1, 31, tzinfo=UTC),
        "f2": date(2026, 1, 31),
        "f3": "ü",
        "f4": 0.5,
    }
    columns = {name: [value] for name, value in row.items()}
    mapping = map_columns(feed, [SourceColumn(name) for name in row], renames={})
    done = Encoder(feed, mapping, 7, 10**6).encode(Rows("", [1], columns), position=1)
    expected = io.BytesIO()
    fastavro.schemaless_writer(expected, fastavro.parse_schema(dict(feed.schema)), row)
    assert done.records.column("value")[0].as_py() == b"\0\0\0\0\7" + expected.getvalue()
    assert done.records.column("key")[0].as_py() == b"1"
    assert done.rejected == []


def test_a_timestamp_that_kafkas_clients_cannot_say_is_refused() -> None:
    feed, at = feed_of(), SourceColumn("at", pa.timestamp("ms", "UTC"))
    mapping = map_columns(feed, [SourceColumn("id"), at], renames={}, timestamp="at")
    columns = {"id": [1, 2, 3, 4], "at": pa.array([-1, 0, 1, None], at.type)}
    done = Encoder(feed, mapping, 7, 10**6).encode(Rows("", [1, 2, 3, 4], columns), position=1)
    assert done.records.column("timestamp").to_pylist() == [1, None]
    assert [(each.row, each.field) for each in done.rejected] == [(1, "at"), (2, "at")]


def test_a_field_without_a_column_has_its_default_or_null() -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "word", "type": "string", "default": "none"},
        {"name": "raw", "type": "bytes", "default": "\u00ff"},
        {"name": "maybe", "type": ["null", "long"]},
        {"name": "either", "type": ["bytes", "long"], "default": "\u00fe"},
        {
            "name": "part",
            "type": {"type": "record", "name": "P", "fields": [{"name": "a", "type": "int", "default": 3}]},
            "default": {},
        },
    ]
    schema = {"type": "record", "name": "R", "feed": {"key": ["id"]}, "fields": fields}
    feed = feeds.parse("t.avsc", json.dumps(schema))
    mapping = map_columns(feed, [SourceColumn("id")], renames={})
    done = Encoder(feed, mapping, 7, 10**6).encode(Rows("", [1], {"id": [5]}), position=1)
    value = done.records.column("value")[0].as_py()[5:]
    read = fastavro.schemaless_reader(io.BytesIO(value), fastavro.parse_schema(dict(feed.schema)), None)
    assert read == {"id": 5, "word": "none", "raw": b"\xff", "maybe": None, "either": b"\xfe", "part": {"a": 3}}


KEYS: list[tuple[Any, Any, bytes]] = [
    ("boolean", True, b"true"),
    ("long", -5, b"-5"),
    ("string", "ü", "ü".encode()),
    ("bytes", b"\x00\xff", b"\x00\xff"),
    (DECIMAL, "1.5", b"1.50"),
    (logical("int", "date"), "2026-01-31", b"2026-01-31"),
    (logical("int", "time-millis"), "01:02:03", b"01:02:03.000000"),
    (logical("long", "timestamp-millis"), "2026-01-31T12:00:00Z", b"2026-01-31T12:00:00.000000Z"),
    (logical("long", "local-timestamp-micros"), "2026-01-31T12:00:00", b"2026-01-31T12:00:00.000000"),
    (logical("string", "uuid"), str(SOME_UUID).upper(), str(SOME_UUID).encode()),
    ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, SOME_UUID, str(SOME_UUID).encode()),
]


@pytest.mark.parametrize(("type_", "value", "key"), KEYS)
def test_a_key_is_the_text_that_casts_back_to_its_column(type_: Any, value: Any, key: bytes) -> None:
    fields = [{"name": "id", "type": type_}]
    schema = {"type": "record", "name": "R", "feed": {"key": ["id"]}, "fields": fields}
    feed = feeds.parse("t.avsc", json.dumps(schema))
    mapping = map_columns(feed, [SourceColumn("id")], renames={})
    done = Encoder(feed, mapping, 7, 10**6).encode(Rows("", [1], {"id": [value]}), position=1)
    assert done.records.column("key")[0].as_py() == key


def test_a_number_of_json_stays_as_it_is_and_is_sorted_as_a_double() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "rank": {"type": "number"}}}
    feed = feeds.parse("t.json", json.dumps({**schema, "required": ["id"], "x-feed": {"key": ["id"]}}))
    rank = targets(feed)[1]
    assert [rank.read(value) for value in (2**53, Decimal("0.5"), "1e3")] == [2**53, 0.5, 1000.0]
    assert isinstance(rank.read(2**53), int)
    assert pa.array([rank.sort(2**53), rank.sort(0.5)], rank.sorts).to_pylist() == [2.0**53, 0.5]
    for value in (2**53 + 1, 10**400, True, "NaN"):
        with pytest.raises(Unfit):
            rank.read(value)
