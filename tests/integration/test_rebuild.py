"""Rebuild: after a change of the rules the runs stop, and the table is made anew from the archive."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq
import pytest
from keeping import kept, of
from workshop import ORDER, Record, Workshop

from headrace import layout
from headrace.errors import CheckError, RebuildNeeded, RebuildRefused

Make = Callable[..., Workshop]


def order(id_: str, revision: int, **others: Any) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal("1.00"), "created_at": 1_790_000_000_000}
    return Record({"status": "placed", "email": None, **row, **others}, key=id_)


def rebuilt(shop: Workshop, *, publish: bool = True, **allowed: Any) -> Any:
    from headrace.airflow import rebuild

    return rebuild.rebuild(shop.feed, run=f"rebuild_{uuid.uuid4().hex}", publish=publish, **allowed)


@pytest.mark.parametrize(
    ("declared", "revisions"),
    [
        ({"merge": "first"}, {("a", 1), ("b", 1)}),
        ({"order": []}, {("a", 1), ("b", 3)}),
        ({"key": ["id", "revision"]}, {("a", 1), ("a", 2), ("b", 1), ("b", 3)}),
        ({"partition": {"field": "created_at", "by": "month"}}, {("a", 2), ("b", 3)}),
        ({"merge": "patch"}, {("a", 2), ("b", 3)}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_change_of_the_rules_stops_the_runs_until_the_table_is_made_anew(
    workshop: Make, declared: dict[str, Any], revisions: set[tuple[str, int]]
) -> None:
    old = workshop()
    old.merge(order("a", 2), order("a", 1), order("b", 1), order("b", 3))
    old.load()
    new = old.redeclared(**declared)
    new.publish(order("c", 1))
    new.extract()
    with pytest.raises(RebuildNeeded, match=f"its {next(iter(declared))} changed .* headrace rebuild {new.feed.name}"):
        new.transform("stops")
    seen = old.clean()
    assert not rebuilt(new, publish=False).published
    assert old.clean() == seen, "a dry run changes nothing for readers"
    done = rebuilt(new)
    assert done.published
    assert {(row["id"], row["revision"]) for row in new.clean()} == revisions | {("c", 1)}
    assert done.difference.counts["added"] >= 1
    new.merge(order("d", 1))
    assert ("d", 1) in {(row["id"], row["revision"]) for row in new.clean()}
    if "key" not in declared:
        assert new.load().whole
        assert new.reconcile().figures.rows == len(new.clean())


def test_a_rebuild_whose_checks_fail_leaves_readers_with_the_old_table(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1, price=Decimal("99.00")))
    strict = shop.redeclared(checks=[{"column": "price", "between": [0, 10]}])
    with pytest.raises(CheckError, match="price"):
        rebuilt(strict)
    assert [row["id"] for row in shop.clean()] == ["a"]


def test_nothing_archived_is_nothing_to_rebuild(workshop: Make) -> None:
    shop = workshop()
    assert rebuilt(shop) is None
    assert shop.lake.find(layout.clean_table(shop.feed.name)) is None


def test_a_table_is_not_made_anew_without_what_its_archive_has_dropped_unless_somebody_says_so(workshop: Make) -> None:
    shop = workshop({**ORDER, "retention": {"archive": "10d"}})
    shop.merge(replace(order("old", 1), timestamp=1_790_000_000_000), order("new", 1))
    assert of(kept(shop), "archive").dropped == 1
    with pytest.raises(RebuildRefused, match=r"retention\.archive.*--without-dropped"):
        rebuilt(shop)
    assert [row["id"] for row in shop.clean()] == ["new", "old"]
    assert rebuilt(shop, without_dropped=True).difference.counts["removed"] == 1
    assert [row["id"] for row in shop.clean()] == ["new"]


def test_a_patch_feeds_order_stays_for_neither_a_run_nor_a_rebuild_goes_on_with_another(workshop: Make) -> None:
    shop = workshop({**ORDER, "merge": "patch"})
    shop.merge(order("a", 1))
    other = shop.redeclared(order=["created_at"])
    other.publish(order("b", 1))
    other.extract()
    columns = shop.lake.find(layout.clean_table(shop.feed.name)).schema()
    for again in (lambda: other.transform("stops"), lambda: rebuilt(other)):
        with pytest.raises(RebuildRefused, match=r"order changed.*headrace new --breaks"):
            again()
    assert shop.lake.find(layout.clean_table(shop.feed.name)).schema() == columns
    shop.again()
    assert [row["id"] for row in shop.clean()] == ["a", "b"]


def test_another_sort_is_followed_by_the_next_run(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1), order("b", 1))
    other = shop.redeclared(sort=["price"])
    prices = {"c": "9.00", "d": "1.00", "e": "5.00"}
    other.merge(*(order(id_, 1, price=Decimal(price)) for id_, price in prices.items()))
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    (new,) = (task.file for task in table.scan("id >= 'c'").plan_files())
    rows = read(table, new.file_path)
    assert [row for row in rows if row in prices] == ["d", "e", "c"]


def test_a_rebuild_that_is_not_published_does_not_keep_its_partitions(workshop: Make) -> None:
    shop = workshop({**ORDER, "partition": {"field": "created_at", "by": "day"}})
    shop.merge(order("a", 1))
    before = shop.lake.find(layout.clean_table(shop.feed.name))
    other = shop.redeclared(partition={"field": "created_at", "by": "month"}, sort=["price"])
    assert not rebuilt(other, publish=False).published
    shop.merge(order("b", 1))
    after = shop.lake.find(layout.clean_table(shop.feed.name))
    assert after.spec().fields == before.spec().fields
    assert after.sort_order().fields == before.sort_order().fields
    assert {task.file.spec_id for task in after.scan().plan_files()} == {before.spec().spec_id}


def read(table: Any, path: str) -> list[str]:
    with table.io.new_input(path).open() as stream:
        found: list[str] = pq.read_table(stream, columns=["id"])["id"].to_pylist()
    return found
