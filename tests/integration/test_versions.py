"""Ten versions of one schema in one batch: one pass, and each record as Avro's rules say, or as JSON's names do."""

import io
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from avro_versions import Pair, versions
from decoding_bench import Sent, avro_bytes, decoded, decoding, frame, reading
from hypothesis import HealthCheck, given, settings

pytestmark = pytest.mark.usefixtures("stack")

ID = {"name": "id", "type": "string"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
AT = {"type": "long", "logicalType": "timestamp-millis"}


def record(name: str, *fields: Any, **others: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **others}


def field(name: str, type_: Any, **others: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **others}


def geo(*fields: Any, **others: Any) -> dict[str, Any]:
    return field("geo", record("Geo", *fields, **others))


def line(*fields: Any) -> dict[str, Any]:
    return field("lines", {"type": "array", "items": record("Line", *fields)})


STATUS = {"type": "enum", "name": "Status", "symbols": ["open", "done"]}
STATUS_2 = {**STATUS, "symbols": ["open", "done", "lost"]}
STATE = {**STATUS_2, "name": "State", "aliases": ["Status"]}
STATE_2 = {**STATE, "symbols": ["unknown", "done"], "default": "unknown"}
LAT, LON = field("lat", "float"), field("lon", "float")
SKU, COUNT = field("sku", "string"), field("count", "int")
CHOICE = field("choice", ["null", "int"], default=None)
PRICE = field("price", MONEY)

VERSIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    # The first.
    (record("Row", ID, field("n", "int"), field("state", STATUS), geo(LAT, LON), line(SKU, COUNT)),
     {"id": "1", "n": 1, "state": "open", "geo": {"lat": 0.5, "lon": 1.5}, "lines": [{"sku": "a", "count": 1}]}),
    # A field is added with a default.
    (record("Row", ID, field("n", "int"), field("state", STATUS), geo(LAT, LON), line(SKU, COUNT),
            field("note", "string", default="none")),
     {"id": "2", "n": 2, "state": "done", "geo": {"lat": -0.5, "lon": 1.5}, "lines": [], "note": "x"}),
    # Fields change places, outside and inside.
    (record("Row", field("note", "string", default="none"), line(COUNT, SKU), geo(LON, LAT), field("state", STATUS),
            field("n", "int"), ID),
     {"id": "3", "n": 3, "state": "open", "geo": {"lat": 0.25, "lon": 2}, "lines": [{"sku": "b", "count": 3}],
      "note": ""}),
    # Numbers are promoted, outside and inside.
    (record("Row", ID, field("n", "long"), field("state", STATUS), geo(field("lat", "double"), LON),
            line(SKU, field("count", "long")), field("note", "string", default="none")),
     {"id": "4", "n": 2**40, "state": "done", "geo": {"lat": 0.1, "lon": 1}, "lines": [{"sku": "c", "count": 2**40}],
      "note": "4"}),
    # Logical types, one of them nullable.
    (record("Row", ID, field("n", "long"), field("state", STATUS_2), geo(field("lat", "double"), LON),
            line(SKU, field("count", "long")), PRICE, field("at", ["null", AT], default=None)),
     {"id": "5", "n": 5, "state": "lost", "geo": {"lat": 5, "lon": 5}, "lines": [], "price": Decimal("12.34"),
      "at": 1_790_000_000_123}),
    # Fields are renamed, outside and inside; a choice is added.
    (record("Row", ID, field("number", "long", aliases=["n"]), field("state", STATUS_2),
            geo(field("latitude", "double", aliases=["lat"]), LON), line(field("article", "string", aliases=["sku"]),
            field("count", "long")), PRICE, CHOICE),
     {"id": "6", "number": 6, "state": "open", "geo": {"latitude": 6, "lon": 6},
      "lines": [{"article": "f", "count": 6}], "price": Decimal("-0.01"), "choice": 6}),
    # Named types are renamed.
    (record("Row", ID, field("number", "long", aliases=["n"]), field("state", STATE),
            geo(field("latitude", "double"), LON), line(field("article", "string"), field("count", "long")), PRICE,
            CHOICE),
     {"id": "7", "number": 7, "state": "done", "geo": {"latitude": 7, "lon": 7}, "lines": [],
      "price": Decimal("7.00"), "choice": None}),
    # A choice of more types; a map and a nested default.
    (record("Row", ID, field("number", "long"), field("state", STATE), geo(field("latitude", "double"), LON,
            field("datum", "string", default="WGS84")), line(field("article", "string"), field("count", "long")),
            PRICE, field("choice", ["null", "long", "string"], default=None),
            field("tags", {"type": "map", "values": "int"}, default={})),
     {"id": "8", "number": 8, "state": "open", "geo": {"latitude": 8, "lon": 8, "datum": "ETRS89"},
      "lines": [{"article": "h", "count": 8}], "price": Decimal("8.00"), "choice": "eight", "tags": {"a": 1}}),
    # A field is left out.
    (record("Row", ID, field("number", "long"), field("state", STATE), geo(field("latitude", "double"), LON), PRICE),
     {"id": "9", "number": 9, "state": "lost", "geo": {"latitude": 9, "lon": 9}, "price": Decimal("9.00")}),
]  # fmt: skip
READER = record(
    "Row", field("state", STATE_2), PRICE | {"default": "\u0001\u0000"}, ID,
    field("amount", "double", aliases=["number", "n"]),
    geo(field("height", ["null", "double"], default=None), field("datum", "string", default="WGS84"),
        field("latitude", "double", aliases=["lat"]), field("lon", "double")),
    field("lines", {"type": "array", "items": record("Item", field("count", "double"),
          field("article", "string", aliases=["sku"]), field("unit", "string", default="piece"),
          aliases=["Line"])}, default=[]),
    field("choice", ["string", "null", "double"], default="none"),
    field("tags", {"type": "map", "values": "long"}, default={}),
    field("at", ["null", AT], default=None),
    field("note", ["string", "null"], default="nothing"),
)  # fmt: skip
LAST = {
    "id": "10", "amount": 0.5, "state": "unknown", "price": Decimal("10.00"), "note": None, "choice": 1.5,
    "geo": {"latitude": 1, "lon": 2, "datum": "x", "height": 3.5}, "tags": {"b": 2**40}, "at": None,
    "lines": [{"article": "j", "count": 1.5, "unit": "kg"}],
}  # fmt: skip


