"""Upkeep against a real S3 and catalog: orphans go, and nothing that an archive names or an extract may commit."""

import json
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from nursery import Nursery, errand
from planting import archive_table, plant
from typer.testing import CliRunner
from workshop import Record, Workshop

from headrace import layout
from headrace.cli import app
from headrace.errors import ForeignTable
from headrace.lake import Lake, heads_of
from headrace.stages import sweep, upkeep, verify
from headrace.stages.upkeep import Upkeep

Make = Callable[..., Workshop]

COMMIT = ("sql.commit", 0, "before")
"""Where an extract has put its files and all of Iceberg's, and only the catalog does not know of them yet."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


def kept(shop: Workshop, **more: bool) -> Upkeep:
    """Upkeep as it will be in two days."""
    return upkeep.upkeep(shop.feed, lake=shop.lake, clock=lambda now: now + timedelta(days=2), **more)


def keep_all(shop: Workshop) -> int:
    """Upkeep until nothing waits: S3 tells seconds, and what was put in the same second is spared once."""
    removed = 0
    while True:
        done = kept(shop)
        removed += done.removed
        if not any(each.young for each in done.swept):
            return removed


def lying(shop: Workshop, topic: str | None = None) -> set[str]:
    """The archive's Parquet files on S3."""
    bucket, _, prefix = f"{shop.lake.location.rstrip('/')}/".removeprefix("s3://").partition("/")
    pages = shop.lake.s3.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix=f"{prefix}archive/{topic or shop.feed.topic}/"
    )
    keys = (each["Key"] for page in pages for each in page.get("Contents", []))
    return {f"s3://{bucket}/{key}" for key in keys if key.endswith(".parquet")}


def named(shop: Workshop) -> set[str]:
    return {task.file.file_path for task in archive_table(shop).scan().plan_files()}


def is_equal(shop: Workshop) -> bool:
    done = verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka)
    return done.is_equal and not any(account.lag for account in done.accounts)


def orphaned(workshop: Make, nursery: Nursery) -> Workshop:
    """A feed with one file in its archive, and what an extract left that was killed just before its commit."""
    shop = workshop()
    shop.publish(Record(b"archived"))
    shop.extract()
    shop.publish(Record(b"orphaned"))
    assert nursery.run(errand(shop, point=COMMIT)).signal
    assert len(lying(shop)) == 2
    return shop


def test_what_a_killed_extract_left_is_removed_when_it_is_old(workshop: Make, nursery: Nursery) -> None:
    shop = orphaned(workshop, nursery)
    young = upkeep.upkeep(shop.feed, lake=shop.lake)
    assert (young.removed, young.fenced) == (0, False)
    assert young.swept[0].young == 1
    assert keep_all(shop) >= 3, "a data file, its manifest and its list, and the table's new metadata"
    assert lying(shop) == named(shop)
    shop.extract()
    assert is_equal(shop)
    again = kept(shop)
    assert (again.removed, again.fenced) == (0, False)


def test_a_dry_run_removes_and_commits_nothing(workshop: Make, nursery: Nursery) -> None:
    shop = orphaned(workshop, nursery)
    before, snapshot = lying(shop), archive_table(shop).current_snapshot()
    while (tried := kept(shop, dry_run=True)).swept[0].young:
        pass
    assert tried.swept[0].removed == 1
    assert tried.swept[0].first[0].endswith(".parquet")
    assert lying(shop) == before
    assert archive_table(shop).current_snapshot() == snapshot


def test_the_heads_stand_behind_a_fence(workshop: Make, nursery: Nursery) -> None:
    shop = orphaned(workshop, nursery)
    head = heads_of(archive_table(shop))
    assert keep_all(shop)
    assert heads_of(archive_table(shop)) == head
    assert shop.extract().records == 1


def test_a_feed_that_was_never_committed_is_fenced_too(workshop: Make, nursery: Nursery) -> None:
    shop = workshop()
    shop.publish(Record(b"x"))
    # The first commit makes the table, the second one is that of the files.
    assert nursery.run(errand(shop, point=("sql.commit", 1, "before"))).signal
    assert keep_all(shop)
    assert lying(shop) == set()
    assert shop.extract().records == 1
    assert is_equal(shop)


