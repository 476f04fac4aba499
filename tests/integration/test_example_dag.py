"""The example DAG's tasks at a real warehouse and a real registry."""

import runpy
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

EXAMPLE = Path(__file__).parents[2] / "dags" / "example_orders_report.py"


@pytest.fixture
def table(stack: Any) -> Iterator[str]:
    """Finance's orders, in a table of the test's own."""
    from headrace.airflow import connections

    name = f"t_{uuid.uuid4().hex[:10]}"
    with psycopg.connect(connections.warehouse("finance").database.url(), autocommit=True) as session:
        table = sql.Identifier(name)
        session.execute(sql.SQL("create table {} (order_id text, status text)").format(table))
        rows = sql.SQL("insert into {} values ('a', 'paid'), ('b', 'paid'), ('c', 'placed')")
        session.execute(rows.format(table))
        yield name
        session.execute(sql.SQL("drop table {}").format(table))


def test_orders_are_counted_by_status(table: str) -> None:
    module = runpy.run_path(str(EXAMPLE))
    counted = module["count"].function(["order_id"], table, "headrace_warehouse_finance")
    assert counted == {"paid": 2, "placed": 1}


def test_the_key_comes_from_the_registry(stack: Any) -> None:
    assert runpy.run_path(str(EXAMPLE))["key"].function() == ["order_id"]
