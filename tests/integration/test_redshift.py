"""A Redshift warehouse as far as it runs without Redshift: on S3 and a Postgres that stands in for it."""

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from pyiceberg.types import LongType
from random_columns import storage, stored, types, values
from redshift_stand_in import StandIn, stand_in, until
from workshop import Record, Workshop

from headrace import feed as feeds
from headrace import objects
from headrace.airflow import connections
from headrace.arrow import travelling
from headrace.clean import HIDDEN_ROW
from headrace.errors import ReconcileError, TableRefused, WarehouseBehind, WarehouseBusy
from headrace.reckoning import Shape, reckon
from headrace.settings import Settings
from headrace.share import Share, SharedColumn, share
from headrace.stages import load, reconcile, upkeep
from headrace.stages.sweep import s3_time
from headrace.warehouses import redshift as redshift_client
from headrace.warehouses import redshift_platform
from headrace.warehouses.load import Counts, Load
from headrace.warehouses.redshift import RedshiftWarehouse
from stack.environment import database_url
from stack.parts.part import Stack
from stack.parts.postgres import SUPERUSER

PUBLISHED = datetime(2026, 3, 1, tzinfo=UTC)
FIELDS = [
    {"name": "id", "type": "int", "doc": "The order's number, 100% \\ sure."},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
    {"name": "note", "type": ["null", "string"], "default": None},
]


@pytest.fixture(scope="module")
def redshift(stack: Stack) -> Iterator[StandIn]:
    def url_of(database: str) -> str:
        return database_url(stack.settings, user=SUPERUSER, password=stack.passwords.postgres, database=database)

    with psycopg.connect(url_of("postgres"), autocommit=True) as superuser:
        superuser.execute("select pg_advisory_lock(7)")
        if not superuser.execute("select 1 from pg_roles where rolname = 'redshift_reader'").fetchone():
            superuser.execute("create role redshift_reader")
        with stand_in(superuser, url_of, connections.lake(Settings()).s3) as made:
            yield made


@pytest.fixture
def warehouse(redshift: StandIn) -> Iterator[RedshiftWarehouse]:
    redshift.said.clear()
    made = RedshiftWarehouse(
        "finance",
        connect=redshift.connect,
        s3=lambda: redshift.s3,
        lake=Settings().lake,
        readers=("redshift_reader",),
        schema="shop",
        connection="headrace_warehouse_cluster",
        place="stand-in:5439/dev",
    )
    yield made
    redshift.before = lambda statement: None
    redshift.asked("drop schema if exists shop cascade")
    redshift.asked("drop schema if exists headrace cascade")


def shared(fields: Sequence[Mapping[str, Any]] = FIELDS, *, sharing: Mapping[str, Any] | None = None) -> Share:
    declared = {"key": ["id"], "warehouses": {"finance": sharing or {}}}
    schema = {"type": "record", "name": "Order", "doc": "Orders.", "feed": declared, "fields": fields}
    return share(feeds.parse("orders.avsc", json.dumps(schema)), "finance")


def order(id_: int, price: str = "1.00", note: str | None = None) -> dict[str, Any]:
    return {"id": id_, "price": Decimal(price), "note": note}


