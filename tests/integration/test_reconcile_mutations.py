"""The verifier verified: whatever is changed in any store is found at the depth that can find it, and named."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import planting
import psycopg
import pyarrow as pa
import pytest
from planting import altered, archive_table, plant_clean
from psycopg import sql
from workshop import ORDER, Record, Workshop

from headrace import layout, reconciliation
from headrace.airflow import connections, planning, reconciling
from headrace.airflow.spark import Spark
from headrace.clean import HIDDEN_ROW
from headrace.errors import ReconcileError
from headrace.reckoning import Depth
from headrace.reconciliation import Reconciliation
from headrace.stages import derivation

Make = Callable[..., Workshop]
Rows = list[dict[str, Any]]
DECLARED = {**ORDER, "correctness": {"sum": ["price"]}, "partition": {"field": "created_at"}}
NOON = 1_790_000_400_000
DAY = 86_400_000
FIRST, SECOND, THIRD = "2026-09-21", "2026-09-22", "2026-09-23"


def order(id_: str, revision: int = 1, price: str = "1.00", *, day: int = 0, status: str = "placed") -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal(price), "created_at": NOON + day * DAY}
    return Record({"status": status, "email": "a@b.c", **row}, key=id_)


@dataclass(frozen=True)
class Told:
    """The first depth that finds it, and what is named: of each kind how many keys and the first one."""

    depth: Depth
    keys: Mapping[str, tuple[int, str]]
    columns: tuple[str, ...] = ()
    partitions: tuple[str, ...] = (FIRST,)

    @classmethod
    def of(cls, done: Reconciliation) -> "Told":
        keys = {kind: (each["count"], each["keys"][0]) for kind, each in done.differences["keys"].items()}
        columns = tuple(done.differences.get("columns", ()))
        depth = next(depth for depth, agrees in done.depths.items() if not agrees)
        return cls(depth, keys, columns, tuple(done.differences["partitions"]))


def without(*ids: str) -> Callable[[Rows], Rows]:
    return lambda rows: [row for row in rows if row["id"] not in ids]


def changed(id_: str, **values: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [{**row, **values} if row["id"] == id_ else row for row in rows]


def copied(**values: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [*rows, {**next(row for row in rows if row["id"] == "a"), **values}]


def shifted(rows: Rows) -> Rows:
    return [{**row, "created_at": row["created_at"] + timedelta(microseconds=1)} if row["id"] == "b" else row
            for row in rows]  # fmt: skip


ROWS: Mapping[str, tuple[Callable[[Rows], Rows], Told]] = {
    "a row is lost": (without("a"), Told("count", {"lost": (1, "a")})),
    "a row is added": (copied(id="x"), Told("count", {"surplus": (1, "x")})),
    "a row is doubled": (copied(), Told("count", {"doubled": (1, "a")})),
    "one is doubled, another lost": (
        lambda rows: without("b")(copied()(rows)),
        Told("count", {"lost": (1, "b"), "doubled": (1, "a")}),
    ),
    "a price": (changed("a", price=Decimal("9.99")), Told("sums", {"altered": (1, "a")}, ("price",))),
    "a null": (changed("a", email=None), Told("checksum", {"altered": (1, "a")}, ("email",))),
    "an empty text": (changed("a", email=""), Told("checksum", {"altered": (1, "a")}, ("email",))),
    "a microsecond": (shifted, Told("checksum", {"altered": (1, "b")}, ("created_at",))),
    "two rows' values": (
        lambda rows: changed("b", status="paid")(changed("c", status="placed")(rows)),
        Told("checksum", {"altered": (2, "b")}, ("status",)),
    ),
    "two rows' prices": (
        lambda rows: changed("a", price=Decimal("1.00"))(changed("b", price=Decimal("5.00"))(rows)),
        Told("checksum", {"altered": (2, "a")}, ("price",)),
    ),
    "a column": (
        lambda rows: [{**row, "email": "x"} for row in rows],
        Told("checksum", {"altered": (7, "a")}, ("email",), (FIRST, SECOND, THIRD)),
    ),
    "a partition": (without("d", "e"), Told("count", {"lost": (2, "d")}, (), (SECOND,))),
    "a day's rows in another": (
        changed("d", created_at=datetime.fromtimestamp(NOON / 1000, UTC)),
        Told("checksum", {"altered": (1, "d")}, ("created_at",), (FIRST, SECOND)),
    ),
}
"""What may be wrong with the rows of the clean table, and of a warehouse."""

HIDES = ("revision", "status", "price", "email", "created_at", HIDDEN_ROW)
"""What differs in a row that is hidden: of a deleted key nothing else is compared."""
HIDDEN: Mapping[str, tuple[Callable[[Rows], Rows], Told]] = {
    "a row that is hidden": (
        changed("a", **{HIDDEN_ROW: True}),
        Told("sums", {"altered": (1, "a")}, HIDES, (FIRST, "null")),
    ),
    "a deleted key's row is lost": (without("gone"), Told("count", {"lost": (1, "gone")}, (), ("null",))),
}


def planted(change: planting.Change) -> Callable[[Workshop], None]:
    return lambda shop: planting.plant(shop, change)


def one(column: str, value: Any) -> Callable[[Workshop], None]:
    return planted(lambda rows: altered(rows, column, at=3, value=value))


def later(rows: pa.Table) -> pa.Table:
    return altered(rows, "timestamp", at=3, value=rows["timestamp"][3].as_py() + 1)


def swapped(rows: pa.Table) -> pa.Table:
    return altered(altered(rows, "value", at=0, value=b"v1"), "value", at=1, value=b"v0")


def emptied(rows: pa.Table) -> pa.Table:
    for place in range(len(rows)):
        rows = altered(rows, "key", at=place, value=None)
    return rows


def without_partition(shop: Workshop) -> None:
    table = archive_table(shop)
    planting.replace(table, without=planting.files(table, 1))


def at(kind: str, depth: Depth, count: int = 1, place: str = "partition 0 offset 3") -> Told:
    return Told(depth, {kind: (count, place)}, (), (place.partition(" offset")[0],))


RECORDS: Mapping[str, tuple[Callable[[Workshop], None], Told]] = {
    "a record is lost": (planted(lambda rows: rows.filter([n != 3 for n in range(len(rows))])), at("gap", "count")),
    "a record is doubled": (planted(lambda rows: rows.take([*range(len(rows)), 3])), at("double", "count")),
    "a value": (one("value", b"x"), at("altered", "checksum")),
    "no value": (one("value", None), at("altered", "checksum")),
    "a key": (one("key", b"x"), at("altered", "checksum")),
    "a millisecond": (planted(later), at("altered", "checksum")),
    "two records' values": (planted(swapped), at("altered", "checksum", 2, "partition 0 offset 0")),
    "a column": (planted(emptied), at("altered", "checksum", 10, "partition 0 offset 0")),
    "a partition": (without_partition, at("gap", "count", 4, "partition 1 offset 0–3")),
}
"""What may be wrong with archived records."""


def named(done: Reconciliation, feed: Any, what: str, wanted: Told) -> None:
    assert done.agrees is False, what
    assert (what, Told.of(done)) == (what, wanted)
    with pytest.raises(ReconcileError) as caught:
        reconciling.judge(feed, done)
    for kind, (count, first) in wanted.keys.items():
        assert f"{kind} {count}: {first}" in str(caught.value)


def test_what_is_wrong_with_the_archive_is_found_and_named(workshop: Make) -> None:
    shop, now = workshop({"key": ["id"]}), int(time.time() * 1000)
    shop.publish(
        *(Record(b"v%d" % n, key=f"k{n}", timestamp=now + n) for n in range(10)),
        *(Record(b"v%d" % n, key=f"k{n}", timestamp=now + n, partition=1) for n in range(4)),
    )
    shop.extract()
    table = archive_table(shop)
    good = [planting.copy(file) for number in (0, 1) for file in planting.files(table, number)]
    before = shop.prove("archive")
    assert (before.agrees, before.pair, before.found_rows) == (True, "topic–archive", 14)
    for what, (plant, wanted) in RECORDS.items():
        plant(shop)
        done = shop.prove("archive")
        named(done, shop.feed, what, wanted)
        assert done.checksums[0] == before.checksums[0], "what should be there is as it was"
        table = archive_table(shop)
        bad = [file for number in (0, 1) for file in planting.files(table, number)]
        planting.replace(table, *(planting.copy(file) for file in good), without=bad)
    assert shop.prove("archive").agrees


@pytest.fixture
def shop(workshop: Make) -> Workshop:
    """Three days of orders, one of them deleted, one rejected."""
    made = workshop(DECLARED)
    made.merge(
        order("a", price="5.00"), order("b"), order("c"), order("d", day=1), order("e", day=1), order("gone"),
        order("f", day=2), order("g", day=2), Record(None, key="gone"), Record(b"bad"),
        order("c", 2, status="paid"),
    )  # fmt: skip
    return made


def test_what_is_wrong_with_the_clean_table_is_found_and_named(shop: Workshop, tmp_path: Path) -> None:
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    content = table.scan().to_arrow().to_pylist()
    made = planning.derivation(shop.feed, lake=shop.lake)
    assert made is not None
    # Spark makes the rows once; what is planted then changes nothing of what they should be.
    run = iter([Spark.of(shop.feed, shop.lake).run])

    def once(plan: str) -> str:
        ask = next(run, None)
        return ask("derivation", plan) if ask else ""

    def compared(base: int) -> Reconciliation:
        planned = made.model_copy(update={"base": base})
        done = derivation.derive(shop.feed, lake=shop.lake, made=planned, run=once, folder=tmp_path)
        told = {"at": datetime.now(UTC), "run": "", "expected": "archive", "found": "clean", "scope": "whole"}
        return reconciliation.of_verdict(done.verdict, personal=False, snapshot=base, seconds=0.0, **told)

    before = compared(made.base)
    assert (before.agrees, before.expected_rows) == (True, 8)
    for what, (change, wanted) in {**ROWS, **HIDDEN}.items():
        named(compared(plant_clean(shop, change(content))), shop.feed, what, wanted)
    plant_clean(shop, content)
    assert shop.prove().agrees


def test_what_is_wrong_with_a_warehouse_is_found_and_named(shop: Workshop) -> None:
    shop.load(mask_key=connections.mask_key())
    table = sql.Identifier(shop.feed.name)
    names = [field.name for field in shop.feed.fields]
    listed, places = sql.SQL(", ").join(map(sql.Identifier, names)), sql.SQL(", ").join(sql.Placeholder() * len(names))
    insert = sql.SQL("insert into {} ({}) values ({})").format(table, listed, places)
    with psycopg.connect(connections.warehouse("finance").database.url(), autocommit=True) as connection:
        key = sql.Identifier(f"{shop.feed.name}_pkey")
        connection.execute(sql.SQL("alter table {} drop constraint {}").format(table, key))
        found = connection.execute(sql.SQL("select {} from {} order by 1").format(listed, table)).fetchall()
        content = [dict(zip(names, row, strict=True)) for row in found]

        def fill(rows: Rows) -> None:
            connection.execute(sql.SQL("truncate {}").format(table))
            with connection.cursor() as cursor:
                cursor.executemany(insert, [[row[name] for name in names] for row in rows])

        assert reconciling.warehouse(shop.feed, "finance", run="", full=True).agrees
        for what, (change, wanted) in ROWS.items():
            fill(change(content))
            named(reconciling.warehouse(shop.feed, "finance", run="", full=True), shop.feed, what, wanted)
        fill(content)
    assert reconciling.warehouse(shop.feed, "finance", run="", full=True).agrees


def test_of_many_keys_the_first_hundred_are_listed(workshop: Make) -> None:
    shop = workshop({**DECLARED, "warehouses": {"finance": {}}})
    shop.merge(*(order(f"{number:03d}") for number in range(130)))
    shop.load(mask_key=connections.mask_key())
    with psycopg.connect(connections.warehouse("finance").database.url()) as connection:
        connection.execute(sql.SQL("delete from {}").format(sql.Identifier(shop.feed.name)))
    planting.plant(shop, emptied)
    for store, kind, first, last in (
        ("finance", "lost", "000", "099"),
        ("archive", "altered", "partition 0 offset 0", "partition 0 offset 99"),
    ):
        keys = reconciling.compare(shop.feed, store, run="", full=True)
        assert keys is not None
        told = keys.differences["keys"][kind]
        assert (told["count"], len(told["keys"]), told["keys"][0], told["keys"][-1]) == (130, 100, first, last)
