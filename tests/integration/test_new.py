"""`headrace new` against a real Postgres and a real registry: what is there already becomes a feed file."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner
from workshop import Workshop

from headrace import feed as feeds
from headrace import layout
from headrace.cli import app
from headrace.feed import Feed

DATABASE = layout.warehouse_connection("finance")

TABLES = """
create type {schema}.order_status as enum ('open', 'closed');
create domain {schema}.money_amount as numeric(12, 2) check (value >= 0);
create table {schema}.orders (
    shop text not null,
    "order_no" bigint not null,
    revision integer not null,
    status {schema}.order_status not null default 'open',
    price {schema}.money_amount,
    weight numeric,
    tags text[] not null default '{{}}',
    email varchar(200),
    placed_at timestamptz not null,
    local_time timestamp(3),
    day date,
    token uuid,
    raw bytea,
    extra jsonb,
    address inet,
    spare integer,
    primary key (order_no, shop)
);
alter table {schema}.orders drop column spare;
comment on table {schema}.orders is 'One order.';
comment on column {schema}.orders.shop is 'Where it was placed.';
create view {schema}.open_orders as select shop, order_no from {schema}.orders;
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    return tmp_path


@pytest.fixture
def url(stack: Any) -> str:
    from headrace.airflow import connections

    return connections.database(DATABASE).url()


@pytest.fixture
def schema(url: str) -> Iterator[str]:
    name = f"t_{uuid.uuid4().hex[:10]}"
    with psycopg.connect(url) as connection:
        connection.execute(f"create schema {name}")
        connection.execute(TABLES.format(schema=name))
    yield name
    with psycopg.connect(url) as connection:
        connection.execute(f"drop schema {name} cascade")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["new", *arguments])


def types(feed: Feed) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in feed.schema["fields"]}


@pytest.mark.parametrize("by", ["connection", "url"])
def test_a_table_becomes_a_feed_file(folder: Path, schema: str, url: str, by: str) -> None:
    result = run("orders", "--from-table", DATABASE if by == "connection" else url, f"{schema}.orders")
    assert result.exit_code == 0, result.output
    feed = feeds.load(folder / "orders.avsc")
    assert feed.doc == "One order."
    assert feed.fields[0].doc == "Where it was placed."
    assert (feed.declaration.key, feed.declaration.order) == (["order_no", "shop"], ["revision"])
    assert feed.personal == {"email", "token", "address"}
    assert types(feed) == {
        "shop": "string",
        "order_no": "long",
        "revision": "int",
        "status": {"type": "enum", "name": "OrdersStatus", "symbols": ["open", "closed"]},
        "price": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}],
        "weight": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}],
        "tags": {"type": "array", "items": ["null", "string"]},
        "email": ["null", "string"],
        "placed_at": {"type": "long", "logicalType": "timestamp-micros"},
        "local_time": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}],
        "day": ["null", {"type": "int", "logicalType": "date"}],
        "token": ["null", {"type": "string", "logicalType": "uuid"}],
        "raw": ["null", "bytes"],
        "extra": ["null", "string"],
        "address": ["null", "string"],
    }
    assert "password" not in result.output
    assert url not in result.output


def test_a_view_has_no_key_to_take_so_one_must_be_named(folder: Path, schema: str) -> None:
    refused = run("orders", "--from-table", DATABASE, f"{schema}.open_orders")
    assert "--key FIELD, one of shop, order_no" in str(refused.exception)
    assert run("orders", "--from-table", DATABASE, f"{schema}.open_orders", "--key", "order_no").exit_code == 0


@pytest.mark.parametrize(
    ("name", "told"),
    [("public.no_such", "has no table public.no_such"), ("no_such.orders", "has no table"), ("a.b.c.d", "no name")],
)
def test_a_table_that_is_not_there_is_told(folder: Path, url: str, name: str, told: str) -> None:
    refused = run("orders", "--from-table", url, name)
    assert refused.exit_code == 1
    assert told in str(refused.exception)
    assert not list(folder.iterdir())


def test_a_connection_that_airflow_does_not_have_is_told(folder: Path, stack: Any) -> None:
    refused = run("orders", "--from-table", "shop_dv", "public.orders")
    assert str(refused.exception) == "Airflow has no connection shop_dv. Add it under Admin, Connections."


@pytest.mark.parametrize("command", [["new", "orders", "--from-subject", "orders-value"], ["register", "--dry-run"]])
def test_a_registry_whose_database_does_not_answer_is_told(
    folder: Path, stack: Any, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    nowhere = {"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "x", "login": "x"}
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_REGISTRY_STORE", json.dumps(nowhere))
    refused = CliRunner().invoke(app, command)
    assert str(refused.exception).startswith("the registry's database does not answer: ")


def test_a_database_that_does_not_answer_is_told_without_its_password(folder: Path, stack: Any) -> None:
    refused = run("orders", "--from-table", "postgresql://me:hunter2@127.0.0.1:1/x", "public.orders")
    assert "does not answer" in str(refused.exception)
    assert "hunter2" not in str(refused.exception)


def test_a_registered_subject_becomes_a_feed_file(folder: Path, workshop: Callable[..., Workshop]) -> None:
    from headrace.airflow import connections

    topic = f"shop.{uuid.uuid4().hex[:10]}"
    fields = [{"name": "order_id", "type": "string"}, {"name": "email", "type": "string"}]
    text = json.dumps({"type": "record", "name": "Order", "fields": fields})
    store = connections.registry()
    store.prepare()
    store.register(f"{topic}-value", "AVRO", text=text)
    result = run("orders", "--from-subject", f"{topic}-value", "--json")
    assert result.exit_code == 0, result.output
    feed = feeds.load(folder / "orders.avsc")
    assert (feed.topic, feed.declaration.key, feed.personal) == (topic, ["order_id"], {"email"})
    refused = run("others", "--from-subject", f"{topic}-valu")
    assert f'Did you mean "{topic}-value"?' in str(refused.exception)
