"""Keeping: upkeep of a workshop's tables, as tests ask for it."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from pyiceberg.table import Table
from workshop import Record, Workshop

from headrace import layout
from headrace.stages import upkeep, verify
from headrace.stages.upkeep import Kept, Upkeep


def row(id_: str, revision: int = 1, *, at: int | None = None) -> Record:
    value = {"id": id_, "revision": revision, "status": "paid", "price": Decimal("1.50"), "email": None}
    return Record({**value, "created_at": 1_780_000_000_000}, timestamp=at)


def spark_of(shop: Workshop) -> Callable[[str], str]:
    from headrace.airflow import connections
    from headrace.lake import spark_properties
    from spark_jobs import upkeep as job

    remote, properties = connections.spark_remote(), spark_properties(shop.lake)
    return lambda plan: job.run(plan, remote=remote, properties=properties)


def kept(shop: Workshop, *, days: int = 0, **more: Any) -> Upkeep:
    """Upkeep as it will be in some days."""
    asked = {"spark": spark_of(shop), "patience": timedelta(), **more}
    return upkeep.upkeep(shop.feed, lake=shop.lake, clock=lambda now: now + timedelta(days=days), **asked)


def of(done: Upkeep, table: str) -> Kept:
    return next(each for each in done.tables if each.table.startswith(f"{table}."))


def clean_table(shop: Workshop) -> Table:
    table: Table = shop.lake.catalog.load_table(layout.clean_table(shop.feed.name))
    return table


def quarantine_table(shop: Workshop) -> Table:
    table: Table = shop.lake.catalog.load_table(layout.quarantine_table(shop.feed.name))
    return table


def is_equal(shop: Workshop) -> bool:
    return verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka).is_equal
