"""Import against a real Postgres, S3 and Kafka: every row exactly once, whatever is killed, changed or wrong."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import psycopg
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from psycopg import sql
from workshop import ORDER_FIELDS, Record, Workshop

from headrace import feed as feeds
from headrace import layout, provenance
from headrace.airflow import connections, history, registration
from headrace.airflow.history import Request
from headrace.errors import HistoryError, RegistryError, ServiceAway, SourceSilent, TopicSilent
from headrace.history import counting
from headrace.history.staging import Begun, Staging
from headrace.kafka import span, topic
from headrace.kafka.span import Span
from headrace.provenance import Origin
from headrace.stages import history as stage

Make = Callable[..., Workshop]
CONNECTION = layout.warehouse_connection("finance")
NOW = datetime.now(UTC).replace(microsecond=0)
SOME_UUID = UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")


def quiet(phase: str, done: int, total: int | None) -> None:
    """Nobody looks."""


@dataclass(frozen=True)
class Old:
    """A table of a test's own, with history in it."""

    name: str

    @property
    def source(self) -> str:
        return f"postgres:{CONNECTION}/{self.name}"

    def run(self, statement: str) -> list[Any]:
        with psycopg.connect(connections.database(CONNECTION).url()) as connection:
            done = connection.execute(sql.SQL(statement.replace("TABLE", self.name)))  # type: ignore[arg-type]
            return done.fetchall() if done.description else []


@pytest.fixture
def old(stack: Any) -> Iterator[Old]:
    table = Old(f"old_{uuid.uuid4().hex[:10]}.orders")
    schema = table.name.partition(".")[0]
    table.run(f"create schema {schema}")
    yield table
    table.run(f"drop schema {schema} cascade")


def orders(old: Old, count: int) -> None:
    """Orders in no order, a third of them without an address."""
    old.run(f"""
        create table TABLE as
        select 'o' || n as id, 1::bigint as revision, case n % 2 when 0 then 'placed' else 'paid' end as status,
               (n % 10000)::numeric(12, 2) / 100 as price,
               case when n % 3 > 0 then 'p' || n || '@example.org' end as email,
               '{NOW.isoformat()}'::timestamptz as created_at
        from generate_series(1, {count}) n order by md5(n::text)
    """)


def held(shop: Workshop) -> list[dict[str, Any]]:
    """Every committed record of the topic, by partition and offset."""
    found = topic.describe(shop.kafka, shop.feed.topic)
    spans = {number: Span(reach.start, reach.end) for number, reach in found.partitions.items() if reach.end}
    rows = [row for batch in span.read(shop.kafka, shop.feed.topic, spans=spans) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def keys(shop: Workshop) -> Counter[str]:
    return Counter(row["key"].decode() for row in held(shop))


def imported(shop: Workshop, request: Request) -> Any:
    return history.run(request, progress=quiet)


def clean(shop: Workshop) -> list[dict[str, Any]]:
    """The clean rows after a run over what was imported."""
    shop.merge()
    return shop.clean()


def rejected(report: Any, shop: Workshop) -> list[dict[str, Any]]:
    bucket, _, key = report.rejected_at.removeprefix("s3://").partition("/")
    body = shop.lake.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    return pq.read_table(pa.BufferReader(body)).to_pylist()


def staged(shop: Workshop) -> list[str]:
    found = shop.lake.s3.list_objects_v2(Bucket="headrace", Prefix=f"import/{shop.feed.name}/").get("Contents", ())
    return sorted(each["Key"].split("/", 3)[3] for each in found)


def left(shop: Workshop) -> list[str]:
    """What is staged, without the attempts' names."""
    return [name.rpartition("/")[2] for name in staged(shop)]


def stop(phase: str, done: int, total: int | None) -> None:
    """Dies after the first transaction."""
    if phase == "publish":
        raise KeyboardInterrupt


def test_a_table_enters_the_topic_once_in_key_order_signed_and_is_clean_row_by_row(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 1000)
    report = imported(shop, Request(shop.feed, old.source))
    assert (report.total, report.published, report.rejected, report.proof) == (1000, 1000, {}, "topic")
    records = held(shop)
    assert Counter(row["key"].decode() for row in records) == Counter(f"o{n}" for n in range(1, 1001))
    for partition in {row["partition"] for row in records}:
        inside = [row["key"] for row in records if row["partition"] == partition]
        assert inside == sorted(inside)
    signing = connections.signing_key()
    for row in records:
        headers = [(each["name"], each["value"]) for each in row["headers"]]
        proof = provenance.read(headers, key=row["key"], value=row["value"], signing=signing)
        assert proof.import_id == report.import_id
    expected = old.run("select id, revision, status, price, email, created_at from TABLE order by id")
    names = ["id", "revision", "status", "price", "email", "created_at"]
    assert clean(shop) == sorted((dict(zip(names, row, strict=True)) for row in expected), key=str)
    assert left(shop) == ["begun.json", "manifest.json", "report.json"], "chunks are gone once they are published"


def test_importing_again_does_nothing_unless_asked_to(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 50)
    first = imported(shop, Request(shop.feed, old.source))
    old.run("insert into TABLE select 'late', 1, 'paid', 1, null, date_trunc('second', now())")
    assert imported(shop, Request(shop.feed, old.source)) == first
    assert len(held(shop)) == 50
    second = imported(shop, Request(shop.feed, old.source, again=True))
    assert (second.total, second.import_id.rpartition("-")[2]) == (51, "2")
    assert len(held(shop)) == 101


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}
FIXED_DECIMAL = {"type": "fixed", "name": "M", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 2}
SMALL_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
DATE = {"type": "int", "logicalType": "date"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}
MOMENT = {"type": "long", "logicalType": "timestamp-micros"}
GRID = {"type": "array", "items": {"type": "array", "items": "long"}}
PLACE = {
    "type": "record",
    "name": "P",
    "fields": [{"name": "lat", "type": "double"}, {"name": "at", "type": ["null", DATE]}],
}

