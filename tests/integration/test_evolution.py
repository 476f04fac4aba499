"""A feed's new version: its columns are added and widened in every table, and those it dropped stay."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import sql
from workshop import ORDER_FIELDS, Record, Workshop

from headrace import layout
from headrace.airflow import connections

NOTE = {"name": "note", "type": ["null", "string"], "default": None}


def order(id_: str, **others: Any) -> Record:
    row = {"id": id_, "revision": 1, "price": Decimal("1.00"), "created_at": 1_790_000_000_000, "status": "placed"}
    return Record({**row, **others}, key=id_)


def notes(shop: Workshop) -> dict[str, str | None]:
    query = sql.SQL("select id, note from {}").format(sql.Identifier(shop.feed.name))
    with psycopg.connect(connections.warehouse("finance").database.url()) as connection:
        return dict(connection.execute(query).fetchall())


def test_an_added_column_reaches_the_warehouse_before_and_after_it_holds_values(
    workshop: Callable[..., Workshop],
) -> None:
    old = workshop()
    old.merge(order("a"))
    old.load()
    new = old.changed(*ORDER_FIELDS, NOTE)
    new.load()
    assert notes(new) == {"a": None}
    new.merge(order("b", note="ring twice"))
    new.load()
    assert notes(new) == {"a": None, "b": "ring twice"}
    assert new.reconcile().figures.rows == 2


def test_a_dropped_column_stays_and_is_null_from_then_on(workshop: Callable[..., Workshop]) -> None:
    old = workshop(fields=[*ORDER_FIELDS, NOTE])
    old.merge(order("a", note="first"), order("b", note="second"))
    new = old.changed(*ORDER_FIELDS)
    new.merge(order("b", revision=2), order("c"))
    table = new.lake.find(layout.clean_table(new.feed.name))
    rows = table.scan(row_filter="_hidden = false", selected_fields=("id", "note")).to_arrow().to_pylist()
    assert {row["id"]: row["note"] for row in rows} == {"a": "first", "b": None, "c": None}


def test_a_widened_column_keeps_its_values(workshop: Callable[..., Workshop]) -> None:
    count = {"name": "count", "type": "int", "default": 0}
    old = workshop(fields=[*ORDER_FIELDS, count])
    old.merge(order("a", count=1))
    new = old.changed(*ORDER_FIELDS, {**count, "type": "long"})
    new.merge(order("b", count=2**40))
    assert {row["id"]: row["count"] for row in new.clean()} == {"a": 1, "b": 2**40}
