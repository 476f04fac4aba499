"""Load and reconcile against real Postgres warehouses: exactly the published rows, in one transaction, and proven."""

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from airflow.sdk.exceptions import AirflowFailException
from forwarder import HOST, Forwarder
from psycopg import sql
from run_context import run_context
from typer.testing import CliRunner
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace import heads, layout
from headrace.airflow import connections, tasks, upkeep
from headrace.cli import app
from headrace.declaration import Sharing
from headrace.errors import FeedError, HeadraceError, ReconcileError, ServiceAway, TableRefused
from headrace.stages import load, progress
from headrace.warehouses.postgres import PostgresWarehouse

Make = Callable[..., Workshop]


def order(id_: str, revision: int, price: str = "1.00", email: str | None = None) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal(price), "created_at": 1_790_000_000_000, "email": email}
    return Record({"status": "placed", **row}, key=id_)


@contextmanager
def database(warehouse: str = "finance") -> Iterator[psycopg.Connection]:
    with psycopg.connect(connections.warehouse(warehouse).database.url()) as connection:
        yield connection


def column(shop: Workshop, name: str, warehouse: str = "finance") -> dict[str, Any]:
    query = sql.SQL("select id, {} from {}").format(sql.Identifier(name), sql.Identifier(shop.feed.name))
    with database(warehouse) as connection:
        return dict(connection.execute(query).fetchall())


def change(shop: Workshop, statement: str) -> None:
    with database() as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(shop.feed.name)))  # type: ignore[arg-type]


@contextmanager
def forwarded(warehouse: str = "finance") -> Iterator[tuple[PostgresWarehouse, Forwarder]]:
    """A warehouse behind a network that may fail."""
    direct: Any = connections.warehouse(warehouse)
    network = Forwarder(direct.database.port)
    yield replace(direct, database=replace(direct.database, host=HOST, port=network.port)), network
    network.cut()


def loaded(shop: Workshop, warehouse: PostgresWarehouse) -> load.Loaded:
    return load.load(shop.feed, lake=shop.lake, warehouse=warehouse, mask_key=b"key")


def loads(shop: Workshop) -> list[tuple[Any, ...]]:
    """What each load did, as the warehouse tells it; nothing, where none was there yet."""
    query = "select way, inserted, updated, deleted from headrace.history where table_name = %s order by loaded_at"
    with database() as connection:
        if connection.execute("select to_regclass('headrace.history')").fetchone() == (None,):
            return []
        return connection.execute(query, [shop.feed.name]).fetchall()


def clean(shop: Workshop) -> Any:
    return shop.lake.find(layout.clean_table(shop.feed.name))


def test_a_warehouse_gets_new_changed_and_deleted_rows(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1), order("b", 1), order("c", 1))
    first = shop.load()
    assert (first.staged, first.way) == (3, "anew")
    shop.merge(order("a", 2, "9.99"), Record(None, key="b"), order("d", 1))
    second = shop.load()
    assert (second.staged, second.way) == (3, "changes")
    assert column(shop, "price") == {"a": Decimal("9.99"), "c": Decimal("1.00"), "d": Decimal("1.00")}


def test_loading_again_changes_nothing(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1))
    shop.load()
    versions = column(shop, "xmin")
    assert shop.load().staged == 0
    assert column(shop, "xmin") == versions


def test_personal_columns_reach_only_the_warehouse_that_keeps_them(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1, email="a@example.org"))
    shop.load("finance")
    shop.load("engineering")
    assert column(shop, "email") == {"a": "a@example.org"}
    with pytest.raises(psycopg.errors.UndefinedColumn):
        column(shop, "email", "engineering")


def test_a_column_that_is_no_longer_shared_is_emptied(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1, email="a@example.org"))
    shop.load()
    declared = shop.feed.declaration.model_copy(update={"warehouses": {"finance": Sharing()}})
    without = replace(shop, feed=replace(shop.feed, declaration=declared))
    without.load()
    assert column(shop, "email") == {"a": None}


