"""A Postgres warehouse by itself: tables made, changed and refused, analysts' views, locks, and what is told of it."""

import json
import os
import traceback
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
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

from headrace import feed as feeds
from headrace.airflow import connections
from headrace.arrow import travelling
from headrace.clean import HIDDEN_ROW
from headrace.declaration import Runs
from headrace.errors import (
    HeadraceError,
    ServiceAway,
    ServiceRefused,
    SettingsError,
    TableRefused,
    WarehouseBusy,
    WarehouseError,
)
from headrace.reckoning import Shape, reckon
from headrace.share import Share, SharedColumn, share
from headrace.warehouses import postgres_platform
from headrace.warehouses.load import Counts, Load
from headrace.warehouses.postgres import SIGNS_OF_LIFE, PostgresWarehouse

PERSON = "somebody@example.org"
PUBLISHED = datetime(2026, 3, 1, tzinfo=UTC)
FIELDS = [
    {"name": "id", "type": "int", "doc": "The order's number."},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
    {"name": "note", "type": ["null", "string"], "default": None},
]
TIME_LIMIT = Runs().time_limit
"""How long Airflow lets a task take, where a feed says nothing else."""
DECLARED = {"key": ["id"], "warehouses": {"finance": {}}}


def shared(fields: Sequence[Mapping[str, Any]] = FIELDS, **declared: Any) -> Share:
    schema = {"type": "record", "name": "Order", "doc": "Orders.", "feed": {**DECLARED, **declared}, "fields": fields}
    return share(feeds.parse("orders.avsc", json.dumps(schema)), "finance")


def batches(share: Share, *rows: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """Rows as they come from the lake; `_hidden` for those that are deleted."""
    schema = share.schema.append(pa.field(HIDDEN_ROW, pa.bool_()))
    yield pa.RecordBatch.from_pylist([{HIDDEN_ROW: False, **row} for row in rows], schema=schema)


class Desk:
    """A warehouse in a schema of its own, and what a load does to it without a lake."""

    def __init__(self, warehouse: PostgresWarehouse) -> None:
        self.warehouse = warehouse
        self.snapshot = 0

    def fill(self, share: Share, *rows: Mapping[str, Any]) -> Counts:
        with self.warehouse.loading("orders") as session:
            counts = session.fill(share, (each.select(share.names) for each in batches(share, *rows)))
            session.record(share, self._next(), "anew", counts)
        return counts

    def load(self, share: Share, *rows: Mapping[str, Any], whole: bool = False) -> Counts:
        with self.warehouse.loading("orders") as session:
            session.define(share)
            session.stage(share, batches(share, *rows))
            counts = session.merge(share, whole=whole)
            session.record(share, self._next(), "whole" if whole else "changes", counts)
        return counts

    def _next(self) -> Load:
        self.snapshot += 1
        return Load(self.snapshot, "contract", PUBLISHED)

    def rows(self, columns: str = "*", table: str = "orders") -> list[tuple[Any, ...]]:
        return self.asked(f"select {columns} from {self.warehouse.schema}.{table} order by 1")

    def asked(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.warehouse.database.url(), autocommit=True) as connection:
            done = connection.execute(statement)  # type: ignore[arg-type]
            return done.fetchall() if done.description else []

    def do(self, *statements: str) -> None:
        for statement in statements:
            self.asked(statement.format(schema=self.warehouse.schema))


@pytest.fixture
def desk(stack: Any) -> Iterator[Desk]:
    schema = f"t_{uuid.uuid4().hex[:8]}"
    warehouse = replace(connections.warehouse("finance"), schema=schema)
    yield Desk(warehouse)
    with psycopg.connect(warehouse.database.url(), autocommit=True) as connection:
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))
        for name in ("tables", "history", "warehouses"):
            delete = sql.SQL("delete from headrace.{} where schema_name = %s")
            connection.execute(delete.format(sql.Identifier(name)), [schema])


def order(id_: int, price: str = "1.00", note: str | None = None) -> dict[str, Any]:
    return {"id": id_, "price": Decimal(price), "note": note}