TYPES: Sequence[tuple[str, Any, str, Any]] = [
    # field, Avro type, what Postgres has, what the clean table has
    ("flag", "boolean", "true", True),
    ("small", "int", "(-2147483648)::int", -(2**31)),
    ("large", "long", "9223372036854775807", 2**63 - 1),
    ("exact", DECIMAL, "-1.5::numeric", Decimal("-1.5000000000")),
    ("fixed_exact", FIXED_DECIMAL, "-9999999999.99", Decimal("-9999999999.99")),
    ("single", "float", "1.5::real", 1.5),
    ("wide", "double", "0.1::float8", 0.1),
    ("wide_text", "double", "0.1::numeric", 0.1),
    ("words", "string", "'Grüße, 世界 🌊'", "Grüße, 世界 🌊"),
    ("number_text", "string", "42::int", "42"),
    ("raw", "bytes", r"'\x00ff'::bytea", b"\x00\xff"),
    ("day", DATE, "date '0001-01-01'", date(1, 1, 1)),
    ("clock", {"type": "long", "logicalType": "time-micros"}, "time '23:59:59.000001'", "23:59:59.000001"),
    ("moment", MOMENT, "timestamptz '2026-01-31 12:00:00.000001+02'", datetime(2026, 1, 31, 10, 0, 0, 1, UTC)),
    ("local", LOCAL, "timestamp '9999-12-31 23:59:59'", datetime(9999, 12, 31, 23, 59, 59)),  # noqa: DTZ001
    ("id_uuid", {"type": "string", "logicalType": "uuid"}, f"'{str(SOME_UUID).upper()}'::uuid", SOME_UUID),
    ("colour", {"type": "enum", "name": "C", "symbols": ["red", "green"]}, "'green'", "green"),
    ("tags", {"type": "array", "items": "string"}, "array['a', 'ü']", ["a", "ü"]),
    ("sums", {"type": "array", "items": SMALL_DECIMAL}, "array[1.5, 2]::numeric[]", [Decimal("1.50"), Decimal("2.00")]),
    ("grid", GRID, "array[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
    ("raws", {"type": "array", "items": "bytes"}, r"array['\x00ff'::bytea]", [b"\x00\xff"]),
    ("cash", SMALL_DECIMAL, "12.34::money", Decimal("12.34")),
    ("number", "long", "4294967295::oid", 2**32 - 1),
    ("place", PLACE, """'{"lat": 52.5, "at": "2026-01-31"}'::jsonb""", {"lat": 52.5, "at": date(2026, 1, 31)}),
    ("counts", {"type": "map", "values": "long"}, """'{"a": 1}'::json""", [("a", 1)]),
    ("either", ["null", "string", "long"], """'{"long": 7}'::jsonb""", {"string": None, "long": 7}),
    ("network", "string", "inet '10.0.0.1/8'", "10.0.0.1/8"),
    ("nothing", ["null", "string"], "null::text", None),
]


def test_each_type_of_postgres_arrives_exactly(workshop: Make, old: Old) -> None:
    fields = [{"name": "id", "type": "long"}, *({"name": name, "type": type_} for name, type_, _, _ in TYPES)]
    shop = workshop({"key": ["id"]}, fields=fields)
    columns = ", ".join(f"{value} as {name}" for name, _, value, _ in TYPES)
    old.run(f"create table TABLE as select 1::bigint as id, {columns}")
    assert imported(shop, Request(shop.feed, old.source)).rejected == {}
    (row,) = clean(shop)
    for name, _, _, expected in TYPES:
        assert row[name] == expected, name


ROWS = [
    {"id": "a,1", "revision": 2**53 + 1, "status": "paid", "price": "12345678.90", "email": None, "at": NOW},
    {"id": 'b"2', "revision": 2, "status": "placed", "price": "0.01", "email": "", "at": NOW},
    {"id": "ü", "revision": -3, "status": "placed", "price": "-1.00", "email": "NULL", "at": NOW},
]


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    table = pa.Table.from_pylist([{**row, "price": Decimal(row["price"])} for row in rows])
    pq.write_table(table.set_column(2, "status", table.column("status").dictionary_encode()), path)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    texts = [{**row, "revision": str(row["revision"]), "at": row["at"].isoformat()} for row in rows]
    pcsv.write_csv(pa.Table.from_pylist(texts), path)


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    lines = []
    for row in rows:
        given = {name: value for name, value in row.items() if value is not None}
        text = json.dumps({**given, "at": row["at"].isoformat(), "price": "PRICE"}, ensure_ascii=False)
        lines.append(text.replace('"PRICE"', row["price"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_avro(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    fields = [{**field, "name": "at" if field["name"] == "created_at" else field["name"]} for field in ORDER_FIELDS]
    with path.open("wb") as file:
        records = [{**row, "price": Decimal(row["price"])} for row in rows]
        fastavro.writer(file, {"type": "record", "name": "Old", "fields": fields}, records)


@pytest.mark.parametrize("place", ["disk", "s3"])
@pytest.mark.parametrize(
    ("ending", "write"),
    [("parquet", write_parquet), ("csv", write_csv), ("jsonl", write_jsonl), ("avro", write_avro)],
)
def test_files_of_each_kind_enter_the_topic_from_disk_and_from_s3(
    workshop: Make, tmp_path: Path, ending: str, write: Callable[[Path, Any], None], place: str
) -> None:
    shop = workshop()
    for number, row in enumerate(ROWS):
        write(tmp_path / f"{number}.{ending}", [row])
    pattern = str(tmp_path / f"*.{ending}")
    if place == "s3":
        for number in range(len(ROWS)):
            name = f"old/{shop.feed.name}/{number}.{ending}"
            shop.lake.s3.upload_file(str(tmp_path / f"{number}.{ending}"), "headrace", name)
        pattern = f"s3://headrace/old/{shop.feed.name}/*.{ending}"
    report = imported(shop, Request(shop.feed, pattern, renames={"created_at": "at"}))
    assert (report.total, report.published, report.rejected) == (3, 3, {})
    expected = [{**row, "price": Decimal(row["price"]), "created_at": row["at"]} for row in ROWS]
    names = [field["name"] for field in ORDER_FIELDS]
    assert clean(shop) == sorted(({name: row[name] for name in names} for row in expected), key=str)


def test_csv_has_the_nulls_the_delimiter_and_the_header_that_are_told(workshop: Make, tmp_path: Path) -> None:
    shop = workshop(
        {"key": ["id"]}, fields=[{"name": "id", "type": "long"}, {"name": "word", "type": ["null", "string"]}]
    )
    (tmp_path / "a.txt").write_text('1;\\N\n2;"\\N"\n3;\n4;"two\nlines"\n')
    request = Request(
        shop.feed, str(tmp_path / "a.txt"), format="csv", delimiter=";", nulls=("\\N",), header=("id", "word")
    )
    assert imported(shop, request).rejected == {}
    assert [row["word"] for row in clean(shop)] == [None, "\\N", "", "two\nlines"]


def test_a_feed_in_json_schema_is_validated_and_goes_without_what_is_null(workshop: Make, old: Old) -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "born": {"type": "string", "format": "date"},
            "share": {"type": "number", "maximum": 1},
            "note": {"type": "string", "maxLength": 5},
            "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
            "any": {},
        },
        "required": ["id", "at"],
        "additionalProperties": False,
    }
    shop = workshop({"key": ["id"]}, json_schema=schema)
    registration.register([shop.feed], store=connections.registry(), kafka=shop.kafka)
    old.run(f"""
        create table TABLE as select n as id, '{NOW.isoformat()}'::timestamptz as at, date '2000-02-29' as born,
            0.1 * n as share, case when n = 1 then null else repeat('x', n) end as note,
            jsonb_build_object('lat', n) as place, '[1, "a", 0.10]'::jsonb as any from generate_series(1, 10) n
    """)
    report = imported(shop, Request(shop.feed, old.source))
    assert (report.published, dict(report.rejected)) == (5, {"invalid": 5})
    assert {(row["row"], row["field"]) for row in rejected(report, shop)} == {(n, "note") for n in range(6, 11)}
    rows = clean(shop)
    assert [row["share"] for row in rows] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert (rows[0]["note"], rows[0]["at"], rows[0]["born"]) == (None, NOW, date(2000, 2, 29))
    assert (rows[0]["place"], rows[0]["any"]) == ({"lat": 1.0}, '[1,"a",0.1]')


def test_rows_that_are_no_records_are_left_out_counted_and_told_without_their_values(workshop: Make, old: Old) -> None:
    shop = workshop({"key": ["id"], "order": ["revision"], "topic": {"largest_message": "1 MiB"}})
    orders(old, 10)
    old.run("alter table TABLE alter column price type numeric(20, 4)")
    old.run("update TABLE set id = null where id = 'o1'")
    old.run("update TABLE set price = 1.2345 where id = 'o2'")
    old.run("update TABLE set status = 'secret' where id = 'o3'")
    old.run("update TABLE set revision = null where id = 'o4'")
    old.run("update TABLE set created_at = 'infinity' where id = 'o5'")
    old.run("update TABLE set email = repeat('x', 2000000) where id = 'o6'")
    report = imported(shop, Request(shop.feed, old.source))
    assert (report.total, report.published) == (10, 4)
    assert dict(report.rejected) == {"keyless": 1, "unfit": 3, "null": 1, "large": 1}
    told = {(row["fault"], row["field"]) for row in rejected(report, shop)}
    assert told >= {
        ("keyless", "id"),
        ("unfit", "price"),
        ("unfit", "status"),
        ("null", "revision"),
        ("unfit", "created_at"),
    }
    assert not any("secret" in str(row) or "1.2345" in str(row) for row in rejected(report, shop))
    assert set(keys(shop)) == {"o7", "o8", "o9", "o10"}


def test_strict_stops_at_the_first_row_that_is_no_record(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 10)
    old.run("update TABLE set status = 'lost' where id = 'o3'")
    with pytest.raises(HistoryError, match=r"status: none of the enum's symbols \(unfit\)"):
        imported(shop, Request(shop.feed, old.source, strict=True))
    assert held(shop) == []


def test_keys_of_several_fields_are_json_objects_that_tombstones_can_name(workshop: Make, old: Old) -> None:
    fields = [
        {"name": "shop", "type": "string"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "sum", "type": "long"},
    ]
    shop = workshop({"key": ["shop", "day"]}, fields=fields)
    old.run(
        "create table TABLE as "
        "select 'Löwe' as shop, date '2026-01-01' + n as day, n::bigint as sum from generate_series(0, 1) n"
    )
    imported(shop, Request(shop.feed, old.source))
    assert set(keys(shop)) == {'{"shop":"Löwe","day":"2026-01-01"}', '{"shop":"Löwe","day":"2026-01-02"}'}
    first = next(row for row in held(shop) if b"2026-01-01" in row["key"])
    shop.publish(Record(None, key=first["key"].decode(), partition=first["partition"]))
    assert [row["sum"] for row in clean(shop)] == [1]


def test_versions_of_one_key_come_in_their_order(workshop: Make, old: Old) -> None:
    shop = workshop()
    old.run(f"""
        create table TABLE as select 'o' || n % 3 as id, n::bigint as revision, 'paid' as status, 1.00 as price,
            null::text as email, '{NOW.isoformat()}'::timestamptz as created_at
        from generate_series(1, 300) n order by md5(n::text)
    """)
    imported(shop, Request(shop.feed, old.source))
    for key in (b"o0", b"o1", b"o2"):
        values = [row["value"] for row in held(shop) if row["key"] == key]
        reader = fastavro.parse_schema(dict(shop.feed.schema))
        found = [fastavro.schemaless_reader(pa.BufferReader(value[5:]), reader, None)["revision"] for value in values]
        assert found == sorted(found)
        assert len(found) == 100
    assert [row["revision"] for row in clean(shop)] == [300, 298, 299]


def test_what_changes_in_the_table_meanwhile_is_not_seen(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 40_000)
    changed: list[int] = []

    def change(phase: str, done: int, total: int | None) -> None:
        if phase == "read" and not changed:
            changed.append(done)
            old.run("delete from TABLE where id in (select id from TABLE limit 20000)")
            old.run("insert into TABLE select 'new', 9, 'paid', 1, null, now()")
            old.run("update TABLE set revision = 7")

    report = history.run(Request(shop.feed, old.source), progress=change)
    assert changed[0] < 40_000, "it was changed while it was read"
    assert (report.total, report.published) == (40_000, 40_000)
    assert "new" not in keys(shop)


def test_a_query_is_asked_once_and_told_by_its_hash(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 20)
    query = f"select *, id as nr from {old.name} where email is not null; "
    report = imported(shop, Request(shop.feed, f"postgres:{CONNECTION}", query=query, renames={"id": "nr"}))
    assert (report.total, report.published) == (14, 14)
    assert "select" not in report.source


def test_live_records_win_over_imported_ones_without_order_fields(workshop: Make, old: Old) -> None:
    fields = [{"name": "id", "type": "long"}, {"name": "word", "type": "string"}]
    shop = workshop({"key": ["id"]}, fields=fields)
    shop.publish(Record({"id": 1, "word": "live"}), Record(None, key="2"))
    old.run("create table TABLE as select n::bigint as id, 'old' as word from generate_series(1, 3) n")
    imported(shop, Request(shop.feed, old.source))
    assert [(row["id"], row["word"]) for row in clean(shop)] == [(1, "live"), (3, "old")]


def test_a_feed_that_is_not_registered_is_told_how_to_be(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 1)
    fields = [*ORDER_FIELDS, {"name": "more", "type": ["null", "string"], "default": None}]
    changed = feeds.parse(shop.feed.file, json.dumps({**shop.feed.schema, "fields": fields}))
    with pytest.raises(RegistryError, match=r"headrace register .*\.avsc"):
        imported(shop, Request(changed, old.source))


def configure(shop: Workshop, setting: str, value: str) -> None:
    change = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, shop.feed.topic, incremental_configs=[change])
    admin = AdminClient(dict(shop.kafka))
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result()


def test_old_timestamps_are_refused_where_the_broker_would_delete_them(workshop: Make, old: Old) -> None:
    shop = workshop({"key": ["id"], "order": ["revision"], "topic": {"retention": "7d"}})
    orders(old, 5)
    old.run("update TABLE set created_at = '2019-05-01' where id = 'o3'")
    request = Request(shop.feed, old.source, timestamp="created_at")
    with pytest.raises(HistoryError, match=r"oldest row is of 2019-05-01.*older than 7 days"):
        imported(shop, request)
    assert held(shop) == []
    configure(shop, "retention.ms", "-1")
    assert imported(shop, request).published == 5
    stamps = Counter(row["timestamp"] for row in held(shop))
    assert stamps == {int(NOW.timestamp() * 1000): 4, int(datetime(2019, 5, 1, tzinfo=UTC).timestamp() * 1000): 1}


def test_a_dry_run_tells_the_mapping_and_the_first_problems_and_writes_nothing(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 100)
    old.run("update TABLE set status = 'odd' where id in ('o1', 'o2')")
    old.run("alter table TABLE add column more int")
    seen = history.preview(Request(shop.feed, old.source))
    assert {each.target.name: each.column.name for each in seen.mapping.filled} == {
        f["name"]: f["name"] for f in ORDER_FIELDS
    }
    assert (seen.total, seen.read, list(seen.mapping.left_out)) == (100, 100, ["more"])
    assert dict(seen.problems) == {("unfit", "status", "none of the enum's symbols"): 2}
    assert held(shop) == []
    assert staged(shop) == []


def test_a_source_that_lacks_fields_or_a_zone_is_told_all_at_once(workshop: Make, old: Old) -> None:
    shop = workshop()
    old.run("""
        create table TABLE as
        select 'a' as idd, 1::bigint as revision, 'paid' as status, 1.0 as price, now()::timestamp as created_at
    """)
    with pytest.raises(HistoryError) as error:
        imported(shop, Request(shop.feed, old.source, renames={"prise": "price", "email": "mail"}))
    told = str(error.value)
    assert (
        'no column "id", which is part of the key. Name the column that fills it: --map id=COLUMN. Did you mean "idd"?'
        in told
    )
    assert 'no field "prise". Did you mean "price"?' in told
    assert 'no column "mail"' in told
    assert "at time zone 'UTC'" in told


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("postgresql://user:secret@host/db", "named by its Airflow connection"),
        ("postgres://user:secret@host/db", "named by its Airflow connection"),
        (f"postgres:{CONNECTION}", "name a table"),
        (f"postgres:{CONNECTION}/no.such.table", "is no name of a table"),
        (f"postgres:{CONNECTION}/nowhere.orders", 'relation "nowhere.orders" does not exist'),
        ("postgres:no_such_connection/a.b", "no connection no_such_connection"),
        ("/no/such/*.csv", "there is no such file"),
        ("/etc/hostname", "its name tells no format"),
        ("s3://headrace", "name a file in the bucket"),
    ],
)
def test_a_source_that_is_not_there_is_told_without_secrets(workshop: Make, source: str, told: str) -> None:
    shop = workshop()
    with pytest.raises(Exception, match=told) as error:
        imported(shop, Request(shop.feed, source))
    assert "secret" not in str(error.value)