def test_a_feed_without_an_archive_has_nothing_to_keep(workshop: Make) -> None:
    done = kept(workshop())
    assert [each.kind for each in done.swept] == ["staged for warehouses", "staged for imports"]
    assert done.removed == 0


def test_a_file_that_only_an_older_snapshot_names_is_spared(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(b"x"), Record(b"y"))
    shop.extract()
    (old,) = named(shop)
    plant(shop, lambda rows: rows.slice(0, 1))
    assert old not in named(shop)
    soon = upkeep.upkeep(shop.feed, lake=shop.lake, clock=lambda now: now + timedelta(hours=12))
    assert old in lying(shop)
    assert not soon.fenced, "where nothing is to be removed, no extract is disturbed"
    later = kept(shop)
    assert (later.tables[0].expired, later.fenced) == (1, False)
    assert old not in lying(shop), "with the last snapshot that names it, it goes"


def test_files_of_another_feed_in_the_same_folder_are_spared(workshop: Make, nursery: Nursery) -> None:
    old = workshop({"key": ["id"], "order": ["revision"]})
    new = workshop({"key": ["id"], "order": ["revision"], "topic": {"drains": {"topic": old.feed.topic}}})
    old.publish(Record(b"x"))
    old.extract()
    assert nursery.run(errand(new, point=("sql.commit", 2, "before"))).signal
    assert len(lying(old)) == 2
    keep_all(old)
    assert len(lying(old)) == 2
    assert keep_all(new)
    assert lying(old) == named(old)
    new.extract()
    assert is_equal(new)
    keep_all(old)
    assert lying(old) == named(old) | named(new)


def pass_a_second(shop: Workshop) -> None:
    """S3 tells seconds: wait until what was put is older than now."""
    begun = sweep.s3_time(shop.lake)
    while sweep.s3_time(shop.lake) == begun:
        pass


def test_a_table_that_was_dropped_and_made_again_loses_nothing_to_upkeep(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(b"x"))
    shop.extract()
    shop.lake.catalog.drop_table(layout.archive_table(shop.feed.name))
    shop.extract()
    before = lying(shop)
    assert len(before) == 2
    pass_a_second(shop)
    for dry_run in (True, False):
        with pytest.raises(ForeignTable, match="dropped and made again"):
            kept(shop, dry_run=dry_run)
    assert lying(shop) == before


def test_a_catalog_that_was_restored_from_an_older_copy_loses_nothing_to_upkeep(workshop: Make) -> None:
    shop, states = workshop(), []
    for value in (b"backed up", b"not", b"not either"):
        shop.publish(Record(value))
        shop.extract()
        states.append(archive_table(shop).metadata_location)
    name = layout.archive_table(shop.feed.name)
    shop.lake.catalog.drop_table(name)
    shop.lake.catalog.register_table(name, states[0])
    pass_a_second(shop)
    with pytest.raises(ForeignTable, match="Register the table from its newest metadata file"):
        kept(shop)
    shop.lake.catalog.drop_table(name)
    shop.lake.catalog.register_table(name, states[-1])
    assert keep_all(shop) == 0
    assert is_equal(shop)


def test_a_lake_under_a_prefix_of_odd_characters_is_kept(workshop: Make, nursery: Nursery) -> None:
    made = workshop()
    lake = Lake(made.lake.name, f"{made.lake.location}/deep/a lake+1 & %20é/", made.lake.database, made.lake.storage)
    shop = replace(made, lake=lake)
    shop.publish(Record(b"archived"))
    shop.extract()
    shop.publish(Record(b"orphaned"))
    assert nursery.run(errand(shop, point=COMMIT)).signal
    assert len(lying(shop)) == 2
    assert keep_all(shop) >= 3
    assert lying(shop) == named(shop)
    assert shop.extract().records == 1
    assert keep_all(shop) == 0
    assert is_equal(shop)


def test_what_is_not_called_as_ours_is_spared_and_told(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(b"x"))
    shop.extract()
    table, (path,) = archive_table(shop), named(shop)
    # Of an old name that tells no feed nobody knows whose it is: two archives may have files in one folder.
    old, folder = f"{0:020d}-{0:020d}-{'a' * 12}.parquet", path.rpartition("/")[0]
    strangers = {f"{folder}/notes.parquet", path.replace(".parquet", ".copy.parquet"), f"{folder}/{old}"}
    for stranger in strangers:
        with table.io.new_output(stranger).create() as stream:
            stream.write(b"mine")
    keep_all(shop)
    assert strangers < lying(shop)
    assert kept(shop).swept[0].unknown == 3