def read_by_fastavro(body: bytes, writer: Any, reader: Any) -> dict[str, Any]:
    parsed = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    return dict(fastavro.schemaless_reader(io.BytesIO(body), *parsed))  # type: ignore[arg-type, call-overload]


def as_column(row: Mapping[str, Any]) -> dict[str, Any]:
    """The reader's values as the clean table has them: a choice is a member for each type."""
    choice = row["choice"]
    members = {
        "string": choice if isinstance(choice, str) else None,
        "double": choice if isinstance(choice, float | int) else None,
    }
    # A default that is a number of bytes is a text to fastavro.
    price = Decimal("2.56") if row["price"] == "\u0001\u0000" else row["price"]
    return {**row, "price": price, "choice": None if choice is None else members, "tags": list(row["tags"].items())}


def text(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"id": {"type": "string"}, **properties}, "required": ["id"]}


def whole(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


INTEGER, NUMBER, STRING = ({"type": name} for name in ("integer", "number", "string"))
MOMENT = {"type": "string", "format": "date-time"}
TEXTS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (text(n=INTEGER), {"id": "1", "n": 1}, {"n": 1.0}),
    (text(note=STRING, n=INTEGER), {"id": "2", "n": 2, "note": "x"}, {"n": 2.0, "note": "x"}),
    (text(n=NUMBER), {"id": "3", "n": 0.5}, {"n": 0.5}),
    (text(geo=whole("lat", lat=INTEGER)), {"id": "4", "geo": {"lat": 4}}, {"geo": {"lat": 4.0, "lon": None}}),
    (text(geo=whole(lon=NUMBER, lat=NUMBER)), {"id": "5", "geo": {"lon": 1}}, {"geo": {"lat": None, "lon": 1.0}}),
    (text(lines={"type": "array", "items": whole(n=INTEGER)}), {"id": "6", "lines": [{"n": 6}, {}]},
     {"lines": [{"n": 6.0, "unit": None}, {"n": None, "unit": None}]}),
    (text(lines={"type": "array", "items": whole(unit=STRING)}), {"id": "7", "lines": [{"unit": "kg"}]},
     {"lines": [{"n": None, "unit": "kg"}]}),
    (text(tags={"type": "object", "additionalProperties": INTEGER}), {"id": "8", "tags": {"a": 1}},
     {"tags": [("a", 1.0)]}),
    (text(at=MOMENT), {"id": "9", "at": "2026-01-01T00:00:00Z"}, {"at": datetime(2026, 1, 1, tzinfo=UTC)}),
]  # fmt: skip
TEXT_READER = text(
    at=MOMENT, tags={"type": "object", "additionalProperties": NUMBER}, geo=whole(lat=NUMBER, lon=NUMBER),
    lines={"type": "array", "items": whole(n=NUMBER, unit=STRING)}, note=STRING, n=NUMBER,
)  # fmt: skip


