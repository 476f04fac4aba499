"""Upkeep of the clean table and of quarantine, and what a feed's retention drops: rows and heads stay as they were."""

import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest
from keeping import clean_table, is_equal, kept, of, quarantine_table, row, spark_of
from planting import archive_table
from pyiceberg.table import Table
from workshop import ORDER, Record, Workshop

from headrace import layout
from headrace.dropped import dropped_of
from headrace.errors import RebuildNeeded, RebuildRefused, SparkFailed
from headrace.lake import heads_of
from headrace.lease import Leases, turn
from headrace.stages import carrying, compaction, upkeep, verify

Make = Callable[..., Workshop]

HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def two_small_files_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run costs seconds: two of them must do."""
    monkeypatch.setattr(compaction, "INPUTS", 2)


def rows(table: Table) -> list[tuple[Any, ...]]:
    """Every row with all its hidden columns."""
    return sorted((tuple(each.values()) for each in table.scan().to_arrow().to_pylist()), key=repr)


def lying(shop: Workshop, folder: str) -> set[str]:
    bucket, _, prefix = folder.removeprefix("s3://").partition("/")
    pages = shop.lake.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/")
    keys = {each["Key"] for page in pages for each in page.get("Contents", [])}
    return {f"s3://{bucket}/{key}" for key in keys if not key.endswith("/")}


def live(table: Table) -> set[str]:
    return {task.file.file_path for task in table.scan().plan_files()}


def test_compact_expire_to_one_snapshot_roll_back_and_run(workshop: Make) -> None:
    shop = workshop()
    for number in (2, 1):
        shop.merge(row(f"a{number}"), row(f"b{number}"), Record(b"broken"))
    before, head, rejected = rows(clean_table(shop)), heads_of(clean_table(shop)), rows(quarantine_table(shop))

    done = kept(shop, days=30)
    assert [each.left for each in done.tables] == [[], [], []]
    assert [of(done, name).after.files for name in ("clean", "quarantine")] == [1, 1]
    for table in (archive_table(shop), clean_table(shop), quarantine_table(shop)):
        assert len(table.metadata.snapshots) == 1
    assert (rows(clean_table(shop)), rows(quarantine_table(shop))) == (before, rejected)
    assert heads_of(clean_table(shop)) == head
    summary = clean_table(shop).current_snapshot().summary.additional_properties  # type: ignore[union-attr]
    assert json.loads(summary[carrying.PROPERTY])["compacted"]["files"] >= 2
    for table in (clean_table(shop), quarantine_table(shop)):
        (file,) = live(table)
        assert lying(shop, f"{table.location()}/data") == {file}, "what only expired snapshots named is gone"
    (file,) = live(clean_table(shop))
    with clean_table(shop).io.new_input(file).open() as stream:
        assert pq.read_table(stream)["id"].to_pylist() == ["a1", "a2", "b1", "b2"], "in the order of the key"
    again = kept(shop, days=30)
    assert (again.removed, [(each.compacted, each.expired) for each in again.tables]) == (0, [(0, 0)] * 3)

    (state,) = clean_table(shop).metadata.snapshots
    shop.merge(row("a1", 2), row("c"))
    clean_table(shop).manage_snapshots().rollback_to_snapshot(state.snapshot_id).commit()
    assert heads_of(clean_table(shop)) == head
    shop.run()
    assert [each["id"] for each in shop.clean()] == ["a1", "a2", "b1", "b2", "c"]
    assert is_equal(shop)


@pytest.mark.parametrize(
    ("declared", "other", "refused"),
    [
        (ORDER, {"merge": "first"}, RebuildNeeded),
        ({**ORDER, "merge": "patch"}, {"order": ["created_at"]}, RebuildRefused),
    ],
    ids=["merge", "order"],
)
def test_rows_are_not_merged_by_other_rules_when_every_run_that_made_them_has_expired(
    workshop: Make, declared: dict[str, Any], other: dict[str, Any], refused: type[Exception]
) -> None:
    shop = workshop(declared)
    for name in "ab":
        shop.merge(row(name))
    kept(shop, days=30)
    assert len(clean_table(shop).metadata.snapshots) == 1
    changed = shop.redeclared(**other)
    changed.publish(row("c"))
    changed.extract()
    with pytest.raises(refused, match=f"its {next(iter(other))} changed"):
        changed.transform("stops")
    shop.again()
    assert [each["id"] for each in shop.clean()] == ["a", "b", "c"]


def test_a_warehouse_does_not_take_compacted_rows_for_changed_and_may_lag_for_a_while(workshop: Make) -> None:
    shop = workshop()
    for name in "ab":
        shop.merge(row(name))
    shop.load()
    held = clean_table(shop).current_snapshot().snapshot_id  # type: ignore[union-attr]
    assert of(kept(shop), "clean").compacted >= 2
    assert clean_table(shop).current_snapshot().snapshot_id != held  # type: ignore[union-attr]
    shop.merge(row("c"))
    kept(shop, days=20, recorded={held})
    loaded = shop.load()
    assert (loaded.staged, loaded.whole) == (1, False)
    shop.reconcile()
    kept(shop, days=40, recorded={held})
    assert clean_table(shop).snapshot_by_id(held) is None


def test_it_gives_way_to_a_run_and_to_one_that_waits_for_approval(workshop: Make) -> None:
    shop = workshop()
    for name in "ab":
        shop.merge(row(name))
    shop.publish(row("c"))
    shop.extract()
    shop.transform("dead")
    branch, leases = layout.branch("dead"), Leases(shop.lake.database)
    lease, approval = layout.lease(layout.clean_table(shop.feed.name)), layout.approval_lease(shop.feed.name)
    with turn(leases, lease, holder="a run", doing="transform", patience=timedelta()):
        left = of(kept(shop, days=3), "clean")
        assert (left.compacted, left.expired) == (0, 0)
        assert "a run has the turn for transform" in left.left[0]
    with turn(leases, approval, holder="a run", doing="approve", patience=timedelta()):
        left = of(kept(shop, days=3), "clean")
        assert (left.compacted, left.branches) == (0, [])
        assert "a run waits for approval" in left.left[0]
    assert of(kept(shop), "clean").branches == [], "it may be alive"
    assert of(kept(shop, days=3, dry_run=True), "clean").branches == [branch]

    def away(plan: str) -> str:
        raise SparkFailed("Spark gave up: it is away")

    done = of(kept(shop, days=3, spark=away), "clean")
    assert done.branches == [branch]
    kept(shop, days=30)
    assert lying(shop, f"{clean_table(shop).location()}/data") == live(clean_table(shop)), "its files are gone too"
    assert leases.holder(lease) is None
    shop.run()
    assert len(shop.clean()) == 3


class Killed(BaseException):
    """As a signal ends a process: nothing of upkeep's own goes on."""