def test_a_table_is_filled_merged_and_compared_as_a_whole(desk: Desk) -> None:
    share = shared()
    assert desk.fill(share, order(1), order(2), order(3)) == Counts(inserted=3)
    assert desk.load(share, order(1, "9.99"), order(2), {"id": 3, HIDDEN_ROW: True}, order(4)) == Counts(1, 1, 1)
    assert desk.rows() == [(1, Decimal("9.99"), None), (2, Decimal("1.00"), None), (4, Decimal("1.00"), None)]
    assert desk.load(share, order(1), order(2), whole=True) == Counts(inserted=0, updated=1, deleted=1)
    assert desk.rows("id, price") == [(1, Decimal("1.00")), (2, Decimal("1.00"))]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_rows_of_random_types_come_back_as_they_went(desk: Desk, data: st.DataObject) -> None:
    columns = {f"c{number}": type_ for number, type_ in enumerate(data.draw(st.lists(types(), max_size=6)))}
    count = data.draw(st.integers(0, 5))
    held = {name: data.draw(st.lists(values(type_), min_size=count, max_size=count)) for name, type_ in columns.items()}
    made = (SharedColumn("id", LongType(), required=True), *(SharedColumn(*each, False) for each in columns.items()))
    share = Share("orders", "finance", "", ("id",), made, {})
    arrays = [
        pa.array([stored(value, columns[name]) for value in drawn], storage(columns[name]))
        for name, drawn in held.items()
    ]
    travelled = [travelling(pa.chunked_array([array]), columns[name]) for name, array in zip(held, arrays, strict=True)]
    rows = pa.table([pa.array(range(count), pa.int64()), *travelled], schema=share.schema)
    with desk.warehouse.loading("orders") as session:
        session.fill(share, iter(rows.to_batches()))
        session.record(share, Load(1, "contract", PUBLISHED), "anew", Counts())
    with desk.warehouse.reading("orders") as session:
        verdict = reckon(
            Shape(share.schema, ("id",)),
            expected=lambda: iter(rows.to_batches()),
            found=lambda: session.rows(share),
        )
    assert verdict.agrees, verdict