def test_an_upload_that_was_never_finished_is_aborted(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(b"x"))
    shop.extract()
    bucket, key = "headrace", f"archive/{shop.feed.name}/metadata/half.avro"
    shop.lake.s3.create_multipart_upload(Bucket=bucket, Key=key)
    assert upkeep.upkeep(shop.feed, lake=shop.lake).swept[2].young == 1
    pass_a_second(shop)
    assert kept(shop).swept[2].first == [key]
    assert not shop.lake.s3.list_multipart_uploads(Bucket=bucket, Prefix=key).get("Uploads")


def test_many_orphans_go_in_several_calls(workshop: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "BATCH", 2)
    shop = workshop()
    shop.publish(Record(b"x"))
    shop.extract()
    (path,) = named(shop)
    bucket, _, key = path.removeprefix("s3://").partition("/")
    for number in range(5):
        name = f"{key.rpartition('/')[0]}/{number:020d}-{number:020d}-{shop.feed.name}.{number:012x}.parquet"
        shop.lake.s3.put_object(Bucket=bucket, Key=name, Body=b"")
    assert keep_all(shop) == 5
    assert lying(shop) == {path}


def test_several_at_once_and_an_extract_meanwhile_do_no_harm(workshop: Make, nursery: Nursery) -> None:
    shop = orphaned(workshop, nursery)
    with ThreadPoolExecutor(3) as pool:
        sweeping = [pool.submit(keep_all, shop) for _ in range(2)]
        extracting = pool.submit(shop.extract)
        assert sum(each.result() for each in sweeping)
        assert extracting.result().records == 1
    keep_all(shop)
    assert lying(shop) == named(shop)
    assert is_equal(shop)


def test_an_extract_that_sleeps_through_upkeep_cannot_commit_what_is_gone(workshop: Make, nursery: Nursery) -> None:
    shop = workshop()
    shop.publish(Record(b"archived"))
    shop.extract()
    shop.publish(Record(b"archived too"))
    # The last statement is the one that tells the catalog of the commit.
    statements = sum(name == "sql.execute" for name, *_ in nursery.run(errand(shop)).calls)
    shop.publish(Record(b"put, and then asleep"))
    point = ("sql.execute", statements - 1, "before")
    asleep = nursery.run(errand(shop, point=point, sign=signal.SIGSTOP))
    assert asleep.stopped
    assert len(lying(shop)) == 3
    assert keep_all(shop)
    assert lying(shop) == named(shop), "the sleeper's file is gone, and nobody else has committed a record"
    woken = nursery.wake(asleep.stopped)
    assert (woken.restarts, woken.records, woken.error) == (1, 1, "")
    assert is_equal(shop)


def test_the_command_tells_what_it_would_remove(
    workshop: Make, nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, runner = orphaned(workshop, nursery), CliRunner()
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    (tmp_path / f"{shop.feed.name}.avsc").write_text(json.dumps(shop.feed.schema))
    plain = runner.invoke(app, ["upkeep", shop.feed.name, "--dry-run"])
    assert plain.exit_code == 0, plain.output
    assert "would remove 0 objects" in plain.stdout
    told = json.loads(runner.invoke(app, ["upkeep", shop.feed.name, "--json", "--older-than", "7d"]).stdout)
    assert told["older_than"] == timedelta(days=7).total_seconds()
    assert told["tables"][0]["swept"][0]["young"] == 1
    short = runner.invoke(app, ["upkeep", shop.feed.name, "--older-than", "1h"])
    assert short.exit_code == 2
    assert "may take" in short.output
    assert len(lying(shop)) == 2


def test_the_allowed_age_is_longer_than_all_tries_of_a_run(workshop: Make) -> None:
    shop = workshop({"key": ["id"], "runs": {"time_limit": "2h", "retries": 3, "retry_delay": "5m"}})
    assert upkeep.allowed_age(shop.feed) == timedelta(hours=2 * 4 + 1, minutes=15)