def test_killed_between_compaction_and_the_heads_it_goes_on_the_next_time(workshop: Make) -> None:
    shop = workshop()
    for name in "ab":
        shop.merge(row(name))
    before, head = rows(clean_table(shop)), heads_of(clean_table(shop))

    def killed(plan: str) -> str:
        spark_of(shop)(plan)
        raise Killed

    def away(plan: str) -> str:
        raise SparkFailed("Spark gave up: it is away")

    left = of(kept(shop, spark=away), "clean")
    assert (left.left, left.compacted) == (["Spark gave up: it is away"], 0)
    with pytest.raises(Killed):
        kept(shop, days=30, spark=killed)
    assert not carrying.has_heads(clean_table(shop))
    assert (rows(clean_table(shop)), heads_of(clean_table(shop))) == (before, head)
    done = of(kept(shop, days=30), "clean")
    assert (done.left, done.compacted, done.after.snapshots) == ([], 0, 1)
    assert carrying.has_heads(clean_table(shop))
    assert (rows(clean_table(shop)), heads_of(clean_table(shop))) == (before, head)


def test_records_past_their_retention_go_once_they_are_merged(workshop: Make) -> None:
    shop = workshop({**ORDER, "retention": {"archive": "10d", "quarantine": "20d"}})
    now = int(time.time() * 1000)
    old = now - 30 * 24 * HOUR_MS
    shop.publish(row("a", at=old), row("b", at=now), row("c", at=old), row("d", at=now), Record(b"broken"))
    shop.extract()
    assert of(kept(shop), "archive").dropped == 0, "the clean table has not merged it yet"
    shop.transform("first")
    shop.publish_run("first")
    head = heads_of(archive_table(shop))
    assert of(kept(shop, dry_run=True), "archive").dropped == 1
    assert of(kept(shop), "archive").dropped == 1
    assert archive_table(shop).scan().to_arrow()["offset"].to_pylist() == [1, 3, 4]
    assert heads_of(archive_table(shop)) == head
    assert dropped_of(archive_table(shop)).of(0) == [(0, 3)]
    found = verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka)
    assert found.is_equal
    assert {each.kind for account in found.accounts for each in account.findings} == {"dropped"}
    assert len(shop.quarantine()) == 1

    kept(shop, days=2)
    folder = f"{shop.lake.location.rstrip('/')}/archive/{shop.feed.topic}/0"
    assert lying(shop, folder) == live(archive_table(shop)), "its file is gone"
    kept(shop, days=25)
    assert archive_table(shop).scan().to_arrow().num_rows == 0
    assert shop.quarantine() == {}
    shop.merge(row("e"))
    assert len(shop.clean()) == 5, "no row of clean is ever dropped"
    assert is_equal(shop)