def batches(share: Share, *rows: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    schema = share.schema.append(pa.field(HIDDEN_ROW, pa.bool_()))
    yield pa.RecordBatch.from_pylist([{HIDDEN_ROW: False, **row} for row in rows], schema=schema)


def filled(warehouse: RedshiftWarehouse, share: Share, *rows: Mapping[str, Any], snapshot: int = 1) -> Counts:
    with warehouse.loading("orders") as session:
        counts = session.fill(share, (each.select(share.names) for each in batches(share, *rows)))
        session.record(share, Load(snapshot, "contract", PUBLISHED), "anew", counts)
    return counts


def merged(
    warehouse: RedshiftWarehouse, share: Share, *rows: Mapping[str, Any], whole: bool = False, snapshot: int = 2
) -> Counts:
    with warehouse.loading("orders") as session:
        assert session.keeps(share, session.loaded())
        session.define(share)
        session.stage(share, batches(share, *rows))
        counts = session.merge(share, whole=whole)
        session.record(share, Load(snapshot, "contract", PUBLISHED), "whole" if whole else "changes", counts)
    return counts


def staged(warehouse: RedshiftWarehouse) -> list[str]:
    bucket, prefix = objects.place(f"{warehouse.lake}/staging/orders")
    return [each.key for each in objects.listed(warehouse.s3(), bucket, prefix)]


def test_a_feed_is_loaded_changed_and_proven(warehouse: RedshiftWarehouse, workshop: Callable[..., Workshop]) -> None:
    shop = workshop()
    row = {"revision": 1, "status": "placed", "price": Decimal("1.50"), "email": "somebody@example.org"}
    row["created_at"] = datetime(2026, 3, 1, tzinfo=UTC)
    shop.merge(*(Record({**row, "id": each}) for each in "abc"))

    def loaded() -> Any:
        return load.load(shop.feed, lake=shop.lake, warehouse=warehouse, mask_key=b"key")

    def proven(**asked: Any) -> Any:
        done = reconcile.reconcile(shop.feed, lake=shop.lake, warehouse=warehouse, mask_key=b"key", **asked)
        reconcile.judge(done)
        return done

    with pytest.raises(WarehouseBehind, match="nothing was loaded yet"):
        proven()
    assert (loaded().way, loaded().way) == ("anew", None)
    assert (proven().scope, proven(full=True).figures.rows) == ("whole", 3)
    shop.merge(Record({**row, "id": "a", "revision": 2}), Record({**row, "id": "d"}), Record(None, key="b"))
    done = loaded()
    assert (done.way, done.counts) == ("changes", Counts(1, 1, 1))
    assert proven().scope == "changes"
    assert warehouse.holds(shop.feed.name).snapshot == done.snapshot
    (held,) = warehouse.tables()
    assert (held.table, held.reconciled is not None) == (shop.feed.name, True)
    with psycopg.connect(warehouse.connect().stand_in.url, autocommit=True) as session:  # type: ignore[attr-defined]
        update = sql.SQL("update {} set price = price + 0.01 where id = 'c'")
        session.execute(update.format(sql.Identifier("shop", shop.feed.name)))
    with pytest.raises(ReconcileError, match="altered 1: c; in columns price"):
        proven(full=True)
    assert load.load(shop.feed, lake=shop.lake, warehouse=warehouse, mask_key=b"other", anew=True).way == "anew"
    with psycopg.connect(warehouse.connect().stand_in.url, autocommit=True) as session:  # type: ignore[attr-defined]
        session.execute(sql.SQL("drop table {}").format(sql.Identifier("shop", shop.feed.name)))
    assert warehouse.holds(shop.feed.name) == Load(), "somebody dropped it"
    assert (loaded().way, loaded().way) == ("anew", None)
    assert proven(full=True).figures.rows == 3
    assert warehouse.remove() == [shop.feed.name]
    assert warehouse.tables() == []


def test_a_table_is_merged_and_compared_as_a_whole(warehouse: RedshiftWarehouse, redshift: StandIn) -> None:
    wanted = shared()
    assert filled(warehouse, wanted, order(1), order(2), order(3)) == Counts(inserted=3)
    hidden = {"id": 3, HIDDEN_ROW: True}
    assert merged(warehouse, wanted, order(1, "9.99"), hidden, order(4, note="")) == Counts(1, 1, 1)
    rows = redshift.asked("select * from shop.orders order by id")
    assert rows == [(1, Decimal("9.99"), None), (2, Decimal("1.00"), None), (4, Decimal("1.00"), "")]
    assert merged(warehouse, wanted, order(1), order(5), whole=True, snapshot=3) == Counts(1, 1, 2)
    assert [row[0] for row in redshift.asked("select id from shop.orders order by id")] == [1, 5]
    assert merged(warehouse, wanted, snapshot=4) == Counts(), "nothing is copied where there is no row"
    reads = "has_table_privilege('redshift_reader', 'shop.orders', 'select')"
    told = redshift.asked(f"select col_description('shop.orders'::regclass, 1), {reads}")
    assert told == [("The order's number, 100% \\\\ sure.", True)], "Postgres, unlike Redshift, keeps both backslashes"
    ways = redshift.asked("select way, inserted, updated, deleted from headrace.history order by snapshot_id")
    assert ways == [("anew", 3, 0, 0), ("changes", 1, 1, 1), ("whole", 1, 1, 2), ("changes", 0, 0, 0)]
    ((table, snapshot),) = redshift.asked("select table_name, snapshot_id from headrace.tables")
    assert (table, snapshot) == ("orders", 4)
    assert redshift.asked("select age > interval '1 day' from headrace.freshness") == [(True,)]
    assert staged(warehouse) == []


def test_whoever_may_read_from_now_on_does_and_whoever_may_no_more_does_not(
    warehouse: RedshiftWarehouse, redshift: StandIn
) -> None:
    reads = """select has_schema_privilege('redshift_reader', 'shop', 'usage'),
        has_schema_privilege('redshift_reader', 'headrace', 'usage'),
        has_table_privilege('redshift_reader', 'shop.orders', 'select'),
        has_table_privilege('redshift_reader', 'headrace.freshness', 'select')"""
    nobody = replace(warehouse, readers=())
    filled(nobody, shared(), order(1))
    for readers, may in ((("redshift_reader",), True), ((), False), (("redshift_reader",), True)):
        with replace(warehouse, readers=readers).loading("customers"):
            pass
        assert redshift.asked(reads) == [(may,) * 4]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_rows_of_random_types_come_back_as_they_went(warehouse: RedshiftWarehouse, data: st.DataObject) -> None:
    columns = {f"c{number}": type_ for number, type_ in enumerate(data.draw(st.lists(types(), max_size=6)))}
    count = data.draw(st.integers(0, 5))
    held = {name: data.draw(st.lists(values(type_), min_size=count, max_size=count)) for name, type_ in columns.items()}
    made = (SharedColumn("id", LongType(), required=True), *(SharedColumn(*each, False) for each in columns.items()))
    wanted = Share("orders", "finance", "", ("id",), made, {}, sort=("id",))
    arrays = [
        pa.array([stored(value, columns[name]) for value in drawn], storage(columns[name]))
        for name, drawn in held.items()
    ]
    travelled = [travelling(pa.chunked_array([array]), columns[name]) for name, array in zip(held, arrays, strict=True)]
    rows = pa.table([pa.array(range(count), pa.int64()), *travelled], schema=wanted.schema)
    with warehouse.loading("orders") as session:
        session.fill(wanted, iter(rows.to_batches()))
        session.record(wanted, Load(1, "contract", PUBLISHED), "anew", Counts())
    with warehouse.reading("orders") as session:
        verdict = reckon(
            Shape(wanted.schema, ("id",)),
            expected=lambda: iter(rows.to_batches()),
            found=lambda: session.rows(wanted),
        )
    assert verdict.agrees, verdict


def test_a_table_changes_in_place_or_is_made_anew_or_refused(warehouse: RedshiftWarehouse, redshift: StandIn) -> None:
    filled(warehouse, shared(), order(1, note="x"))
    renamed = [*FIELDS[:2], {"name": "remark", "type": ["null", "string"], "aliases": ["note"], "default": None}]
    more = {"name": "more", "type": ["null", {"type": "array", "items": "long"}], "default": None}
    wanted = shared([*renamed, more])
    assert merged(warehouse, wanted, {**order(2), "remark": None, "more": "[1, 2]"}) == Counts(inserted=1)
    rows = redshift.asked("select id, remark, more::text from shop.orders order by id")
    assert rows == [(1, "x", None), (2, None, "[1, 2]")]

    def keeps(share: Share) -> bool:
        with warehouse.loading("orders") as session:
            return session.keeps(share, session.loaded())

    wider = shared([FIELDS[0], {"name": "price", "type": {**FIELDS[1]["type"], "precision": 10}}, *renamed[2:]])  # type: ignore[dict-item]
    assert not keeps(wider), "Redshift widens no column"
    assert not keeps(shared([*renamed, more], sharing={"distribute": "price"})), "nor is it moved in place"
    with pytest.raises(TableRefused, match=r"price is .* and would be integer"):
        keeps(shared([FIELDS[0], {"name": "price", "type": "int"}, *renamed[2:]]))
    redshift.asked("create view shop.cheap as select id from shop.orders where price < 2")
    with pytest.raises(TableRefused, match=r"bound to it: shop\.cheap"):
        filled(warehouse, wider, order(1), snapshot=5)
    redshift.asked("drop view shop.cheap")
    filled(warehouse, wider, order(1), snapshot=5)
    assert redshift.asked("select id, remark, more from shop.orders") == [(1, None, None)], (
        "what was there stays, empty"
    )
    redshift.asked("delete from headrace.loads")
    with pytest.raises(TableRefused, match="not loaded by us"):
        keeps(wider)


def test_names_with_capitals_are_kept_through_loads_and_changes(
    warehouse: RedshiftWarehouse, redshift: StandIn
) -> None:
    created = {"name": "createdAt", "type": ["null", "long"], "default": None}
    wanted = shared([*FIELDS, created])
    filled(warehouse, wanted, {**order(1), "createdAt": 7})
    more = shared([*FIELDS, created, {"name": "paidAt", "type": ["null", "long"], "default": None}])
    assert merged(warehouse, more, {**order(1), "createdAt": 8, "paidAt": 9}) == Counts(updated=1)
    assert redshift.asked('select id, "createdAt", "paidAt" from shop.orders') == [(1, 8, 9)]
    with warehouse.reading("orders") as session:
        (read,) = [row for batch in session.rows(more) for row in batch.to_pylist()]
    assert (read["createdAt"], read["paidAt"]) == (8, 9)


def test_special_numbers_and_empty_texts_come_as_they_are(warehouse: RedshiftWarehouse, redshift: StandIn) -> None:
    numbers = [{"name": name, "type": ["null", type_], "default": None} for name, type_ in NUMBERS.items()]
    wanted = shared([FIELDS[0], FIELDS[2], *numbers])
    rows = [
        {"id": 1, "note": "", "one": math.nan, "two": math.inf, "long": 2**63 - 1},
        {"id": 2, "note": None, "one": -math.inf, "two": math.nan, "long": -(2**63)},
    ]
    filled(warehouse, wanted, *rows)
    found = redshift.asked("select id, note, one::text, two::text, long from shop.orders order by id")
    assert found == [(1, "", "NaN", "Infinity", 2**63 - 1), (2, None, "-Infinity", "NaN", -(2**63))]
    with warehouse.reading("orders") as session:
        verdict = reckon(
            Shape(wanted.schema, ("id",)),
            expected=lambda: (each.select(wanted.names) for each in batches(wanted, *rows)),
            found=lambda: session.rows(wanted),
        )
    assert verdict.agrees, verdict


NUMBERS = {"one": "float", "two": "double", "long": "long"}


@pytest.mark.parametrize("locked", ["shop.orders", "headrace.loads", "the turn"])
def test_nobodys_lock_is_waited_for_for_ever(
    warehouse: RedshiftWarehouse, redshift: StandIn, monkeypatch: pytest.MonkeyPatch, locked: str
) -> None:
    monkeypatch.setattr(redshift_platform, "PATIENCE_MS", 300)
    monkeypatch.setattr(redshift_platform, "TURN_MS", 300)
    monkeypatch.setattr(redshift_client, "ASK_S", 1)
    filled(warehouse, shared(), order(1))
    name = redshift_platform.turn("shop", "orders").as_string() if locked == "the turn" else locked
    with psycopg.connect(redshift.url) as other:
        other.execute(f"lock table {name} in share mode")  # type: ignore[arg-type]
        with pytest.raises(WarehouseBusy, match="in use by somebody else for too long"):
            merged(warehouse, shared(), order(2))
        other.execute("lock table headrace.loads in access exclusive mode")
        assert warehouse.holds("orders") == Load(), "who only wants to know does not wait either"
    assert merged(warehouse, shared(), order(2)) == Counts(inserted=1)


@pytest.mark.parametrize("locked", ["shop.orders", "headrace.loads", "headrace.readers"])
def test_who_reads_or_lets_in_does_not_wait_for_ever_either(
    warehouse: RedshiftWarehouse, redshift: StandIn, monkeypatch: pytest.MonkeyPatch, locked: str
) -> None:
    monkeypatch.setattr(redshift_platform, "PATIENCE_MS", 300)
    wanted = shared()
    filled(warehouse, wanted, order(1))

    def read(keys: Iterator[pa.RecordBatch] | None = None) -> list[Any]:
        with warehouse.reading("orders") as session:
            assert session.loaded().snapshot == 1
            if keys:
                session.look_for(wanted, keys)
            return [row for batch in session.rows(wanted, looked_for=keys is not None) for row in batch.to_pylist()]

    def looked_for() -> list[Any]:
        return read(each.select(["id"]) for each in batches(wanted, order(1)))

    def admitted() -> None:
        with warehouse.loading("others"):
            pass

    asked = {"shop.orders": [read, looked_for], "headrace.loads": [read], "headrace.readers": [admitted]}[locked]
    with psycopg.connect(redshift.url) as other:
        other.execute(f"lock table {locked} in access exclusive mode")  # type: ignore[arg-type]
        for ask in asked:
            with pytest.raises(WarehouseBusy, match="in use by somebody else for too long"):
                ask()
    assert read() == looked_for() == [order(1)]
    limits = [each for each in redshift.said if "statement_timeout" in each or each.startswith("unload")]
    assert limits[-2:] == [redshift_platform.UNLIMITED, limits[-1]], "all of a table may take longer"


def test_loads_of_one_table_take_turns_and_a_killed_one_leaves_nothing(
    warehouse: RedshiftWarehouse, redshift: StandIn
) -> None:
    wanted = shared()
    filled(warehouse, wanted, order(1))
    done: list[Counts] = []
    second = threading.Thread(
        target=lambda: done.append(merged(warehouse, wanted, order(1, "2.00"), order(3), snapshot=3))
    )
    with warehouse.loading("orders") as session:
        second.start()
        until(lambda: bool(redshift.asked("select 1 from pg_locks where not granted")))
        session.stage(wanted, batches(wanted, order(1, "1.50"), order(2)))
        assert len(staged(warehouse)) == 2, "a file, and the manifest that names it"
        session.record(wanted, Load(2, "contract", PUBLISHED), "changes", session.merge(wanted, whole=False))
    second.join(30)
    assert done == [Counts(inserted=1, updated=1)]
    rows = redshift.asked("select id, price from shop.orders order by id")
    assert rows == [(1, Decimal("2.00")), (2, Decimal("1.00")), (3, Decimal("1.00"))]

    def killed(statement: str) -> None:
        if statement.startswith("merge"):
            raise KeyboardInterrupt

    redshift.before = killed
    with pytest.raises(KeyboardInterrupt):
        merged(warehouse, wanted, order(9), snapshot=4)
    redshift.before = lambda statement: None
    assert warehouse.holds("orders").snapshot == 3
    assert redshift.asked("select count(*) from shop.orders where id = 9") == [(0,)]
    assert staged(warehouse) == []


def test_loads_of_two_tables_at_once_do_not_get_in_each_others_way(
    warehouse: RedshiftWarehouse, redshift: StandIn
) -> None:
    wanted = shared()
    filled(warehouse, wanted, order(1))
    with warehouse.loading("others") as other:
        other.fill(wanted, (each.select(wanted.names) for each in batches(wanted, order(7))))
        assert merged(warehouse, wanted, order(2)) == Counts(inserted=1)
        other.record(wanted, Load(1, "contract", PUBLISHED), "anew", Counts(inserted=1))
    assert sorted(held.table for held in warehouse.tables()) == ["orders", "others"]


def test_upkeep_removes_what_a_killed_load_has_staged(
    warehouse: RedshiftWarehouse, workshop: Callable[..., Workshop]
) -> None:
    shop = workshop()
    bucket, prefix = objects.place(f"{shop.lake.location}/staging/{shop.feed.name}/finance/1a2b")
    shop.lake.s3.put_object(Bucket=bucket, Key=f"{prefix}/rows/00000.parquet", Body=b"rows")

    def kept(**asked: Any) -> tuple[int, int]:
        swept = upkeep.upkeep(shop.feed, lake=shop.lake, **asked).staged
        return swept.removed, swept.young

    assert kept() == (0, 1), "a load may be at work on it"
    put = s3_time(shop.lake)
    until(lambda: s3_time(shop.lake) > put)  # S3 tells seconds only
    assert kept(clock=lambda now: now + timedelta(days=1)) == (1, 0)
    assert kept() == (0, 0)