def test_what_was_withheld_stays_so_when_the_feed_drops_the_field(workshop: Make) -> None:
    more = [{"name": name, "type": "string", "default": ""} for name in ("salary", "note")]
    said = {"finance": {"keep": ["email"]}, "engineering": {"drop": ["salary"], "mask": {"note": "last4"}}}
    first = workshop({**ORDER, "warehouses": said}, fields=[*ORDER_FIELDS, *more])
    row = {**order("a", 1, email="a@example.org").value, "salary": "plain salary", "note": "plain note"}  # type: ignore[dict-item]
    first.merge(Record(row, key="a"))
    for warehouse in said:
        first.load(warehouse)
    shop = first.redeclared(warehouses={"finance": {}, "engineering": {}})
    shop = shop.changed(*(field for field in ORDER_FIELDS if field["name"] != "email"))
    without = {name: value for name, value in order("b", 1).value.items() if name != "email"}  # type: ignore[union-attr]
    shop.merge(Record(without, key="b"))
    for warehouse in said:
        shop.load(warehouse)
        assert shop.reconcile(warehouse).figures.rows == 2
    assert column(shop, "salary") == {"a": "plain salary", "b": None}
    assert column(shop, "note") == {"a": "plain note", "b": None}
    assert column(shop, "email") == {"a": None, "b": None}, "a personal one is emptied"
    assert column(shop, "note", "engineering") == {"a": None, "b": None}
    with database("engineering") as connection:
        held = connection.execute(sql.SQL("select * from {}").format(sql.Identifier(shop.feed.name))).fetchall()
    assert len(held) == 2
    assert not any(value in str(held) for value in ("plain salary", "plain note", "a@example.org"))


def place(name: str, *more: Any, **said: Any) -> dict[str, Any]:
    geo = {"type": "record", "name": "Geo", "fields": [{"name": "lat", "type": "double"}]}
    inner = [
        {"name": "city", "type": ["null", "string"], "default": None},
        {"name": "geo", "type": ["null", geo], "default": None},
        {"name": "lines", "type": {"type": "array", "items": "string"}, "default": []},
        *more,
    ]
    record = {"type": "record", "name": "Place", "fields": inner}
    return {"name": name, "type": ["null", record], "default": None, **said}


def test_a_flattened_record_is_loaded_changed_renamed_and_proven(workshop: Make) -> None:
    sharing = {"flatten": ["address"], "index": [["address_city"]]}
    shop = workshop({**ORDER, "warehouses": {"finance": sharing}}, fields=[*ORDER_FIELDS, place("address")])

    def at(id_: str, revision: int, **address: Any) -> Record:
        return Record({**order(id_, revision).value, "address": address or None}, key=id_)  # type: ignore[dict-item]

    shop.merge(at("a", 1, city="Bonn", geo={"lat": 50.7}, lines=["x", "ü"]), at("b", 1), at("c", 1, city=""))
    shop.load()
    assert column(shop, "address_city") == {"a": "Bonn", "b": None, "c": ""}
    assert column(shop, "address_geo_lat") == {"a": 50.7, "b": None, "c": None}
    assert column(shop, "address_lines") == {"a": ["x", "ü"], "b": None, "c": []}
    assert shop.reconcile().figures.rows == 3
    shop.merge(at("a", 2, city="Köln", geo={"lat": 50.9}), at("d", 1, city="Bonn"), Record(None, key="b"))
    assert shop.load().whole is False
    assert column(shop, "address_city") == {"a": "Köln", "c": "", "d": "Bonn"}
    assert shop.reconcile().figures.rows == 3
    change(shop, "update {} set address_geo_lat = -address_geo_lat where id = 'a'")
    with pytest.raises(ReconcileError, match="altered 1: a; in columns address_geo_lat"):
        shop.reconcile()
    change(shop, "update {} set address_geo_lat = -address_geo_lat where id = 'a'")
    more = {"name": "zip", "type": ["null", "string"], "default": None}
    declared = {**shop.feed.schema["feed"], "warehouses": {"finance": {"flatten": ["home"], "index": [["home_city"]]}}}
    redeclared = replace(shop, feed=replace(shop.feed, schema={**shop.feed.schema, "feed": declared}))
    renamed = redeclared.changed(*ORDER_FIELDS, place("home", more, aliases=["address"]))
    renamed.merge(Record({**order("d", 2).value, "home": {"city": "Bonn", "zip": "53111"}}, key="d"))  # type: ignore[dict-item]
    renamed.load()
    assert column(shop, "home_city") == {"a": "Köln", "c": "", "d": "Bonn"}
    assert column(shop, "home_zip") == {"a": None, "c": None, "d": "53111"}
    assert renamed.reconcile().figures.rows == 3
    with pytest.raises(psycopg.errors.UndefinedColumn):
        column(shop, "address_city")