def test_ten_versions_in_json_are_read_in_one_pass_each_judged_by_its_own() -> None:
    versions = [*TEXTS, (TEXT_READER, {"id": "10", "note": None}, {})]
    sent = [Sent(frame(id_) + json.dumps(value).encode()) for id_, (_, value, _) in enumerate(versions, 1)]
    plan = reading("JSON", TEXT_READER, {id_: schema for id_, (schema, _, _) in enumerate(versions, 1)})
    rows = decoded(sent, **plan)
    assert [row["reason"] for row in rows] == [*[None] * 9, "invalid"]
    nothing = dict.fromkeys(TEXT_READER["properties"])
    assert [row["row"] for row in rows[:9]] == [{**nothing, "id": value["id"], **row} for _, value, row in TEXTS]
    with decoding(sent, **plan) as records:
        assert records._explain_string().count("LocalTableScan") == 1
        assert records._explain_string().count("ArrowEvalPython") == 1


def test_a_property_that_was_dropped_counts_in_records_of_versions_that_have_it() -> None:
    old, new = text(n=INTEGER, geo=whole(lat=NUMBER, lon=NUMBER)), text(geo=whole(lat=NUMBER))
    value = {"id": "a", "n": 1, "geo": {"lat": 1, "lon": 2}}
    later = {"id": "b", "n": "of another type", "geo": {"lat": 1, "lon": "east"}}
    sent = [Sent(frame(id_) + json.dumps(each).encode()) for id_, each in ((1, value), (2, later))]
    found = decoded(sent, own=json.dumps(new), **reading("JSON", old, {1: old, 2: new}))
    assert [row["row"] for row in found] == [
        {"id": "a", "n": 1, "geo": {"lat": 1.0, "lon": 2.0}},
        {"id": "b", "n": None, "geo": {"lat": 1.0, "lon": None}},
    ]


def test_ten_versions_in_one_batch_are_read_in_one_pass_as_avro_resolves_each() -> None:
    versions = [*VERSIONS, (READER, LAST)]
    bodies = [avro_bytes(schema, value) for schema, value in versions]
    sent = [Sent(frame(id_) + body) for id_, body in enumerate(bodies, 1)]
    plan = reading("AVRO", READER, {id_: schema for id_, (schema, _) in enumerate(versions, 1)})
    rows = decoded(sent, **plan)
    assert [row["reason"] for row in rows] == [None] * 10
    expected = [
        as_column(read_by_fastavro(body, schema, READER)) for body, (schema, _) in zip(bodies, versions, strict=True)
    ]
    assert [row["row"] for row in rows] == expected
    with decoding(sent, **plan) as records:
        assert records._explain_string().count("LocalTableScan") == 1


def alike(found: Any, expected: Any) -> bool:
    """The same value, a map told as its entries, bytes that are a default told as a text."""
    match found, expected:
        case dict(), dict():
            return found.keys() == expected.keys() and all(alike(found[name], expected[name]) for name in found)
        case list(), dict():
            return alike(dict(found), expected)
        case list(), list():
            return len(found) == len(expected) and all(map(alike, found, expected))
        case bytes(), str():
            return found == expected.encode("latin-1")
    return bool(found == expected)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=versions())
def test_any_version_is_read_as_fastavro_reads_it(pair: Pair) -> None:
    body = avro_bytes(pair.writer, pair.value)
    key = next(each["name"] for each in pair.reader["fields"] if each["name"] in ("f0", "g0"))
    plan = reading("AVRO", pair.reader, {1: pair.writer})
    (row,) = decoded([Sent(frame(1) + body)], key=[key], columns={key: "string"}, **plan)
    assert row["reason"] is None
    assert alike(row["row"], read_by_fastavro(body, pair.writer, pair.reader))