def test_added_columns_appear_promoted_ones_widen_and_renamed_ones_keep_their_values(desk: Desk) -> None:
    desk.fill(shared(), order(1, note="a"))
    newer = [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}},
        {"name": "remark", "type": ["null", "string"], "default": None, "aliases": ["note"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ]
    share = shared(newer)
    desk.load(share, {"id": 2**40, "price": Decimal("123456789012345678.90"), "remark": "b", "tags": '["x"]'})
    assert desk.rows("id, price, remark, tags") == [
        (1, Decimal("1.00"), "a", None),
        (2**40, Decimal("123456789012345678.90"), "b", ["x"]),
    ]


def test_views_follow_a_column_that_is_renamed_and_widened_at_once(desk: Desk) -> None:
    desk.fill(shared(), order(1))
    desk.do("create view {schema}.cheap as select id, price from {schema}.orders where price < 5")
    cost = {"name": "cost", "type": {**FIELDS[1]["type"], "precision": 12}, "aliases": ["price"]}  # type: ignore[dict-item]
    desk.load(shared([FIELDS[0], cost, FIELDS[2]]), {"id": 2, "cost": Decimal("2.00"), "note": None})
    assert desk.rows() == [(1, Decimal("1.00"), None), (2, Decimal("2.00"), None)]
    assert desk.rows(table="cheap") == [(1, Decimal("1.00")), (2, Decimal("2.00"))]


VIEWS = (
    "create view {schema}.cheap with (security_barrier=true) as select id, price from {schema}.orders where price < 5",
    "create view {schema}.cheapest as select min(price) as price from {schema}.cheap",
    "create materialized view {schema}.kept as select price from {schema}.cheapest",
    "create unique index kept_price on {schema}.kept (price)",
    "comment on view {schema}.cheap is 'Not much.'",
    "grant select on {schema}.cheap to finance_reader with grant option",
    "comment on column {schema}.cheap.price is 'In \"euros\".'",
    "grant update (price, id) on {schema}.cheap to finance_reader",
    "grant select (price) on {schema}.cheapest to public",
)


@pytest.mark.parametrize("anew", [False, True])
def test_views_that_analysts_made_live_on_whatever_happens_to_the_table(desk: Desk, anew: bool) -> None:
    desk.fill(shared(), order(1), order(2, "7.00"))
    desk.do(*VIEWS)
    before = desk.asked(STATE.format(schema=desk.warehouse.schema))
    wider = shared([{**FIELDS[0], "type": "long"}, FIELDS[1], FIELDS[2]])
    rows = [order(1, "3.00"), order(2**40, "4.00")]
    desk.fill(wider, *rows) if anew else desk.load(wider, *rows, whole=True)
    assert desk.rows(table="cheap") == [(1, Decimal("3.00")), (2**40, Decimal("4.00"))]
    assert desk.rows(table="cheapest") == [(Decimal("3.00"),)]
    assert desk.rows(table="kept") in ([(Decimal("1.00"),)], [(Decimal("3.00"),)]), "until it is refreshed"
    assert desk.asked(STATE.format(schema=desk.warehouse.schema)) == before, "options, comments, grants and indexes"


STATE = """
select c.relname, c.relkind, c.reloptions, obj_description(c.oid), c.relacl::text, pg_get_userbyid(c.relowner),
    array(select row(a.attname, col_description(c.oid, a.attnum), a.attacl)::text
        from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 order by a.attnum)
from pg_class c where c.relnamespace = '{schema}'::regnamespace
    and c.relname in ('cheap', 'cheapest', 'kept', 'kept_price')
order by 1
"""


def test_a_table_made_anew_keeps_what_views_show_of_it_though_the_feed_has_it_no_more(desk: Desk) -> None:
    desk.fill(shared(), order(1, note="a"))
    desk.do(
        "create view {schema}.noted as select id, note from {schema}.orders",
        "create view {schema}.counted as select count(*) as rows from {schema}.orders",
    )
    dropped = shared(FIELDS[:2], key=["id", "price"])
    desk.fill(dropped, {"id": 1, "price": Decimal("1.00")})
    assert desk.rows(table="noted") == [(1, None)]
    assert desk.rows(table="counted") == [(1,)]
    desk.load(dropped, {"id": 2, "price": Decimal("1.00")})
    desk.do("drop view {schema}.noted")
    desk.fill(dropped, {"id": 2, "price": Decimal("1.00")})
    assert desk.rows() == [(2, Decimal("1.00"))], "a column that nobody shows is gone"


def test_a_table_made_anew_has_views_follow_a_renamed_column(desk: Desk) -> None:
    desk.fill(shared(), order(1, note="a"))
    desk.do("create view {schema}.noted as select id, note from {schema}.orders")
    renamed = shared([*FIELDS[:2], {"name": "remark", "type": ["null", "string"], "aliases": ["note"]}])
    desk.fill(renamed, {"id": 1, "price": Decimal("1.00"), "remark": "b"})
    assert desk.rows(table="noted") == [(1, "b")]
    assert desk.rows() == [(1, Decimal("1.00"), "b")]


def test_a_view_that_does_not_stand_on_the_new_table_is_named_and_nothing_is_changed(desk: Desk) -> None:
    desk.fill(shared(), order(1))
    desk.do("create view {schema}.total as select sum(price) from {schema}.orders")
    texts = shared([FIELDS[0], {"name": "price", "type": "string"}, FIELDS[2]])
    with pytest.raises(TableRefused, match=rf"the view {desk.warehouse.schema}\.total does not stand .*42883.*Drop it"):
        desk.fill(texts, {"id": 1, "price": "one"})
    assert desk.rows(table="total") == [(Decimal("1.00"),)]


@pytest.mark.parametrize(
    "own",
    [
        "create rule own as on delete to {schema}.cheap do instead nothing",
        "create trigger own instead of update on {schema}.cheap for each row execute function {schema}.nothing()",
        "alter view {schema}.cheap alter column price set default 1",
    ],
)
@pytest.mark.parametrize("anew", [False, True])
def test_what_a_view_has_of_its_own_is_never_lost_silently(desk: Desk, own: str, anew: bool) -> None:
    desk.fill(shared(), order(1))
    desk.do(
        "create function {schema}.nothing() returns trigger language plpgsql as 'begin return null; end'",
        "create view {schema}.cheap as select id, price from {schema}.orders",
        own,
    )
    wider = shared([{**FIELDS[0], "type": "long"}, *FIELDS[1:]])
    with pytest.raises(TableRefused, match=rf"lost: {desk.warehouse.schema}\.cheap\. Nothing"):
        desk.fill(wider, order(2)) if anew else desk.load(wider, order(2))
    assert desk.rows("id") == [(1,)]


def test_a_view_that_we_could_not_make_again_is_told_of_and_nothing_is_changed(desk: Desk, stack: Any) -> None:
    desk.fill(shared(), order(1))
    schema = desk.warehouse.schema
    desk.do("grant create on schema {schema} to finance_reader")
    with psycopg.connect(os.environ["HEADRACE_READER_FINANCE"]) as analyst:
        analyst.execute(f"create view {schema}.mine as select id from {schema}.orders")  # type: ignore[arg-type]
    wider = shared([{**FIELDS[0], "type": "long"}, *FIELDS[1:]])
    with pytest.raises(TableRefused, match=rf"may not do so: {schema}.mine of finance_reader\. Nothing was changed"):
        desk.load(wider, order(2))
    desk.load(shared([*FIELDS, {"name": "more", "type": ["null", "int"], "default": None}]), {**order(2), "more": 1})
    with psycopg.connect(os.environ["HEADRACE_READER_FINANCE"]) as analyst:
        seen = analyst.execute(f"select * from {schema}.mine order by 1").fetchall()  # type: ignore[arg-type]
    assert seen == [(1,), (2,)], "an added column needs no view to be made again"


def test_a_change_that_loses_values_is_refused_with_the_command_that_does_it(desk: Desk) -> None:
    desk.fill(shared(), order(1))
    other = shared([FIELDS[0], {"name": "price", "type": "int"}, FIELDS[2]])
    with pytest.raises(
        TableRefused, match=r"price is numeric\(8, 2\) and would be integer.*load orders finance --anew"
    ):
        desk.load(other, {"id": 1, "price": 1})
    assert desk.rows("price") == [(Decimal("1.00"),)]
    desk.fill(other, {"id": 1, "price": 1})
    assert desk.rows("price") == [(1,)]


def test_another_mask_makes_a_columns_values_anew(desk: Desk) -> None:
    born = {"name": "born", "type": {"type": "int", "logicalType": "date"}, "pii": "birth"}
    kept = shared([*FIELDS, born], warehouses={"finance": {"keep": ["born"]}})
    masked = shared([*FIELDS, born], warehouses={"finance": {"mask": {"born": "year"}}})
    gone = shared([*FIELDS, born])
    desk.fill(kept, {**order(1), "born": PUBLISHED.date()})
    desk.load(masked, {**order(1), "born": 2026}, whole=True)
    assert desk.rows("id, born") == [(1, 2026)]
    desk.load(gone, order(1), whole=True)
    assert desk.rows("id, born") == [(1, None)], "the column stays, so that views on it do"


MAY = """
select role,
    has_schema_privilege(role, '{schema}', 'usage') as enters,
    has_schema_privilege(role, 'headrace', 'usage') as knows,
    has_table_privilege(role, '{schema}.orders', 'select') as reads,
    has_table_privilege(role, '{schema}.customers', 'select') as reads_more
from unnest(array['finance_reader', 'engineering_reader', 'headrace_engineering']) role
"""
ALL, NONE = (True, True, True, True), (False, False, False, False)


def test_whoever_may_read_from_now_on_does_and_whoever_may_no_more_does_not(desk: Desk) -> None:
    def may() -> dict[str, tuple[bool, ...]]:
        return {role: tuple(rest) for role, *rest in desk.asked(MAY.format(schema=desk.warehouse.schema))}

    def opened(*readers: str) -> None:
        """After the next load of any feed, which changes no row."""
        warehouse = replace(desk.warehouse, readers=readers)
        assert not warehouse.holds("orders").admitted, "so that a run goes on to load, though nothing is new"
        with warehouse.loading("customers"):
            pass
        assert warehouse.holds("orders").admitted

    desk.fill(shared(), order(1))
    with desk.warehouse.loading("customers") as session:
        customers = replace(shared(), feed="customers")
        session.record(customers, desk._next(), "anew", session.fill(customers, iter([])))
    desk.do("grant select on {schema}.orders to headrace_engineering")
    by_hand = (False, False, True, False)
    assert may() == {"finance_reader": ALL, "engineering_reader": NONE, "headrace_engineering": by_hand}
    opened("finance_reader", "engineering_reader")
    assert may() == {"finance_reader": ALL, "engineering_reader": ALL, "headrace_engineering": by_hand}
    opened("engineering_reader")
    # Another warehouse of the same database may still let it in there.
    assert may()["finance_reader"] in (NONE, (False, True, False, False))
    assert may()["engineering_reader"] == ALL
    opened()
    assert may() == {**may(), "engineering_reader": NONE, "headrace_engineering": by_hand}


def test_what_others_hold_is_neither_loaded_nor_removed(desk: Desk) -> None:
    desk.fill(shared(), order(1))
    growth = replace(desk.warehouse, name="growth", readers=("engineering_reader",))
    told = r"growth: schema t_\w+ of finance at .* holds the tables of the warehouse finance\. Nothing was changed"
    with pytest.raises(SettingsError, match=told), growth.loading("customers"):
        pass
    for ask in (growth.remove, growth.tables):
        with pytest.raises(SettingsError, match=told):
            ask()
    assert desk.rows("id") == [(1,)]
    assert not desk.warehouse.holds("customers").snapshot


def test_tables_that_an_older_version_loaded_go_on(desk: Desk) -> None:
    desk.fill(shared(), order(1))
    desk.do("drop table headrace.warehouses")
    assert [held.table for held in desk.warehouse.tables()] == ["orders"]
    assert desk.warehouse.holds("orders") == Load(), "until its next load"
    assert desk.load(shared(), order(2)) == Counts(inserted=1)
    assert desk.warehouse.holds("orders").snapshot == desk.snapshot


def test_what_cannot_be_asked_holds_nothing(desk: Desk) -> None:
    desk.fill(shared(), order(1))
    here = desk.warehouse.database
    stranger = replace(connections.warehouse("engineering").database, name=here.name)
    for database in (stranger, replace(here, port=1), replace(here, password="x")):
        assert replace(desk.warehouse, database=database).holds("orders") == Load()


def test_a_table_of_somebody_else_is_left_alone(desk: Desk) -> None:
    desk.do("create schema {schema}", "create table {schema}.orders (id int primary key)")
    with desk.warehouse.loading("orders") as session, pytest.raises(TableRefused, match=r"not loaded by us.*--anew"):
        session.keeps(shared(), session.loaded())


def test_a_table_that_was_renamed_as_the_error_says_keeps_its_key_and_ours_has_one_too(desk: Desk) -> None:
    desk.do("create schema {schema}", "create table {schema}.orders (id int primary key)")
    with desk.warehouse.loading("orders") as session, pytest.raises(TableRefused, match="Rename it"):
        session.keeps(shared(), session.loaded())
    desk.do("alter table {schema}.orders rename to theirs")
    assert desk.fill(shared(), order(1)) == Counts(inserted=1)
    assert desk.load(shared(), order(1, "2.00"), order(2)) == Counts(inserted=1, updated=1)
    assert desk.fill(shared(), order(1)) == Counts(inserted=1)
    indexes = f"select tablename, indexname from pg_indexes where schemaname = '{desk.warehouse.schema}' order by 1"
    assert desk.asked(indexes) == [("orders", "orders_pkey1"), ("theirs", "orders_pkey")]


def test_another_key_makes_the_table_anew(desk: Desk) -> None:
    desk.fill(shared(), order(1))
    with desk.warehouse.loading("orders") as session:
        assert session.keeps(shared(), session.loaded())
        assert not session.keeps(shared(key=["id", "price"]), session.loaded())


@pytest.mark.parametrize(
    ("type_", "value"),
    [("int", 4_711_815), ({"type": "string", "logicalType": "uuid"}, "8f14e45f-ceea-467f-a0c9-1b2c3d4e5f60")],
)
def test_a_key_that_is_hashed_or_no_more_makes_the_table_anew_without_the_keys_of_before(
    desk: Desk, type_: Any, value: Any
) -> None:
    fields = [{"name": "id", "type": type_, "pii": "account"}, *FIELDS[1:]]
    plain = shared(fields, warehouses={"finance": {"keep": ["id"]}})
    hashed = shared(fields, warehouses={"finance": {"mask": {"id": "hash"}}})

    def keeps(share: Share) -> bool:
        with desk.warehouse.loading("orders") as session:
            return session.keeps(share, session.loaded())

    rest = {"price": Decimal("1.00"), "note": None}
    desk.fill(plain, {"id": value, **rest})
    desk.do("create view {schema}.keys as select id, note from {schema}.orders")
    assert keeps(plain)
    assert not keeps(hashed), "nobody could tell which row is which"
    desk.fill(hashed, {"id": "4be1", **rest})
    assert desk.rows() == [("4be1", Decimal("1.00"), None)]
    assert desk.rows(table="keys") == [("4be1", None)]
    assert keeps(hashed)
    assert not keeps(plain)
    desk.fill(plain, {"id": value, **rest})
    assert desk.rows("id::text") == [(str(value),)]


def test_analysts_find_comments_keys_indexes_and_what_was_loaded_when(desk: Desk) -> None:
    made = {"name": "made", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    declared = {"partition": {"field": "made"}, "warehouses": {"finance": {"index": [["note"], ["price", "note"]]}}}
    row = {**order(1), "made": PUBLISHED}
    desk.fill(shared([*FIELDS, made], **declared), row)
    schema = desk.warehouse.schema
    described = f"select obj_description('{schema}.orders'::regclass), col_description('{schema}.orders'::regclass, 1)"
    assert desk.asked(described) == [("Orders.", "The order's number.")]
    listed = f"select substring(indexdef, '\\((.*)\\)') from pg_indexes where schemaname = '{schema}'"
    assert sorted(desk.asked(listed)) == [("id",), ("made",), ("note",), ("price, note",)]
    desk.load(shared([*FIELDS, made]), row)
    assert sorted(desk.asked(listed)) == [("id",)], "indexes that nobody asks for any more are gone"
    with psycopg.connect(os.environ["HEADRACE_READER_FINANCE"]) as reader:
        loads = f"select way, inserted, updated from headrace.history where schema_name = '{schema}' order by loaded_at"
        assert reader.execute(loads).fetchall() == [("anew", 1, 0), ("changes", 0, 0)]  # type: ignore[arg-type]
        fresh = f"select table_name, published_at, age > '0' from headrace.freshness where schema_name = '{schema}'"
        assert reader.execute(fresh).fetchall() == [("orders", PUBLISHED, True)]  # type: ignore[arg-type]


def test_a_database_that_was_never_loaded_says_so(desk: Desk) -> None:
    fresh = replace(desk.warehouse, database=replace(desk.warehouse.database, name="postgres"))
    with fresh.reading("orders") as session:
        assert session.loaded() == Load()


def test_a_lock_of_somebody_else_is_not_waited_for_for_ever(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_platform, "LOCK_TIMEOUT", "100ms")
    desk.fill(shared(), order(1))
    with psycopg.connect(desk.warehouse.database.url(), application_name="a notebook") as other:
        other.execute(f"lock table {desk.warehouse.schema}.orders in share mode")  # type: ignore[arg-type]
        with pytest.raises(WarehouseBusy, match=r"process \d+, headrace_finance \(a notebook\), idle in transaction"):
            desk.load(shared(), order(2))
        assert WarehouseBusy.retry, "Airflow tries again"
    assert desk.load(shared(), order(2)) == Counts(inserted=1)


def test_whoever_does_not_commit_a_grant_keeps_no_load_waiting(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_platform, "LOCK_TIMEOUT", "500ms")
    desk.fill(shared(), order(1))
    with psycopg.connect(desk.warehouse.database.url()) as other:
        other.execute("grant usage on schema headrace to engineering_reader")
        other.execute(f"grant usage on schema {desk.warehouse.schema} to engineering_reader")  # type: ignore[arg-type]
        assert desk.load(shared(), order(2)) == Counts(inserted=1)
        other.rollback()


def test_a_server_that_falls_silent_is_noticed(desk: Desk) -> None:
    with desk.warehouse._asked() as connection:
        asked = connection.info.get_parameters()
    assert {name: int(asked[name]) for name in SIGNS_OF_LIFE} == SIGNS_OF_LIFE
    with desk.warehouse.reading("orders") as session:
        assert session.query(sql.SQL("select 1 as one")).to_pylist() == [{"one": 1}], "ADBC takes them as well"


def test_a_load_gives_up_its_turn_before_airflow_ends_it(desk: Desk) -> None:
    with psycopg.connect(desk.warehouse.database.url()) as connection:
        asked = connection.execute("select %s::interval < %s::interval", [postgres_platform.TURN_TIMEOUT, TIME_LIMIT])
        assert asked.fetchone() == (True,)


def test_a_turn_to_load_is_waited_for_only_so_long(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_platform, "TURN_TIMEOUT", "200ms")
    desk.fill(shared(), order(1))
    told = r"one of these: process \d+, headrace_finance"
    with desk.warehouse.loading("orders"), pytest.raises(WarehouseBusy, match=told):
        desk.load(shared(), order(2))


def test_what_somebody_reads_is_removed_the_next_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_platform, "LOCK_TIMEOUT", "200ms")
    desk.fill(shared(), order(1))
    with psycopg.connect(desk.warehouse.database.url()) as other:
        other.execute(f"select * from {desk.warehouse.schema}.orders")  # type: ignore[arg-type]
        with pytest.raises(WarehouseBusy):
            desk.warehouse.remove()
    assert [held.table for held in desk.warehouse.tables()] == ["orders"]
    assert desk.warehouse.remove() == ["orders"]
    assert desk.warehouse.tables() == []


def test_whoever_reads_how_fresh_tables_are_keeps_no_load_waiting(desk: Desk) -> None:
    desk.fill(shared(), order(1))
    with psycopg.connect(os.environ["HEADRACE_READER_FINANCE"]) as reader:
        reader.execute("select * from headrace.freshness, headrace.history")
        assert desk.load(shared(), order(2)) == Counts(inserted=1)


def test_what_the_database_refuses_is_told_without_a_value_of_the_row(desk: Desk) -> None:
    desk.fill(shared(), order(1))
    desk.do("alter table {schema}.orders add constraint short check (length(note) < 5)")
    with pytest.raises(WarehouseError) as caught:
        desk.load(shared(), order(2, note=PERSON))
    assert "a row violates a check constraint: short (SQL state 23514)" in str(caught.value)
    assert PERSON not in "".join(traceback.format_exception(caught.value))


RAISES = """
create function {{schema}}.refuse() returns trigger language plpgsql
as $$ begin raise exception 'no such person: %', new.note using errcode = '{state}'; end $$
"""
GUARD = "create trigger guard before insert on {schema}.orders for each row execute function {schema}.refuse()"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (["create index on {schema}.orders ((note::int))"], "a value does not fit"),
        ([RAISES.format(state="P0001"), GUARD], "a function or a trigger refuses a row"),
        ([RAISES.format(state="23514"), GUARD], "a row violates a check constraint"),
        ([RAISES.format(state="42501"), GUARD], "it refuses a row"),
        ([RAISES.format(state="X0001"), GUARD], "it refuses a row"),
    ],
)
def test_what_an_index_or_a_trigger_says_may_hold_a_value_and_is_not_told(
    desk: Desk, made: list[str], told: str
) -> None:
    desk.fill(shared(), order(1))
    desk.do(*made)
    with pytest.raises((WarehouseError, SettingsError), match=told) as caught:
        desk.load(shared(), order(2, note=PERSON))
    assert PERSON not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("40P01", WarehouseBusy),
        ("40001", WarehouseBusy),
        ("57014", ServiceAway),
        ("57P01", ServiceAway),
        ("53300", ServiceAway),
        ("25P03", ServiceAway),
    ],
)
def test_what_passes_by_itself_is_tried_again(desk: Desk, state: str, error: type[HeadraceError]) -> None:
    failing = sql.SQL("do $$ begin raise exception 'for once' using errcode = {}; end $$").format(sql.Literal(state))
    with pytest.raises(error) as caught, desk.warehouse.loading("orders") as session:
        session.execute(failing)
    assert caught.value.retry


def test_rows_that_cannot_be_read_are_told_as_they_are(desk: Desk) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from batches(shared(), order(1))
        raise ServiceAway("S3 does not answer")

    with pytest.raises(ServiceAway, match=r"^S3 does not answer$"), desk.warehouse.loading("orders") as session:
        session.stage(shared(), broken())


def test_a_warehouse_that_is_away_or_refuses_us_is_told_apart(desk: Desk) -> None:
    here = desk.warehouse
    cases: list[tuple[PostgresWarehouse, type[Exception], str]] = [
        (
            replace(here, database=replace(here.database, port=1)),
            ServiceAway,
            "finance at .*:1/finance does not answer",
        ),
        (replace(here, database=replace(here.database, password="x")), ServiceRefused, "headrace_warehouse_finance"),
        (replace(here, database=replace(here.database, name="nothing")), ServiceRefused, "nothing"),
        (replace(here, readers=("nobody_here",)), SettingsError, 'role "nobody_here" does not exist.*Create it'),
    ]
    for warehouse, error, told in cases:
        with pytest.raises(error, match=told), warehouse.loading("orders"):
            pass