def test_what_it_did_stands_in_its_log_and_in_the_snapshots(
    workshop: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(carrying, "MANY", 1)
    shop = workshop({**ORDER, "retention": {"archive": "10d"}})
    shop.merge(row("a", at=int(time.time() * 1000) - 30 * 24 * HOUR_MS), row("b"))
    for name in "cd":
        shop.merge(row(name))
    caplog.set_level("INFO", logger=upkeep.__name__)
    archive, clean, *_ = kept(shop).tables
    dropped, gathered = told(archive_table(shop))
    assert dropped["dropped"] == archive.dropped == 1
    assert gathered["manifests"] > archive.after.manifests
    assert told(clean_table(shop))[0]["compacted"]["files"] == clean.compacted >= 2
    assert {str(archive), str(clean)} <= set(caplog.messages)
    assert "1 files past retention dropped" in str(archive)
    assert f"manifests {archive.before.manifests} → {archive.after.manifests}" in str(archive)


def told(table: Table) -> list[dict[str, Any]]:
    """What the snapshots say that upkeep did, from the first on."""
    summaries = (each.summary.additional_properties for each in table.metadata.snapshots if each.summary)
    return [json.loads(each[carrying.PROPERTY]) for each in summaries if carrying.PROPERTY in each]


def test_what_a_killed_run_of_spark_left_goes_when_it_is_old(workshop: Make) -> None:
    shop = workshop()
    shop.merge(row("a"), Record(b"broken"))
    tables = {"clean": clean_table(shop), "quarantine": quarantine_table(shop)}
    for table in tables.values():
        for name in ("00000-7-3f2504e0-4f89-41d3-9a0c-0305e82c3301-0-00001.parquet", "notes.parquet"):
            with table.io.new_output(f"{table.location()}/data/{name}").create() as stream:
                stream.write(b"left")
    assert kept(shop).removed == 0
    done = kept(shop, days=2)
    while any(each.young for each in done.swept):  # S3 tells seconds: what was put in the one of now waits
        done = kept(shop, days=2)
    for name, table in tables.items():
        assert of(done, name).swept[0].unknown == 1
        left = lying(shop, f"{table.location()}/data") - live(table)
        assert {path.rpartition("/")[2] for path in left} == {"notes.parquet"}