def test_a_flattened_record_that_makes_a_column_twice_is_refused(workshop: Make) -> None:
    fields = [*ORDER_FIELDS, place("address"), {"name": "address_city", "type": "string"}]
    shop = workshop({**ORDER, "warehouses": {"finance": {"flatten": ["address"]}}}, fields=fields)
    shop.merge(Record({**order("a", 1).value, "address": None, "address_city": "Bonn"}, key="a"))  # type: ignore[dict-item]
    with pytest.raises(FeedError, match='flatten makes the column "address_city", which is there already'):
        shop.load()


def test_a_lossy_change_is_refused_and_done_by_the_command_that_the_error_names(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop({**ORDER, "warehouses": {"finance": {"keep": ["email"]}}})
    shop.merge(order("a", 1, "1.50", "a@example.org"), order("b", 1, "2.00"))
    shop.load()
    view, table = sql.Identifier(f"{shop.feed.name}_seen"), sql.Identifier(shop.feed.name)
    with database() as connection:
        connection.execute(sql.SQL("create view {} as select id, email, created_at from {}").format(view, table))
        connection.execute(sql.SQL("alter table {} alter column price type numeric(30, 2)").format(table))
    shop = shop.redeclared(warehouses={"finance": {"keep": ["email"], "drop": ["created_at"]}})
    with pytest.raises(TableRefused, match=r"price is numeric\(30, 2\) and would be numeric\(12, 2\)") as caught:
        shop.load()
    assert column(shop, "price") == {"a": Decimal("1.50"), "b": Decimal("2.00")}
    (tmp_path / shop.feed.file).write_text(json.dumps(shop.feed.schema))
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    command = str(caught.value).partition("headrace ")[2].split()
    assert command == ["load", shop.feed.name, "finance", "--anew"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == f"finance.{shop.feed.name}: loaded anew: 2 inserted, 0 updated, 0 deleted"
    assert column(shop, "price") == {"a": Decimal("1.50"), "b": Decimal("2.00")}
    with database() as connection:
        seen = connection.execute(sql.SQL("select * from {} order by id").format(view)).fetchall()
    assert seen == [("a", "a@example.org", None), ("b", None, None)], "created_at does not go there any more"
    shop.reconcile()


def test_another_key_makes_the_table_anew_under_the_views_on_it(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1, email="a@example.org"), order("b", 1))
    shop.load()
    view, table = sql.Identifier(f"{shop.feed.name}_mails"), sql.Identifier(shop.feed.name)
    with database() as connection:
        connection.execute(sql.SQL("create view {} as select id, email from {}").format(view, table))
    shop = shop.redeclared(key=["id", "status"], warehouses={"finance": {}})
    shop.again(anew=True)
    assert shop.load().way == "anew"
    with database() as connection:
        mails = connection.execute(sql.SQL("select * from {} order by id").format(view)).fetchall()
    assert mails == [("a", None), ("b", None)]
    shop.reconcile()


def test_another_mask_key_compares_every_row_again(workshop: Make) -> None:
    shop = workshop({**ORDER, "warehouses": {"finance": {"mask": {"email": "hash"}}}})
    shop.merge(order("a", 1, email="a@example.org"), order("b", 1))
    shop.load(mask_key=b"one")
    one = column(shop, "email")
    done = shop.load(mask_key=b"two")
    assert (done.way, done.staged) == ("whole", 2)
    assert column(shop, "email")["a"] != one["a"]
    assert column(shop, "email")["b"] is None
    shop.reconcile(mask_key=b"two")


def test_a_hashed_key_identifies_rows_as_well_as_the_key_itself(workshop: Make) -> None:
    personal = [{**field, "pii": "account"} if field["name"] == "id" else field for field in ORDER_FIELDS]
    warehouses = {"finance": {"mask": {"id": "hash"}}, "engineering": {"keep": ["id"]}}
    shop = workshop({**ORDER, "warehouses": warehouses}, fields=personal)
    shop.merge(order("a", 1), order("b", 1), order("c", 1))
    shop.load()
    shop.load("engineering")
    shop.merge(order("a", 2), Record(None, key="b"), order("d", 1))
    assert shop.load().way == "changes"
    shop.load("engineering")
    hashed, plain = column(shop, "revision"), column(shop, "revision", "engineering")
    assert plain == {"a": 2, "c": 1, "d": 1}
    assert sorted(hashed.values()) == [1, 1, 2]
    assert not {*plain} & {*hashed}
    shop.reconcile()
    shop.load(mask_key=b"another")
    again = column(shop, "revision")
    assert sorted(again.values()) == [1, 1, 2]
    assert not {*again} & {*hashed}
    change(shop, "delete from {} where revision = 2")
    with pytest.raises(ReconcileError, match=r"2 rows of 3; lost 1\. Clear"):
        shop.reconcile(mask_key=b"another")


def test_a_warehouse_that_missed_several_runs_catches_up_in_one(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1))
    shop.load()
    shop.merge(order("b", 1), Record(None, key="a"))
    shop.merge(order("c", 1), order("b", 2))
    assert shop.load().way == "changes"
    assert column(shop, "revision") == {"b": 2, "c": 1}