def test_a_source_that_breaks_off_or_is_locked_may_be_asked_again(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 100_000)
    old.run("update TABLE set email = repeat('x', 500)")  # more than is on its way at any time
    ours = f"application_name = 'headrace import' and query like '%{old.name.partition('.')[0]}%'"

    def end(phase: str, done: int, total: int | None) -> None:
        if phase == "read":
            old.run(f"select pg_terminate_backend(pid) from pg_stat_activity where {ours} and pid <> pg_backend_pid()")

    with pytest.raises(SourceSilent, match="the reading broke off"):
        history.run(Request(shop.feed, old.source), progress=end)
    assert (held(shop), staged(shop)) == ([], [])
    with psycopg.connect(connections.database(CONNECTION).url()) as other:
        other.execute(sql.SQL("lock table {}").format(sql.SQL(old.name)))
        with pytest.raises(SourceSilent, match="lock timeout"):
            imported(shop, Request(shop.feed, old.source))
    assert imported(shop, Request(shop.feed, old.source)).published == 100_000


def test_files_and_a_lake_that_do_not_answer_are_told_in_our_words(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 5)
    with pytest.raises(HistoryError, match=r"s3://no-such-bucket/a\.csv: S3 refuses it"):
        imported(shop, Request(shop.feed, "s3://no-such-bucket/a.csv"))
    nowhere = replace(shop.lake, storage=replace(shop.lake.storage, endpoint="http://127.0.0.1:1"))
    asked = history._asked(Request(shop.feed, old.source), schema_id=shop.schema_id)
    with pytest.raises(ServiceAway, match=r"S3 at http://127\.0\.0\.1:1 does not answer"):
        stage.import_history(asked, lake=nowhere, kafka=shop.kafka, signing=connections.signing_key())


