"""Rebuild: after a change of the rules the runs stop, and the table is made anew from the archive."""

import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import sql
from workshop import Record, Workshop

from headrace import layout
from headrace.airflow import connections
from headrace.errors import CheckError, RebuildNeeded

Make = Callable[..., Workshop]


def order(id_: str, revision: int, **others: Any) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal("1.00"), "created_at": 1_790_000_000_000}
    return Record({"status": "placed", "email": None, **row, **others}, key=id_)


def rebuilt(shop: Workshop, *, publish: bool = True) -> Any:
    from headrace.airflow import rebuild

    return rebuild.rebuild(shop.feed, run=f"rebuild_{uuid.uuid4().hex}", publish=publish)


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
        view = sql.Identifier(f"{new.feed.name}_seen")
        with psycopg.connect(connections.warehouse("finance").database.url(), autocommit=True) as analyst:
            made = sql.SQL("create view {} as select id, revision from {}").format(view, sql.Identifier(new.feed.name))
            analyst.execute(made)
            assert new.load().way == "whole"
            seen_there = set(analyst.execute(sql.SQL("select * from {}").format(view)).fetchall())
        assert seen_there == {(row["id"], row["revision"]) for row in new.clean()}, "views live on"
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