def test_a_load_that_dies_leaves_the_rows_and_the_snapshot_as_they_were(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1))
    shop.load()
    before = connections.warehouse("finance").holds(shop.feed.name)
    shop.merge(order("a", 2), order("b", 1))
    change(shop, "alter table {} add constraint no_b check (id <> 'b')")
    with pytest.raises(Exception, match="no_b"):
        shop.load()
    assert column(shop, "revision") == {"a": 1}
    assert connections.warehouse("finance").holds(shop.feed.name) == before
    change(shop, "alter table {} drop constraint no_b")
    shop.load()
    assert column(shop, "revision") == {"a": 2, "b": 1}


def test_two_loads_at_once_take_turns_and_the_second_finds_nothing_to_do(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1))
    shop.load()
    shop.merge(order("a", 2), order("b", 1))
    waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    with forwarded() as (warehouse, network), ThreadPoolExecutor(1) as pool, database() as onlooker:
        onlooker.autocommit = True
        second = []

        def begin_another() -> None:
            second.append(pool.submit(shop.load))
            deadline = time.monotonic() + 60
            while not onlooker.execute(waiting).fetchone():
                assert time.monotonic() < deadline, "the second load does not wait for the first"
                time.sleep(0.05)

        network.before(NOTED, begin_another)
        assert loaded(shop, warehouse).way == "changes"
        assert second[0].result().way is None
    assert column(shop, "revision") == {"a": 2, "b": 1}
    assert loads(shop) == [("anew", 1, 0, 0), ("changes", 1, 1, 0)]


def test_nobody_waits_while_rows_are_brought_to_a_table_that_changes(workshop: Make) -> None:
    shop = workshop({**ORDER, "warehouses": {"finance": {"drop": ["price"], "mask": {"created_at": "year"}}}})
    shop.merge(order("a", 1), order("b", 1))
    shop.load()
    view, table = sql.Identifier(f"{shop.feed.name}_made"), sql.Identifier(shop.feed.name)
    with database() as connection:
        connection.execute(sql.SQL("create view {} as select id, created_at from {}").format(view, table))
    shop = shop.redeclared(warehouses={"finance": {}})
    locked: list[sql.Identifier] = []

    def lock_meanwhile() -> None:
        for each in (table, view):
            with suppress(psycopg.errors.LockNotAvailable), database() as connection:
                connection.execute(sql.SQL("lock table {} in access exclusive mode nowait").format(each))
                locked.append(each)

    with forwarded() as (warehouse, network):
        network.before(b'analyze "headrace_staging"', lock_meanwhile)
        assert loaded(shop, warehouse).way == "whole"
    assert locked == [table, view]
    assert column(shop, "price") == {"a": Decimal("1.00"), "b": Decimal("1.00")}
    with database() as connection:
        made = connection.execute(sql.SQL("select * from {} order by id").format(view)).fetchall()
    assert [(id_, at.year) for id_, at in made] == [("a", 2026), ("b", 2026)]