def test_a_database_that_stumbles_over_a_value_does_not_tell_it(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 5)
    # The database's own log tells the value, and the story looks through that log too: so not as an address.
    personal = "replace(email, '@', ' at ')"
    for number, told in ((personal, "invalid input syntax for type integer"), ("'4915112345678'", "is out of range")):
        query = f"select *, ({number} || left(id, 0))::int as number from {old.name}"
        with pytest.raises(HistoryError, match=told) as error:
            imported(shop, Request(shop.feed, f"postgres:{CONNECTION}", query=query, renames={"revision": "number"}))
        assert "example.org" not in str(error.value)
        assert "49151" not in str(error.value)


def test_an_import_that_is_given_up_leaves_nothing_staged_and_a_new_one_misses_nothing(
    workshop: Make, old: Old
) -> None:
    shop = workshop()
    orders(old, 100)
    request = Request(shop.feed, old.source, rate=50)
    with pytest.raises(KeyboardInterrupt):
        history.run(request, progress=stop)
    assert len(held(shop)) == 50
    old.run("insert into TABLE select 'first of all', 1, 'paid', 1, null, date_trunc('second', now())")
    assert history.discard(request) > 0
    assert staged(shop) == []
    assert history.discard(request) == 0
    assert imported(shop, request).published == 101
    assert set(keys(shop)) == {"first of all", *(f"o{n}" for n in range(1, 101))}
    assert len(held(shop)) == 151
    assert history.discard(request) == 0, "what is done is not given up"


