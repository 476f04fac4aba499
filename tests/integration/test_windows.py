"""Windows run again: what changed since is picked up, and where nothing changed nothing does."""

import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from keeping import kept, of
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace import layout
from headrace.lake import heads_of
from headrace.stages import release
from headrace.stages.release import Choice

Make = Callable[..., Workshop]
HOUR = 3_600_000
NOON = 1_790_000_400_000
CHEAP = {"column": "price", "between": [0, 10], "severity": "quarantine"}
WINDOW = (NOON, NOON + HOUR)


def order(id_: str, revision: int, *, price: str = "1.00", hour: int = 0, **others: Any) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal(price), "created_at": NOON, **others}
    value = {"status": "placed", "email": None, **row}
    return Record(value, key=id_, timestamp=NOON + hour * HOUR + 1)


def gone(id_: str, *, hour: int = 0) -> Record:
    return Record(None, key=id_, timestamp=NOON + hour * HOUR + 1)


def snapshot(shop: Workshop) -> Any:
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    return table.current_snapshot().snapshot_id, heads_of(table)


@pytest.mark.parametrize("merge", ["latest", "first", "patch"])
def test_a_window_that_runs_again_changes_nothing_when_nothing_changed(workshop: Make, merge: str) -> None:
    shop = workshop({**ORDER, "merge": merge})
    shop.merge(order("a", 1), order("b", 2), gone("b"), order("c", 1, hour=1), order("a", 3, hour=1))
    shop.merge(order("b", 3, hour=2), gone("c", hour=2))
    before, rows = snapshot(shop), shop.clean()
    accounts = shop.again(window=WINDOW)
    assert (accounts["read"], accounts["inserted"], accounts["updated"], accounts["deleted"]) == (3, 0, 0, 0)
    assert (snapshot(shop), shop.clean()) == (before, rows)


def test_a_mended_check_brings_a_windows_records_in_and_takes_a_tightened_ones_out(workshop: Make) -> None:
    shop = workshop({**ORDER, "checks": [CHEAP]})
    shop.merge(order("a", 1), order("a", 2, price="11.00"), order("b", 1, price="2.00"), order("b", 2, price="8.00"))
    shop.merge(order("c", 1, price="8.00"), order("d", 1, price="99.00", hour=1))
    mended = shop.redeclared(checks=[{**CHEAP, "between": [0, 20]}])
    assert mended.again(window=WINDOW)["updated"] == 1
    assert {row["id"]: row["revision"] for row in mended.clean()} == {"a": 2, "b": 2, "c": 1}
    assert mended.quarantine() == {(0, 5): "check"}, "another window's records are left alone"
    tight = mended.redeclared(checks=[{**CHEAP, "between": [0, 5]}])
    accounts = tight.again(window=WINDOW)
    assert (accounts["updated"], accounts["withdrawn"]) == (2, 1)
    assert {row["id"]: row["revision"] for row in tight.clean()} == {"a": 1, "b": 1}
    assert tight.quarantine() == dict.fromkeys([(0, 1), (0, 3), (0, 4), (0, 5)], "check")
    tight.load()
    assert tight.reconcile().figures.rows == 2
    loose = tight.redeclared(checks=[])
    loose.again(window=WINDOW)
    assert {row["id"]: row["revision"] for row in loose.clean()} == {"a": 2, "b": 2, "c": 1}
    loose.load()
    assert loose.reconcile().figures.rows == 3


def test_a_mended_schema_is_read_from_the_same_records(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1))
    fields = [*ORDER_FIELDS, {"name": "shop", "type": "string", "default": "north"}]
    new = shop.changed(*fields)
    new.merge(order("b", 1, shop="south"))
    new.again(window=WINDOW)
    assert {row["id"]: row["shop"] for row in new.clean()} == {"a": "north", "b": "south"}


def test_a_backfill_moves_no_heads_and_leaves_what_is_new_to_a_run(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1))
    shop.publish(order("b", 1))
    shop.extract()
    before = snapshot(shop)
    assert shop.again(window=WINDOW)["read"] == 1
    assert snapshot(shop) == before
    shop.again()
    assert {row["id"] for row in shop.clean()} == {"a", "b"}


@pytest.mark.parametrize("merge", ["latest", "first", "patch", "append"])
def test_a_table_made_anew_from_the_archive_is_the_same(workshop: Make, merge: str) -> None:
    declared = {key: value for key, value in ORDER.items() if merge != "append" or key != "order"}
    shop = workshop({**declared, "merge": merge})
    shop.merge(order("a", 1), order("b", 2), order("a", 3, price="3.00"))
    shop.merge(order("b", 3), order("c", 1), *([] if merge == "append" else [gone("c")]), Record(b"bad", key="x"))
    rows, rejected = shop.clean(), shop.quarantine()
    shop.load()
    assert shop.again(anew=True)["read"] == 6 + (merge != "append")
    assert (shop.clean(), shop.quarantine()) == (rows, rejected)
    assert shop.load().way == "whole"
    assert shop.reconcile().figures.rows == len(rows)