NOTED = b"insert into headrace.history"
"""One of the last statements of a load, after which it commits."""


def about_to_load(workshop: Make, *, first: bool) -> Workshop:
    """Rows that wait for their load: the first one, or one that changes a table."""
    shop = workshop()
    shop.merge(order("a", 1))
    if not first:
        shop.load()
        shop.merge(order("a", 2), order("b", 1))
    return shop


@pytest.mark.parametrize("first", [True, False])
def test_a_load_that_is_cut_off_before_it_commits_has_done_nothing(workshop: Make, first: bool) -> None:
    shop = about_to_load(workshop, first=first)
    before = loads(shop)
    with forwarded() as (warehouse, network):
        network.before(NOTED, lambda: network.before(b"COMMIT"))
        with pytest.raises(ServiceAway):
            loaded(shop, warehouse)
        assert network.is_cut
        assert loads(shop) == before
        network.restore()
        assert loaded(shop, warehouse).way == ("anew" if first else "changes")
        assert loaded(shop, warehouse).way is None
    assert column(shop, "revision") == ({"a": 1} if first else {"a": 2, "b": 1})
    assert len(loads(shop)) == len(before) + 1
    shop.reconcile()


@pytest.mark.parametrize("first", [True, False])
def test_a_commit_whose_answer_is_lost_has_happened_once(workshop: Make, first: bool) -> None:
    shop = about_to_load(workshop, first=first)
    before = loads(shop)
    with forwarded() as (warehouse, network):
        network.before(NOTED, lambda: network.cut_after(b"COMMIT"))
        with pytest.raises(ServiceAway, match="A commit that was under way landed whole or not at all"):
            loaded(shop, warehouse)
        assert network.is_cut
        network.restore()
        assert loaded(shop, warehouse).way is None, "it is there already"
    assert column(shop, "revision") == ({"a": 1} if first else {"a": 2, "b": 1})
    assert len(loads(shop)) == len(before) + 1
    shop.reconcile()


def test_a_warehouse_that_is_down_fails_alone_and_catches_up(workshop: Make) -> None:
    shop = workshop()
    with forwarded("engineering") as (down, network):
        shop.merge(order("a", 1), order("b", 1))
        loaded(shop, down)
        network.cut()
        for revision in (2, 3):
            shop.merge(order("a", revision), Record(None, key="b"))
            with pytest.raises(ServiceAway, match=r"engineering at .* does not answer"):
                loaded(shop, down)
            assert shop.load().way
        assert column(shop, "revision") == {"a": 3}
        assert column(shop, "revision", "engineering") == {"a": 1, "b": 1}
        network.restore()
        done = loaded(shop, down)
    assert (done.way, done.counts) == ("changes", load.Counts(0, 1, 1))
    assert column(shop, "revision", "engineering") == {"a": 3}


def test_where_the_recorded_snapshot_has_expired_everything_is_compared(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1), order("b", 1), order("c", 1))
    shop.load()
    recorded, versions = connections.warehouse("finance").holds(shop.feed.name).snapshot, column(shop, "xmin")
    shop.merge(order("a", 2), Record(None, key="b"))
    clean(shop).maintenance.expire_snapshots().by_id(recorded).commit()
    done = shop.load()
    assert (done.way, done.counts) == ("whole", load.Counts(0, 1, 1))
    assert column(shop, "revision") == {"a": 2, "c": 1}
    assert column(shop, "xmin")["c"] == versions["c"], "what did not change is left alone"
    shop.reconcile()


def test_after_main_was_rolled_back_everything_is_compared(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1), order("b", 1))
    earlier = clean(shop).current_snapshot().snapshot_id
    shop.merge(order("a", 2), order("c", 1))
    shop.load()
    versions = column(shop, "xmin")
    clean(shop).manage_snapshots().rollback_to_snapshot(earlier).commit()
    done = shop.load()
    assert (done.way, done.counts) == ("whole", load.Counts(0, 1, 1))
    assert column(shop, "revision") == {"a": 1, "b": 1}
    assert column(shop, "xmin")["b"] == versions["b"], "what did not change is left alone"
    shop.reconcile()


