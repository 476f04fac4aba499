"""Load and reconcile against real Postgres warehouses: exactly the published rows, in one transaction, and proven."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from airflow.sdk.exceptions import AirflowFailException
from psycopg import sql
from run_context import run_context
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace.airflow import connections, tasks, upkeep
from headrace.declaration import Sharing
from headrace.errors import HeadraceError, ReconcileError
from headrace.stages import progress

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


def test_a_warehouse_gets_new_changed_and_deleted_rows(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1), order("b", 1), order("c", 1))
    first = shop.load()
    assert (first.staged, first.whole) == (3, True)
    shop.merge(order("a", 2, "9.99"), Record(None, key="b"), order("d", 1))
    second = shop.load()
    assert (second.staged, second.whole) == (3, False)
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


def test_another_mask_key_compares_every_row_again(workshop: Make) -> None:
    shop = workshop({**ORDER, "warehouses": {"finance": {"mask": {"email": "hash"}}}})
    shop.merge(order("a", 1, email="a@example.org"), order("b", 1))
    shop.load(mask_key=b"one")
    one = column(shop, "email")
    done = shop.load(mask_key=b"two")
    assert (done.whole, done.staged) == (True, 2)
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
    assert shop.load().whole is False
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
    assert shop.load().whole is False
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


def test_analysts_read_the_table_with_comments_and_may_not_write(workshop: Make, stack: Any) -> None:
    import os

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