def test_what_says_the_same_still_does_under_a_new_version_of_the_schema(workshop: Make) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "count", "type": "int"}]
    old = workshop({"key": ["id"], "merge": "append"}, fields=fields)
    said = Record({"id": "a", "count": 1}, key="a", timestamp=NOON)
    old.merge(said)
    wider = [
        {"name": "count", "type": "long"},
        fields[0],
        {"name": "shop", "type": "string", "default": "north"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ]
    new = old.changed(*wider)
    before = snapshot(new)
    accounts = new.merge(Record({"id": "a", "count": 1, "shop": "north", "note": None}, key="a"))
    assert (accounts["duplicates"], accounts["quarantined"]) == (1, 0)
    assert snapshot(new)[0] != before[0], "its heads moved"
    assert new.again(window=WINDOW)["duplicates"] == 1
    assert new.clean() == [{"count": 1, "id": "a", "shop": "north", "note": None}]


def test_what_a_patch_has_of_dropped_records_outlives_a_window_that_runs_again(workshop: Make) -> None:
    now = int(time.time() * 1000)
    window = (now - HOUR, now + HOUR)
    shop = workshop({**ORDER, "merge": "patch", "retention": {"archive": "10d"}})

    def said(id_: str, revision: int, *, at: int, **others: Any) -> Record:
        return replace(order(id_, revision, **others), timestamp=at)

    shop.publish(said("a", 1, at=NOON, email="a@example.org"), said("b", 5, at=NOON), said("c", 1, at=now))
    shop.merge(said("a", 2, at=now, price="11.00"), replace(gone("b"), timestamp=now), said("c", 2, at=now))
    assert of(kept(shop), "archive").dropped == 1
    before = shop.clean()
    assert [(row["id"], row["email"]) for row in before] == [("a", "a@example.org"), ("c", None)]
    shop.again(window=window)
    assert shop.clean() == before
    tight = shop.redeclared(checks=[CHEAP])
    tight.again(window=window)
    assert {row["id"]: row["email"] for row in tight.clean()} == {"a": "a@example.org", "c": None}
    tight.redeclared(checks=[]).again(window=window)
    assert shop.clean() == before


def test_a_row_whose_record_was_dropped_is_not_displaced_in_an_append(workshop: Make) -> None:
    shop = workshop({"key": ["id"], "merge": "append", "checks": [CHEAP], "retention": {"archive": "10d"}})
    shop.merge(replace(order("a", 1, price="11.00"), timestamp=int(time.time() * 1000)), order("a", 2))
    assert of(kept(shop), "archive").dropped == 1
    loose = shop.redeclared(checks=[])
    release.release(loose.feed, lake=loose.lake, choice=Choice())
    loose.again()
    assert [row["revision"] for row in loose.clean()] == [2]
    assert loose.quarantine() == {(0, 0): "conflict"}


DELETES = {"delete": {"field": "status", "one_of": ["paid"]}}


@pytest.mark.parametrize(
    ("declared", "records"),
    [
        (DELETES, [order("a", 1), order("a", 2, price="11.00"), gone("a")]),
        ({}, [order("a", 9, price="11.00"), order("a", 3), gone("a"), order("a", 5)]),
    ],
    ids=["beside a delete condition", "overwritten since"],
)
def test_a_mended_version_does_not_bring_back_what_was_deleted_after_it(
    workshop: Make, declared: dict[str, Any], records: list[Record]
) -> None:
    shop = workshop({**ORDER, **declared, "checks": [CHEAP]})
    for each in records:
        shop.merge(each)
    mended = shop.redeclared(checks=[])
    release.release(mended.feed, lake=mended.lake, choice=Choice())
    mended.again()
    assert (mended.clean(), mended.quarantine()) == ([], {})
    assert mended.merge(order("a", 9), order("b", 1))["inserted"] == 2, "what came after the tombstone is not"


def test_a_version_that_is_rejected_now_no_longer_ranks_a_tombstone(workshop: Make) -> None:
    shop = workshop(ORDER)
    shop.merge(order("a", 9, price="11.00"), gone("a", hour=1), order("a", 3, hour=1))
    assert shop.clean() == []
    shop.redeclared(checks=[CHEAP]).again(window=WINDOW)
    assert {row["id"]: row["revision"] for row in shop.clean()} == {"a": 3}


def test_what_a_rejected_version_has_set_goes_from_a_patched_row(workshop: Make) -> None:
    shop = workshop({**ORDER, "merge": "patch"})
    shop.merge(order("a", 1, price="11.00", email="a@example.com"), order("a", 2, hour=1), order("b", 1))
    accounts = shop.redeclared(checks=[CHEAP]).again(window=WINDOW)
    assert (accounts["quarantined"], accounts["withdrawn"]) == (1, 1)
    assert {row["id"]: row["email"] for row in shop.clean()} == {"a": None, "b": None}