def test_a_key_of_numbers_that_is_hashed_from_now_on_is_loaded_anew(workshop: Make) -> None:
    number = {"name": "number", "type": "int", "pii": "account"}
    said = {"key": ["number"], "merge": "latest", "warehouses": {"finance": {"keep": ["number"]}}}
    shop = workshop(said, fields=[number, *ORDER_FIELDS])
    shop.merge(*(Record({**order(id_, 1).value, "number": 4_711_000 + at}) for at, id_ in enumerate("ab")))  # type: ignore[dict-item]
    shop.load()
    assert column(shop, "number") == {"a": 4_711_000, "b": 4_711_001}
    shop = shop.redeclared(warehouses={"finance": {"mask": {"number": "hash"}}})
    assert shop.load().way == "anew"
    assert shop.load().way is None
    assert {len(value) for value in column(shop, "number").values()} == {64}
    shop.reconcile()
    shop = shop.redeclared(warehouses={"finance": {"keep": ["number"]}})
    assert shop.load().way == "anew"
    assert column(shop, "number") == {"a": 4_711_000, "b": 4_711_001}


def test_a_table_that_somebody_dropped_is_filled_anew(workshop: Make) -> None:
    shop = workshop({**ORDER, "warehouses": {"finance": {}}})
    shop.merge(order("a", 1), order("b", 1))
    shop.load()
    finance = [connections.warehouse("finance")]
    change(shop, "drop table {}")
    assert progress.is_behind(shop.feed, lake=shop.lake, warehouses=finance, mask_key=b"key"), "so that a run loads it"
    done = shop.load()
    assert (done.way, done.counts) == ("anew", load.Counts(2, 0, 0))
    assert column(shop, "revision") == {"a": 1, "b": 1}
    assert not progress.is_behind(shop.feed, lake=shop.lake, warehouses=finance, mask_key=b"key")
    shop.reconcile()


def test_after_somebody_edited_main_by_hand_everything_is_compared(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1), order("b", 1), order("c", 1))
    shop.load()
    versions = column(shop, "xmin")
    clean(shop).delete("id = 'b'")
    assert heads.PROPERTY not in clean(shop).current_snapshot().summary.additional_properties
    done = shop.load()
    assert (done.way, done.counts) == ("whole", load.Counts(0, 0, 1))
    assert column(shop, "xmin") == {"a": versions["a"], "c": versions["c"]}, "what did not change is left alone"
    shop.reconcile()


def test_analysts_read_the_table_with_comments_and_may_not_write(workshop: Make, stack: Any) -> None:
    shop = workshop()
    shop.merge(order("a", 1))
    shop.load()
    table = sql.Identifier(shop.feed.name)
    with psycopg.connect(os.environ["HEADRACE_READER_FINANCE"], autocommit=True) as reader:
        assert reader.execute(sql.SQL("select count(*) from {}").format(table)).fetchone() == (1,)
        described = reader.execute("select obj_description(%s::regclass)", [shop.feed.name]).fetchone()
        assert described == ("A row.",)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute(sql.SQL("delete from {}").format(table))


def test_a_feed_is_behind_until_every_warehouse_has_the_published_snapshot(workshop: Make) -> None:
    shop = workshop()
    warehouses = [connections.warehouse(name) for name in shop.feed.declaration.warehouses]

    def behind() -> bool:
        return progress.is_behind(shop.feed, lake=shop.lake, warehouses=warehouses, mask_key=b"key")

    assert not behind()
    shop.publish(order("a", 1))
    shop.extract()
    assert behind()
    shop.transform("run")
    shop.publish_run("run")
    shop.load("finance")
    assert behind()
    shop.load("engineering")
    assert not behind()
    shop = shop.redeclared(warehouses={"finance": {"keep": ["email"]}, "engineering": {}, "growth": {}})
    assert behind(), "from whom its columns are withheld has to be noted while they are there"
    shop.again()
    assert not behind()
    warehouses = [replace(each, readers=("engineering_reader",)) for each in warehouses if each.name == "finance"]
    assert behind(), "its readers are others"
    assert loaded(shop, warehouses[0]).way is None, "the rows are there"
    assert not behind()
    asked = sql.SQL("select 1 from {}").format(sql.Identifier(shop.feed.name))
    denied = pytest.raises(psycopg.errors.InsufficientPrivilege)
    with psycopg.connect(os.environ["HEADRACE_READER_FINANCE"]) as reader, denied:
        reader.execute(asked)
    shop.load()