def test_chunks_of_an_import_that_died_after_its_report_go_with_the_next_run(
    workshop: Make, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop()
    orders(old, 10)
    monkeypatch.setattr(stage, "_tidy", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        imported(shop, Request(shop.feed, old.source))
    monkeypatch.undo()
    assert attempts(shop)
    assert imported(shop, Request(shop.feed, old.source)).published == 10
    assert left(shop) == ["begun.json", "manifest.json", "report.json"]


# What the counts prove, and what they must not.


def readable(shop: Workshop) -> bool:
    """Whether readers of committed records see all there is."""
    found = topic.describe(shop.kafka, shop.feed.topic)
    return counting.ends(shop.kafka, found) == {number: reach.end for number, reach in found.partitions.items()}


def delete_records(shop: Workshop) -> None:
    """Do what a broker does when retention is over."""
    until(lambda: readable(shop), what="all is committed")
    numbers = topic.describe(shop.kafka, shop.feed.topic).partitions
    places = [TopicPartition(shop.feed.topic, number, OFFSET_END) for number in numbers]
    admin = AdminClient(dict(shop.kafka))  # kept until it has answered
    for answer in admin.delete_records(places).values():
        answer.result()


@contextmanager
def open_transaction(shop: Workshop) -> Iterator[None]:
    """Another producer's, which keeps everybody from reading on."""
    other = Producer({**shop.kafka, "transactional.id": f"other.{shop.feed.name}"})
    other.init_transactions(30)
    other.begin_transaction()
    for number in topic.describe(shop.kafka, shop.feed.topic).partitions:
        other.produce(shop.feed.topic, b"never committed", partition=number)
    assert other.flush(30) == 0
    yield
    other.abort_transaction(30)


def test_a_count_that_does_not_match_fails_the_import(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 100)
    request = Request(shop.feed, old.source)
    import_id = f"{history._asked(request, schema_id=0).name}-1"

    def plant(phase: str, done: int, total: int | None) -> None:
        if phase == "publish":
            shop.publish(Record(b"x", headers=[(provenance.IMPORT, f"unsigned:{import_id}".encode())]))

    with pytest.raises(
        HistoryError, match="of 100 rows 0 were rejected and 101 are in the topic, which does not match"
    ):
        history.run(request, progress=plant)


def test_a_replayed_copy_is_not_counted_as_imported(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 100)
    copied: list[Any] = []

    def copy(phase: str, done: int, total: int | None) -> None:
        if phase == "publish" and not copied:
            until(lambda: bool(held(shop)), what="the first are committed")
            copied.append(row := held(shop)[0])
            origin = provenance.replayed(
                Origin("id", row["partition"], row["offset"]),
                key=row["key"],
                value=row["value"],
                signing=connections.signing_key(),
            )
            headers = [*((each["name"], each["value"]) for each in row["headers"]), origin]
            shop.publish(Record(row["value"], row["key"].decode(), row["partition"], headers))

    report = history.run(Request(shop.feed, old.source, rate=50), progress=copy)
    assert (report.published, report.proof) == (100, "topic")
    assert len(held(shop)) == 101


def test_anothers_open_transaction_holds_the_count_up_and_fails_nothing_for_good(
    workshop: Make, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop()
    orders(old, 100)
    monkeypatch.setattr(counting, "PATIENCE_S", 1.0)
    with open_transaction(shop):
        with pytest.raises(TopicSilent, match="another producer keeps open") as error:
            imported(shop, Request(shop.feed, old.source))
        assert error.value.retry
    assert imported(shop, Request(shop.feed, old.source)).proof == "topic"
    assert keys(shop) == Counter(f"o{n}" for n in range(1, 101))


def test_how_far_a_forgotten_delivery_came_is_not_guessed_behind_an_open_transaction(
    workshop: Make, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop()
    orders(old, 100)
    request = Request(shop.feed, old.source, rate=50)
    monkeypatch.setattr(counting, "PATIENCE_S", 1.0)
    with open_transaction(shop):
        with pytest.raises(KeyboardInterrupt):
            history.run(request, progress=stop)
        forget(shop)
        with pytest.raises(TopicSilent, match="another producer keeps open"):
            imported(shop, request)
    assert imported(shop, request).proof == "topic"
    assert keys(shop) == Counter(f"o{n}" for n in range(1, 101))


def test_where_a_topic_is_compacted_what_was_acknowledged_counts(workshop: Make, old: Old) -> None:
    shop = workshop({"key": ["id"], "order": ["revision"], "topic": {"compaction": True}})
    orders(old, 10)
    assert imported(shop, Request(shop.feed, old.source)).proof == "acknowledged"


def test_records_that_are_archived_may_go_before_they_are_counted(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 100)

    def archive(phase: str, done: int, total: int | None) -> None:
        if phase == "publish":
            until(lambda: readable(shop), what="all is committed")
            assert shop.extract().records == 100
            delete_records(shop)

    assert history.run(Request(shop.feed, old.source), progress=archive).proof == "acknowledged"


def test_records_that_go_before_they_are_archived_fail_the_import(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 100)
    request = Request(shop.feed, old.source)

    def lose(phase: str, done: int, total: int | None) -> None:
        if phase == "publish":
            delete_records(shop)

    for progress in (lose, quiet):
        with pytest.raises(HistoryError, match=r"the broker deleted records .* before they were archived"):
            history.run(request, progress=progress)
    history.discard(request)
    assert imported(shop, request).proof == "topic"
    assert keys(shop) == Counter(f"o{n}" for n in range(1, 101))


def test_more_than_the_topic_keeps_is_refused_before_anything_is_staged(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 1000)
    configure(shop, "retention.bytes", "1000")
    with pytest.raises(HistoryError, match=r"keeps 1,000 bytes .* Raise the topic's retention\.bytes"):
        imported(shop, Request(shop.feed, old.source))
    assert (held(shop), staged(shop)) == ([], [])
    configure(shop, "retention.bytes", "-1")
    assert imported(shop, Request(shop.feed, old.source)).published == 1000


# Given up, and begun again.


def test_a_discard_that_dies_half_way_costs_the_next_import_no_row(
    workshop: Make, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop()
    orders(old, 100)
    request = Request(shop.feed, old.source, rate=50)
    with pytest.raises(KeyboardInterrupt):
        history.run(request, progress=stop)
    delete, calls = Staging._delete, []

    def dying(staging: Staging, keys: Sequence[str]) -> None:
        if calls:
            raise KeyboardInterrupt
        calls.append(keys)
        delete(staging, keys)

    monkeypatch.setattr(Staging, "_delete", dying)
    with pytest.raises(KeyboardInterrupt):
        history.discard(request)
    monkeypatch.undo()
    assert left(shop) == ["00000.parquet", "begun.json"]
    assert imported(shop, request).published == 100
    assert set(keys(shop)) == {f"o{n}" for n in range(1, 101)}
    assert len(held(shop)) == 150
    assert left(shop) == ["begun.json", "manifest.json", "report.json"]


def test_what_a_given_up_attempt_published_is_no_progress_of_the_next(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 100)
    request = Request(shop.feed, old.source, rate=50)
    for is_given_up in (True, False):
        with pytest.raises(KeyboardInterrupt):
            history.run(request, progress=stop)
        forget(shop)
        if is_given_up:
            history.discard(request)
    assert imported(shop, request).published == 100
    assert set(keys(shop)) == {f"o{n}" for n in range(1, 101)}
    assert len(held(shop)) == 150


def test_an_import_is_given_up_without_its_topic_and_its_sources_connection(
    workshop: Make, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop()
    orders(old, 100)
    monkeypatch.setenv("AIRFLOW_CONN_OLD_SHOP", os.environ[f"AIRFLOW_CONN_{CONNECTION.upper()}"])
    request = Request(shop.feed, f"postgres:old_shop/{old.name}", rate=50)
    with pytest.raises(KeyboardInterrupt):
        history.run(request, progress=stop)
    monkeypatch.delenv("AIRFLOW_CONN_OLD_SHOP")
    admin = AdminClient(dict(shop.kafka))  # kept until it has answered
    for answer in admin.delete_topics([shop.feed.topic]).values():
        answer.result()
    assert history.discard(request) > 0
    assert staged(shop) == []
    missing = Request(shop.feed, "s3://old/orders/*.avro", aws_connection="no_such_connection")
    assert history.discard(missing) == 0


def test_given_up_while_it_stages_it_settles_nothing(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 100)
    request = Request(shop.feed, old.source)

    def give_up(phase: str, done: int, total: int | None) -> None:
        if phase == "stage":
            assert history.discard(request) > 0

    with pytest.raises(HistoryError, match="--discard while this ran"):
        history.run(request, progress=give_up)
    assert staged(shop) == []
    assert imported(shop, request).published == 100


def test_chunks_that_are_gone_are_told_as_given_up_unless_it_is_finished(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 100)
    request = Request(shop.feed, old.source, rate=50)
    with pytest.raises(KeyboardInterrupt):
        history.run(request, progress=stop)
    staging = stage._staging(history._asked(request, schema_id=0), shop.lake)
    staging.tidy(keep=[name for name in staged(shop) if name.endswith("begun.json")])
    with pytest.raises(HistoryError, match="Give up what is left of it with --discard"):
        imported(shop, request)
    staging.tidy(keep=[])
    for _ in range(2):
        with pytest.raises(HistoryError, match="given up meanwhile with --discard"):
            imported(shop, request)
    assert history.discard(request) > 0
    assert imported(shop, request).published == 100
    with pytest.raises(HistoryError, match="has finished it"):
        staging.read(staging.manifest().attempt, "00000.parquet")  # type: ignore[union-attr]


def test_a_put_that_meets_anothers_is_tried_again(workshop: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = workshop()
    put, refused = shop.lake.s3.put_object, []

    def conflicting(**given: Any) -> Any:
        if len(refused) < 2:
            refused.append(given["Key"])
            answer = {
                "Error": {"Code": "ConditionalRequestConflict"},
                "ResponseMetadata": {"HTTPStatusCode": 409},
            }
            raise ClientError(answer, "PutObject")  # type: ignore[arg-type]
        return put(**given)

    monkeypatch.setattr(shop.lake.s3, "put_object", conflicting)
    staging, begun = Staging(shop.lake, shop.feed.name, "conflict-1"), Begun(topic_id="t", ends={0: 1})
    assert staging.begin("attempt", begun) == begun
    assert len(refused) == 2
    assert staging.begin("attempt", Begun(topic_id="another", ends={})) == begun


def test_of_several_tries_of_one_wish_only_one_imports_once_more(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 50)
    imported(shop, Request(shop.feed, old.source))
    again = Request(shop.feed, old.source, again=True)
    reports = [history.run(again, progress=quiet, wish=wish) for wish in ("run 1", "run 1", "run 2")]
    assert [report.import_id.rpartition("-")[2] for report in reports] == ["2", "2", "3"]
    assert len(held(shop)) == 150


def test_an_import_is_done_also_where_what_was_staged_cannot_be_removed(
    workshop: Make, old: Old, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop = workshop()
    orders(old, 10)

    def refusing(staging: Staging, keys: Sequence[str]) -> None:
        if keys:
            raise HistoryError("S3 did not delete them.")

    monkeypatch.setattr(Staging, "_delete", refusing)
    assert imported(shop, Request(shop.feed, old.source)).published == 10
    assert "is done, but what was staged is still there" in caplog.text
    monkeypatch.undo()
    assert "00000.parquet" in left(shop)
    imported(shop, Request(shop.feed, old.source))
    assert "00000.parquet" not in left(shop)


# What a source may be asked, and how fast.


def test_a_number_orders_the_versions_of_a_json_feed_and_must_fit_a_double(workshop: Make, old: Old) -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "rank": {"type": "number"}},
        "required": ["id", "rank"],
    }
    shop = workshop({"key": ["id"], "order": ["rank"]}, json_schema=schema)
    registration.register([shop.feed], store=connections.registry(), kafka=shop.kafka)
    old.run("""
        create table TABLE as
        select n % 2 as id, case n when 7 then 9007199254740993 when 8 then 1e400 else n / 4.0 end as rank
        from generate_series(1, 20) n order by md5(n::text)
    """)
    report = imported(shop, Request(shop.feed, old.source))
    assert (report.published, dict(report.rejected)) == (18, {"unfit": 2})
    for key in (b"0", b"1"):
        ranks = [json.loads(row["value"][5:])["rank"] for row in held(shop) if row["key"] == key]
        assert ranks == sorted(ranks)
        assert len(ranks) == 9
    assert [row["rank"] for row in clean(shop)] == [5.0, 4.75]


def test_a_query_may_end_in_a_comment_and_must_name_each_column_once(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 5)
    source = f"postgres:{CONNECTION}"
    assert imported(shop, Request(shop.feed, source, query=f"select * from {old.name} -- all of them")).total == 5
    joined = f"select a.*, b.id, b.price from {old.name} a join {old.name} b using (id)"
    with pytest.raises(HistoryError, match=r'it gives "id", "price" more than once\. Name each column once'):
        imported(shop, Request(shop.feed, source, query=joined))


def test_a_reading_that_takes_longer_than_it_may_is_to_be_done_in_parts(workshop: Make, old: Old) -> None:
    shop = workshop()
    orders(old, 100_000)
    old.run("update TABLE set email = repeat('x', 500)")  # more than is on its way at any time
    asked = history._asked(Request(shop.feed, old.source, source_rate=20_000), schema_id=shop.schema_id)
    brief = replace(asked, source=replace(asked.source, time_limit_s=1))  # type: ignore[type-var]
    with pytest.raises(HistoryError, match=r"statement timeout.* in parts, each with a --query of its own") as error:
        stage.import_history(brief, lake=shop.lake, kafka=shop.kafka, signing=connections.signing_key())
    assert not error.value.retry
    slow = Request(
        shop.feed, f"postgres:{CONNECTION}", query=f"select * from {old.name} where pg_sleep(0.5)::text = ''"
    )
    asked = history._asked(slow, schema_id=shop.schema_id)
    brief = replace(asked, source=replace(asked.source, time_limit_s=1))  # type: ignore[type-var]
    with pytest.raises(HistoryError, match=r"statement timeout.* in parts, each with a --query of its own") as error:
        stage.import_history(brief, lake=shop.lake, kafka=shop.kafka, signing=connections.signing_key())
    assert not error.value.retry
    assert (held(shop), staged(shop)) == ([], [])


@pytest.mark.parametrize(("option", "phase"), [("source_rate", "read"), ("rate", "publish")])
def test_rows_are_read_and_records_published_no_faster_than_asked(
    workshop: Make, old: Old, option: str, phase: str
) -> None:
    shop = workshop()
    orders(old, 300)
    times: list[float] = []

    def note(what: str, done: int, total: int | None) -> None:
        if what == phase:
            times.append(time.monotonic())

    history.run(Request(shop.feed, old.source, **{option: 100.0}), progress=note)  # type: ignore[arg-type]
    assert len(times) == 3
    assert times[-1] - times[0] > 1.5


# What is killed, and what runs at once, runs as it does for people: as the command.


@contextmanager
def command(shop: Workshop, folder: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    (folder / shop.feed.file).write_text(json.dumps(shop.feed.schema))
    words = [sys.executable, "-m", "headrace.cli", "import", shop.feed.name, *options, "--json"]
    around = {**os.environ, "HEADRACE_SCHEMAS": str(folder)}
    process = subprocess.Popen(words, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def finished(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    done: dict[str, Any] = json.loads(out)
    return done


def until(condition: Callable[[], bool], *, what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def ends(shop: Workshop) -> int:
    return sum(reach.end for reach in topic.describe(shop.kafka, shop.feed.topic).partitions.values())


def attempts(shop: Workshop) -> set[str]:
    return {name.partition("/")[0] for name in staged(shop) if "/" in name}


def test_killed_while_reading_it_begins_anew_and_leaves_nothing_behind(
    workshop: Make, old: Old, tmp_path: Path
) -> None:
    shop = workshop()
    orders(old, 60_000)
    options = ("--from", old.source, "--source-rate", "10000")
    reading = (
        "select count(*) from pg_stat_activity where application_name = 'headrace import' and query like '%created_at%'"
    )
    with command(shop, tmp_path, *options) as process:
        until(lambda: old.run(reading)[0][0] > 0, what="it reads")
        process.kill()
    assert staged(shop) == []
    with command(shop, tmp_path, "--from", old.source) as process:
        assert finished(process)["published"] == 60_000
    assert keys(shop) == Counter(f"o{n}" for n in range(1, 60_001))


def test_killed_while_staging_another_attempt_counts_and_the_first_ones_chunks_go(
    workshop: Make, old: Old, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop()
    orders(old, 100)
    monkeypatch.setattr(Staging, "settle", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        imported(shop, Request(shop.feed, old.source))
    monkeypatch.undo()
    (first,) = attempts(shop)
    old.run("insert into TABLE select 'late', 1, 'paid', 1, null, date_trunc('second', now())")
    assert imported(shop, Request(shop.feed, old.source)).total == 101
    assert first not in attempts(shop)
    assert len(held(shop)) == 101


def test_upkeep_removes_what_an_attempt_left_that_nobody_took_up_again(
    workshop: Make, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.stages.upkeep import upkeep

    shop = workshop()
    orders(old, 100)
    monkeypatch.setattr(Staging, "settle", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        imported(shop, Request(shop.feed, old.source))
    monkeypatch.undo()
    chunks = staged(shop)
    assert chunks

    def kept(days: int, **more: bool) -> tuple[int, int]:
        swept = upkeep(shop.feed, lake=shop.lake, clock=lambda now: now + timedelta(days=days), **more).swept[-1]
        return swept.removed, swept.young

    until(lambda: kept(8, dry_run=True) == (len(chunks), 0), what="S3's clock is past the second of the last put")
    assert kept(6) == (0, len(chunks)), "it may still be staging"
    assert staged(shop) == chunks
    assert kept(8) == (len(chunks), 0)
    assert staged(shop) == []
    assert imported(shop, Request(shop.feed, old.source)).published == 100


def test_upkeep_spares_what_an_import_goes_on_with(workshop: Make, old: Old) -> None:
    from headrace.stages.upkeep import upkeep

    shop = workshop()
    orders(old, 100)
    request = Request(shop.feed, old.source, rate=50)
    with pytest.raises(KeyboardInterrupt):
        history.run(request, progress=stop)
    assert attempts(shop)
    assert upkeep(shop.feed, lake=shop.lake, clock=lambda now: now + timedelta(days=100)).swept[-1].removed == 0
    assert imported(shop, request).published == 100
    assert keys(shop) == Counter(f"o{n}" for n in range(1, 101))


def test_killed_while_publishing_it_goes_on_with_what_was_staged(workshop: Make, old: Old, tmp_path: Path) -> None:
    shop = workshop()
    orders(old, 20_000)
    with command(shop, tmp_path, "--from", old.source, "--rate", "4000") as process:
        until(lambda: ends(shop) > 5000, what="it publishes")
        process.kill()
    assert ends(shop) < 20_000
    old.run("delete from TABLE")
    with command(shop, tmp_path, "--from", old.source) as process:
        assert finished(process)["proof"] == "topic"
    assert keys(shop) == Counter(f"o{n}" for n in range(1, 20_001))


def test_a_delivery_that_the_broker_forgot_is_found_again_in_the_topic(
    workshop: Make, old: Old, tmp_path: Path
) -> None:
    shop = workshop()
    orders(old, 20_000)
    with command(shop, tmp_path, "--from", old.source, "--rate", "4000") as process:
        until(lambda: ends(shop) > 5000, what="it publishes")
        process.kill()
    forget(shop)
    with command(shop, tmp_path, "--from", old.source) as process:
        finished(process)
    assert keys(shop) == Counter(f"o{n}" for n in range(1, 20_001))


def forget(shop: Workshop) -> None:
    """Do what the broker does a week after the last commit."""
    admin = AdminClient(dict(shop.kafka))
    ours = [each.group_id for each in admin.list_consumer_groups().result().valid if shop.feed.name in each.group_id]
    assert len(ours) == 1
    until(lambda: _forgotten(admin, ours), what="the group is empty")


def _forgotten(admin: AdminClient, groups: list[str]) -> bool:
    from confluent_kafka import KafkaException

    try:
        for answer in admin.delete_consumer_groups(groups).values():
            answer.result()
    except KafkaException:
        return False
    return True


def test_of_two_at_once_each_row_comes_once(workshop: Make, old: Old, tmp_path: Path) -> None:
    shop = workshop()
    orders(old, 20_000)
    options = ("--from", old.source, "--rate", "8000")
    with command(shop, tmp_path, *options) as one, command(shop, tmp_path, *options) as other:
        outcomes = [process.communicate(timeout=300) for process in (one, other)]
    assert 0 in (one.returncode, other.returncode)
    for process, (_, err) in zip((one, other), outcomes, strict=True):
        assert process.returncode == 0 or "started somewhere else" in err or "has finished it" in err, err
    assert keys(shop) == Counter(f"o{n}" for n in range(1, 20_001))


def test_the_command_tells_rejected_rows_and_ends_with_1(workshop: Make, old: Old, tmp_path: Path) -> None:
    shop = workshop()
    orders(old, 10)
    old.run("update TABLE set status = 'odd' where id = 'o1'")
    with command(shop, tmp_path, "--from", old.source) as process:
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert json.loads(out)["rejected"] == {"unfit": 1}
