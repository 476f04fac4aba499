"""Types: every row of the documented tables goes the whole way, from a record through the clean table to a warehouse.

One feed per language holds a field for each construct, and its records one value each, the extremes among them.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from workshop import Record, Workshop

from headrace import layout, type_reference
from headrace.airflow import connections
from headrace.columns import columns
from headrace.constructs import AVRO, CONSTRUCTS, JSON, Construct
from headrace.errors import ReconcileError
from headrace.feed import SchemaType

Make = Callable[..., Workshop]
DECLARED = {"key": ["id"], "warehouses": {"finance": {}}}
NAN, INFINITY = math.nan, math.inf
DAY = 86_400_000_000
HOME = {"lat": 52.5, "lon": -0.125}
SOME_UUID = UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")


@dataclass(frozen=True)
class Way:
    """A value on its way: as it is sent, as the clean table has it, as Postgres has it; equal if not said otherwise."""

    sent: Any
    clean: Any = ...
    postgres: Any = ...

    @property
    def in_clean(self) -> Any:
        return self.sent if self.clean is ... else self.clean

    @property
    def in_postgres(self) -> Any:
        return self.in_clean if self.postgres is ... else self.postgres


def each(*values: Any) -> list[Way]:
    return [Way(value) for value in values]


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


def local(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


def since(moment: datetime, *, per_second: int) -> int:
    """The moment as a number since 1970, exactly."""
    passed = moment.replace(tzinfo=UTC) - at(1970, 1, 1)
    return (passed.days * DAY + passed.seconds * 1_000_000 + passed.microseconds) * per_second // 1_000_000


def moments(*found: datetime, per_second: int) -> list[Way]:
    return [Way(since(moment, per_second=per_second), moment) for moment in found]


MILLIS, MICROS, NANOS = 1000, 1_000_000, 1_000_000_000
FIRST, LAST = (1, 1, 1), (9999, 12, 31, 23, 59, 59)

AVRO_VALUES: Mapping[str, list[Way]] = {
    "null": each(None),
    "boolean": each(True, False),
    "int": each(0, 2**31 - 1, -(2**31)),
    "long": each(0, 2**63 - 1, -(2**63)),
    "float": [*each(1.5, NAN, -INFINITY, -0.0), Way(2.0**-149, postgres=1e-45)],
    "double": each(0.1, NAN, INFINITY, -5e-324, 1.7976931348623157e308),
    "bytes": each(b"\0\xff", b""),
    "string": each("Grüße, 世界 🌊", "", " ' \\ \" \n\t", "a" * 100_000),
    "enum": each("red", "green"),
    "fixed": each(b"\0\1\2\xff"),
    "record": [
        *each(HOME),
        Way({"lat": 1e300, "lon": -0.0}, postgres={"lat": 10**300, "lon": 0}),
        Way({"lat": NAN, "lon": INFINITY}, postgres={"lat": "NaN", "lon": "Infinity"}),
    ],
    "reference to a named type": each(HOME),
    "array": each(["a", "ü", ""], []),
    "map": [Way({"b": 2**63 - 1, "ä": -1}, [("b", 2**63 - 1), ("ä", -1)], {"b": 2**63 - 1, "ä": -1}), Way({}, [], {})],
    "array of records": [
        Way([{"a": HOME, "b": None}, {}], [[("a", HOME), ("b", None)], []], [{"a": HOME, "b": None}, {}]),
    ],
    "union with null": each("x", None, ""),
    "union of int and long": each(2**31, -1, 2**63 - 1, -(2**63)),
    "union of float and double": each(0.1, None),
    "union of several types": [
        Way("x", {"string": "x", "long": None, "Geo": None}),
        Way(-7, {"string": None, "long": -7, "Geo": None}),
        Way(HOME, {"string": None, "long": None, "Geo": HOME}),
        Way(None),
    ],
    "decimal over bytes": each(
        Decimal("0E-10"), Decimal("-9999999999999999999999999999.9999999999"), Decimal("1.5000000000")
    ),
    "decimal over fixed": each(Decimal("-0.01"), Decimal("9999999999.99"), Decimal("-9999999999.99")),
    "big-decimal": each(b"\x04\x30\x39\x04"),
    "date": [
        Way((day - date(1970, 1, 1)).days, day)
        for day in (date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(2024, 2, 29))
    ],
    "time-millis": [
        Way(0, "00:00:00.000000", time()),
        Way(86_399_999, "23:59:59.999000", time(23, 59, 59, 999_000)),
    ],
    "time-micros": [
        Way(1, "00:00:00.000001", time(0, 0, 0, 1)),
        Way(DAY - 1, "23:59:59.999999", time(23, 59, 59, 999_999)),
    ],
    "timestamp-millis": moments(at(1969, 12, 31, 23, 59, 59, 999_000), at(*FIRST), at(*LAST), per_second=MILLIS),
    "timestamp-micros": moments(
        at(1969, 12, 31, 23, 59, 59, 999_999), at(*FIRST), at(*LAST, 999_999), per_second=MICROS
    ),
    "timestamp-nanos": [
        Way(-1, at(1969, 12, 31, 23, 59, 59, 999_999)),
        Way(1_999, at(1970, 1, 1, 0, 0, 0, 1)),
        *moments(at(2262, 4, 11, 23, 47, 16, 854_775), at(1677, 9, 21, 0, 12, 43, 145_225), per_second=NANOS),
    ],
    "local-timestamp-millis": moments(local(1969, 12, 31, 23, 59, 59, 999_000), local(*FIRST), per_second=MILLIS),
    "local-timestamp-micros": moments(local(2026, 3, 29, 2, 30), local(*LAST, 999_999), per_second=MICROS),
    "local-timestamp-nanos": [Way(-1_001, local(1969, 12, 31, 23, 59, 59, 999_998)), Way(999, local(1970, 1, 1))],
    "uuid over string": [Way(str(SOME_UUID).upper(), SOME_UUID), Way(str(UUID(int=0)), UUID(int=0))],
    "uuid over fixed": [Way(SOME_UUID.bytes, SOME_UUID), Way(b"\xff" * 16, UUID(bytes=b"\xff" * 16))],
    "duration": [
        Way(b"\1\0\0\0\2\0\0\0\3\0\0\0", {"months": 1, "days": 2, "millis": 3}),
        Way(b"\xff" * 12, dict.fromkeys(("months", "days", "millis"), 2**32 - 1)),
    ],
    "unknown logical type": each(26),
}  # fmt: skip


def json_text(value: Any, text: str) -> Way:
    return Way(value, text, value)


JSON_VALUES: Mapping[str, list[Way]] = {
    "boolean": each(True, False),
    "integer": [*each(0, 2**63 - 1, -(2**63)), Way(3.0, 3)],
    "number": [*each(0.1, -5e-324, 1.7976931348623157e308), Way(7, 7.0)],
    "string": each("Grüße, 世界 🌊", "", "\u2028\\\"'"),
    "type with null": each("x", None),
    "anyOf or oneOf with null": each(1, None),
    "integer or number": [*each(1.5), Way(2, 2.0)],
    "null": each(None),
    "enum": each("red"),
    "const": each(7),
    "format date-time": [
        Way("1969-12-31T23:59:59.999999999Z", at(1969, 12, 31, 23, 59, 59, 999_999)),
        Way("2024-02-29t12:00:00+05:30", at(2024, 2, 29, 6, 30)),
        Way("0001-01-01T00:00:00Z", at(*FIRST)),
        Way("9999-12-31T23:59:59.999999Z", at(*LAST, 999_999)),
    ],
    "format date": [Way("0001-01-01", date(1, 1, 1)), Way("2024-02-29", date(2024, 2, 29))],
    "format uuid": [Way(str(SOME_UUID).upper(), SOME_UUID)],
    "format time": each("12:00:00+05:30"),
    "any other format": each("a@example.org"),
    "contentEncoding": each("AP8="),
    "object with properties": [Way({**HOME, "more": 1}, HOME), Way({}, {"lat": None, "lon": None})],
    "object with other names": [json_text({"a-b": 1, "c": None}, '{"a-b":1,"c":null}')],
    "object with additionalProperties": [
        Way({"b": 1, "a": 2}, [("b", 1), ("a", 2)], {"a": 2, "b": 1}), Way({}, [], {}),
    ],
    "free object": [
        json_text({"b": {"ü": [1, "\n"]}, "a": -0.5}, '{"a":-0.5,"b":{"ü":[1,"\\n"]}}'), json_text({}, "{}"),
    ],
    "anything": [
        json_text("1", '"1"'), json_text(1, "1"), json_text([None, False], "[null,false]"),
        Way(1e300, "1" + "0" * 300, 10**300),
    ],
    "array": each(["a", "", "ü"], []),
    "array of anything": [json_text([1, "a", {}], '[1,"a",{}]')],
    "tuple": [json_text(["a", 1], '["a",1]')],
    "several types": [json_text("1", '"1"'), json_text(1, "1")],
    "anyOf or oneOf": [json_text("x", '"x"'), json_text(HOME, '{"lat":52.5,"lon":-0.125}')],
    "allOf": [Way({**HOME, "height": 1.5})],
    "$ref": each(HOME),
    "recursive $ref": [
        Way(
            {"name": "a", "inner": [{"name": "b", "inner": []}]},
            {"name": "a", "inner": '[{"inner":[],"name":"b"}]'},
            {"name": "a", "inner": [{"name": "b", "inner": []}]},
        ),
    ],
}  # fmt: skip
VALUES: Mapping[SchemaType, Mapping[str, list[Way]]] = {"AVRO": AVRO_VALUES, "JSON": JSON_VALUES}
ROWS = [(schema_type, construct) for schema_type, every in CONSTRUCTS.items() for construct in every]


@dataclass(frozen=True)
class Journey:
    """A feed of all constructs that has gone the whole way."""

    shop: Workshop
    clean: Mapping[str, Mapping[str, Any]]
    warehouse: Mapping[str, Mapping[str, Any]]
    declared: Mapping[str, str]


@pytest.fixture(scope="module")
def journeys() -> dict[SchemaType, Journey | None]:
    """Filled once for each language, by the first test that needs it; with nothing when that fails."""
    return {}


def ways(schema_type: SchemaType) -> Iterator[dict[str, Way]]:
    """The records: the n-th has the n-th value of each construct, or its first where there are not so many."""
    every = {each.field: VALUES[schema_type][each.name] for each in CONSTRUCTS[schema_type]}
    for number in range(max(map(len, every.values()))):
        yield {name: found[number] if number < len(found) else found[0] for name, found in every.items()}


def travel(workshop: Make, schema_type: SchemaType) -> Journey:
    if schema_type == "AVRO":
        fields = type_reference.schema("AVRO", AVRO)["fields"]
        shop = workshop(DECLARED, fields=fields)
    else:
        shop = workshop(DECLARED, json_schema=type_reference.schema("JSON", JSON))
    records = [
        Record({"id": str(number), **{name: way.sent for name, way in record.items()}})
        for number, record in enumerate(ways(schema_type))
    ]
    shop.publish(*records)
    shop.extract()
    shop.transform("run")
    assert shop.quarantine() == {}
    assert shop.check("run") == []
    shop.publish_run("run")
    assert shop.prove().agrees
    shop.load()
    shop.reconcile()
    with psycopg.connect(connections.warehouse("finance").database.url()) as connection:
        cursor = connection.execute(sql.SQL("select * from {}").format(sql.Identifier(shop.feed.name)))
        names = [column.name for column in cursor.description or ()]
        warehouse = {row[0]: dict(zip(names, row, strict=True)) for row in cursor}
        types = connection.execute(
            "select a.attname, format_type(a.atttypid, a.atttypmod) from pg_attribute a "
            "where a.attrelid = %s::regclass and a.attnum > 0",
            [shop.feed.name],
        ).fetchall()
    return Journey(shop, {row["id"]: row for row in shop.clean()}, warehouse, dict(types))


@pytest.fixture
def journey(workshop: Make, journeys: dict[SchemaType, Journey | None], request: pytest.FixtureRequest) -> Journey:
    schema_type: SchemaType = request.getfixturevalue("schema_type")
    if schema_type not in journeys:
        journeys[schema_type] = None
        journeys[schema_type] = travel(workshop, schema_type)
    journey = journeys[schema_type]
    return journey or pytest.fail("the records did not arrive: see the first test that failed")


def alike(found: Any, expected: Any) -> bool:
    """Equal, a NaN to a NaN too, and a minus before zero counts."""
    if isinstance(found, float) and isinstance(expected, float):
        return repr(found) == repr(expected)
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(alike(found[name], expected[name]) for name in found)
    return bool(found == expected) and type(found) is type(expected)


@pytest.mark.parametrize(("schema_type", "construct"), ROWS, ids=lambda each: getattr(each, "name", each))
def test_every_documented_type_goes_the_whole_way(
    schema_type: SchemaType, construct: Construct, journey: Journey
) -> None:
    name = construct.field
    column = next(each for each in columns(journey.shop.feed) if each.name == name)
    arrow, _, postgres, _ = type_reference.in_stores(column.type)
    table = journey.shop.lake.find(layout.clean_table(journey.shop.feed.name))
    read = str(table.scan().to_arrow_batch_reader().schema.field(name).type)
    assert read.replace("large_", "").replace("extension<arrow.uuid>", "uuid") == arrow
    assert journey.declared[name] == FORMATTED.get(postgres, postgres.replace(", ", ","))
    for number, record in enumerate(ways(schema_type)):
        way, key = record[name], str(number)
        assert alike(journey.clean[key][name], way.in_clean), f"record {key} in clean"
        if isinstance(way.in_postgres, dict | list):
            assert journey.warehouse[key][name] == way.in_postgres, f"record {key} in Postgres"
        else:
            assert alike(journey.warehouse[key][name], way.in_postgres), f"record {key} in Postgres"


FORMATTED = {
    "timestamptz": "timestamp with time zone",
    "timestamp": "timestamp without time zone",
    "time": "time without time zone",
}
"""What Postgres itself calls these."""


@pytest.mark.parametrize("schema_type", CONSTRUCTS)
def test_every_documented_type_has_values_here(schema_type: SchemaType) -> None:
    assert list(VALUES[schema_type]) == [each.name for each in CONSTRUCTS[schema_type]]


@pytest.mark.parametrize(
    ("schema_type", "change"),
    [
        ("AVRO", 'x_record = \'{{"lat": 52.5, "lon": 0}}\''),
        ("AVRO", 'x_array = \'["a", "ü"]\''),
        ("AVRO", "x_uuid_over_fixed = '00000000-0000-0000-0000-000000000001'"),
        ("AVRO", "x_time_micros = '12:00'"),
        ("AVRO", "x_fixed = '\\x00010203'"),
        ("JSON", "x_anything = '2'"),
        ("JSON", "x_anything = null"),
    ],
)
def test_reconcile_sees_a_change_of_any_type(schema_type: SchemaType, change: str, journey: Journey) -> None:
    shop = journey.shop
    undo = sql.SQL("update {} set {} where id = '0'")
    name, _, _ = change.partition(" = ")
    with psycopg.connect(connections.warehouse("finance").database.url(), autocommit=True) as connection:
        table = sql.Identifier(shop.feed.name)
        before = connection.execute(
            sql.SQL("select {}::text from {} where id = '0'").format(sql.Identifier(name), table)
        )
        (kept,) = before.fetchone() or (None,)
        connection.execute(undo.format(table, sql.SQL(change.replace("{{", "{").replace("}}", "}"))))  # type: ignore[arg-type]
        with pytest.raises(ReconcileError, match="altered 1: 0"):
            shop.reconcile()
        back = sql.SQL("{} = {}").format(sql.Identifier(name), sql.Literal(kept))
        connection.execute(undo.format(table, back))
    shop.reconcile()


def test_avro_values_that_some_store_refuses_go_to_quarantine(workshop: Make) -> None:
    kinds = ["uuid over string", "time-millis", "date", "timestamp-millis", "array", "map"]
    fields = [{"name": each.field, "type": ["null", each.schema]} for each in AVRO if each.name in kinds]
    shop = workshop(DECLARED, fields=[{"name": "id", "type": "string"}, *fields])
    refused = {
        "x_uuid_over_string": ["abc", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6 "],
        "x_time_millis": [86_400_000, -1],
        "x_date": [2_932_897, -719_163],
        "x_timestamp_millis": [253_402_300_800_000, -62_135_596_800_001, 2**63 - 1],
        "x_array": [["a", "\0"]],
        "x_map": [{"\0": 1}],
    }
    values = [{name: value} for name, every in refused.items() for value in every]
    empty = {"id": "a", **{field["name"]: None for field in fields}}
    shop.merge(Record(empty), *(Record({**empty, **value}) for value in values))
    assert [row["id"] for row in shop.clean()] == ["a"]
    assert shop.quarantine() == {(0, number): "undecodable" for number in range(1, len(values) + 1)}


def test_json_values_that_some_store_refuses_go_to_quarantine(workshop: Make) -> None:
    shop = workshop(DECLARED, json_schema=type_reference.schema("JSON", JSON))
    refused = {
        "x_integer": 2**63,
        "x_format_date_time": "2026-12-31T23:59:60Z",
        "x_anything": {"a": "\0"},
        "x_free_object": {"a": "\ud800"},
    }
    good = Record({"id": "a"})
    shop.merge(good, *(Record({"id": name, name: value}) for name, value in refused.items()))
    frame = b"\0" + shop.schema_id.to_bytes(4, "big")
    shop.merge(Record(frame + b'{"id": "b", "x_anything": 1e400}', key="b"), Record({"id": "c", "x_string": "\0"}))
    assert [row["id"] for row in shop.clean()] == ["a"]
    assert shop.quarantine() == {**{(0, number): "invalid" for number in range(1, 6)}, (0, 6): "undecodable"}


def test_zero_and_minus_zero_are_one_value_in_a_warehouse(workshop: Make) -> None:
    shop = workshop(DECLARED, fields=[{"name": "id", "type": "string"}, {"name": "n", "type": "double"}])
    shop.merge(Record({"id": "a", "n": 0.0}), Record({"id": "b", "n": -0.0}))
    shop.load()
    shop.merge(Record({"id": "a", "n": -0.0}), Record({"id": "b", "n": 0.0}))
    assert [repr(row["n"]) for row in shop.clean()] == ["-0.0", "0.0"]
    assert shop.load().counts.updated == 0
    done = shop.redeclared(warehouses={"finance": {"index": [["n"]]}}).load()
    assert (done.whole, done.staged, done.counts.updated) == (True, 2, 0)
    with psycopg.connect(connections.warehouse("finance").database.url()) as connection:
        rows = connection.execute(sql.SQL("select n from {} order by id").format(sql.Identifier(shop.feed.name)))
        assert [repr(n) for (n,) in rows] == ["0.0", "-0.0"], "what came first stays"
    assert shop.redeclared(warehouses={"finance": {"index": [["n"]]}}).reconcile().figures.rows == 2


def test_a_key_that_is_too_long_for_an_index_goes_to_quarantine_and_the_longest_to_every_store(workshop: Make) -> None:
    fields = [{"name": name, "type": type_} for name, type_ in (("id", "string"), ("part", "bytes"), ("n", "long"))]
    shop = workshop({**DECLARED, "key": ["id", "part"]}, fields=fields)
    letters = Random(1).choices([chr(code) for code in range(0x100, 0x300)], k=700)  # which no database makes shorter
    longest = {"id": "".join(letters), "part": Random(2).randbytes(1100)}
    longer = {**longest, "part": longest["part"] + b"x"}
    shop.merge(Record({**longest, "n": 1}), Record({**longer, "n": 2}))
    assert [row["n"] for row in shop.clean()] == [1]
    assert shop.quarantine() == {(0, 1): "undecodable"}
    shop.load()
    assert shop.reconcile().figures.rows == 1


def test_a_tombstone_whose_key_is_too_long_deletes_nothing_and_goes_to_quarantine(workshop: Make) -> None:
    shop = workshop(DECLARED, fields=[{"name": "id", "type": "string"}])
    shop.merge(Record({"id": "a"}), Record(None, key="x" * 2501), Record(None, key="x" * 2500))
    assert shop.quarantine() == {(0, 1): "keyless"}
    shop.load()
    assert shop.reconcile().figures.rows == 1


KEYS: Mapping[str, tuple[Any, list[Any], str]] = {
    "uuid": (
        {"type": "string", "logicalType": "uuid"},
        [str(SOME_UUID), str(SOME_UUID).upper()],
        str(SOME_UUID).upper(),
    ),
    "date": ({"type": "int", "logicalType": "date"}, [1, 1], "1970-01-02"),
    "time": ({"type": "int", "logicalType": "time-millis"}, [1, 1], "00:00:00.001000"),
    "timestamp": ({"type": "long", "logicalType": "timestamp-millis"}, [1, 1], "1970-01-01T00:00:00.001Z"),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        [Decimal("-1.50"), Decimal("-1.50")],
        "-1.5",
    ),
    "fixed": ({"type": "fixed", "name": "Code", "size": 4}, [b"abcd", b"abcd"], "abcd"),
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_of_any_exact_type_merges_deletes_and_loads(workshop: Make, kind: str) -> None:
    type_, (one, same), tombstone = KEYS[kind]
    fields = [{"name": "id", "type": type_}, {"name": "n", "type": "long"}]
    shop = workshop(DECLARED, fields=fields)
    shop.merge(Record({"id": one, "n": 1}))
    shop.merge(Record({"id": same, "n": 2}))
    assert [row["n"] for row in shop.clean()] == [2]
    shop.load()
    shop.reconcile()
    shop.merge(Record(None, key=tombstone))
    assert shop.clean() == []
    shop.load()
    assert shop.reconcile().figures.rows == 0