@pytest.mark.parametrize("fault", ["no connection", "not allowed", "a schema twice"])
def test_a_warehouse_at_fault_stops_neither_the_feeds_run_nor_its_upkeep(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    shop = workshop({**ORDER, "warehouses": {"finance": {"keep": ["email"]}}})
    shop.merge(order("a", 1))
    file, folder = tmp_path / shop.feed.file, tmp_path / "warehouses"
    file.write_text(json.dumps(dict(shop.feed.schema)))
    folder.mkdir()
    connection = {"no connection": "nothing_such", "not allowed": "stranger"}.get(fault, "headrace_warehouse_finance")
    (folder / "finance.json").write_text(json.dumps({"connection": connection}))
    if fault == "a schema twice":
        (folder / "growth.json").write_text(json.dumps({"connection": connection}))
    there, stranger = connections.warehouse("finance").database, connections.warehouse("engineering").database
    uri = replace(stranger, name=there.name).url("postgres")
    monkeypatch.setenv("AIRFLOW_CONN_STRANGER", uri)
    monkeypatch.setenv("HEADRACE_WAREHOUSES", str(folder))
    with run_context(shop.feed.name):
        assert tasks.extract(str(file)), "its own load is to tell"
        with pytest.raises((HeadraceError, AirflowFailException)):
            tasks.load(str(file), "finance")
    assert upkeep.keep(shop.feed).feed == shop.feed.name


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("delete from {} where id = 'b'", r"2 rows of 3.*lost 1: b"),
        (
            "insert into {} select 'z', revision, status, price, email, created_at from {} limit 1",
            r"surplus 1: z",
        ),
        ("update {} set price = price + 0.01 where id = 'c'", r"price 4.01 of 4.00; altered 1: c"),
        ("update {} set created_at = created_at + interval '1 microsecond' where id = 'a'", r"altered 1: a"),
        ("update {} set email = '' where id = 'a'", r"altered 1: a"),
    ],
)
def test_reconcile_finds_one_lost_one_surplus_and_one_altered_row(workshop: Make, fault: str, named: str) -> None:
    shop = workshop({**ORDER, "correctness": {"sum": ["price"]}})
    shop.merge(order("a", 1), order("b", 1), order("c", 1, "2.00"))
    shop.load()
    assert shop.reconcile().figures.rows == 3
    name = sql.Identifier(shop.feed.name)
    with database() as connection:
        connection.execute(sql.SQL(fault).format(*[name] * fault.count("{}")))  # type: ignore[arg-type]
    with pytest.raises(ReconcileError, match=named):
        shop.reconcile()


def test_reconcile_finds_a_doubled_row_where_no_key_forbids_it(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1), order("b", 1))
    shop.load()
    constraint = f"{shop.feed.name}_pkey"
    with database() as connection:
        table = sql.Identifier(shop.feed.name)
        connection.execute(sql.SQL("alter table {} drop constraint {}").format(table, sql.Identifier(constraint)))
        connection.execute(sql.SQL("insert into {0} select * from {0} where id = 'a'").format(table))
    with pytest.raises(ReconcileError, match=r"3 rows of 2.*doubled 1: a"):
        shop.reconcile()


def test_swapped_values_of_two_rows_are_found_though_every_sum_agrees(workshop: Make) -> None:
    shop = workshop({**ORDER, "correctness": {"sum": ["price"]}})
    shop.merge(order("a", 1, "1.00"), order("b", 1, "2.00"))
    shop.load()
    change(shop, "update {} set price = 3 - price")
    with pytest.raises(ReconcileError, match=r"price 3.00 of 3.00; altered 2: a, b"):
        shop.reconcile()
