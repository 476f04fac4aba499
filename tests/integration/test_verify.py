"""Verify against a real topic and archive: it says equal when they are, and finds each fault that was planted."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import planting
import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from forwarder import Forwarder
from planting import altered, archive_table, plant
from typer.testing import CliRunner
from workshop import Record, Workshop

from headrace import heads
from headrace.cli import app
from headrace.errors import ServiceAway
from headrace.findings import Finding
from headrace.heads import Heads
from headrace.lake import heads_of
from headrace.losses import PROPERTY, Loss, to_json
from headrace.stages import verify
from headrace.stages.verify import Verification

Make = Callable[..., Workshop]

NOW = int(time.time() * 1000)
HEADERS = [("a", b"1"), ("a", None), ("b", b"\xff")]


def verified(shop: Workshop) -> Verification:
    return verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka)


def filled(workshop: Make, declaration: dict[str, Any] | None = None) -> Workshop:
    """Twenty records in partition 0 and five in partition 1, archived in two extracts."""
    shop = workshop({"key": ["id"], **(declaration or {})})
    for each in range(2):
        records = [Record(b"v%d" % n, key=f"k{n}", headers=HEADERS, timestamp=NOW + n) for n in range(10)]
        shop.publish(*records, *(Record(b"w", partition=1) for _ in range(each * 5)))
        shop.extract()
    return shop


def found(shop: Workshop) -> dict[str, list[Finding]]:
    """What differs, by kind."""
    done = verified(shop)
    every = [finding for account in done.accounts for finding in account.findings]
    assert done.is_equal == (not every)
    return {kind: [each for each in every if each.kind == kind] for kind in {each.kind for each in every}}


def places(findings: list[Finding]) -> list[tuple[int, int, int]]:
    return [(each.partition, each.first, each.next) for each in findings]


def test_an_archive_that_holds_its_topic_is_equal(workshop: Make) -> None:
    shop = filled(workshop)
    shop.publish(Record(b"later"))
    done = verified(shop)
    assert done.is_equal
    assert [(each.equal, each.records, each.archived, each.lag) for each in done.accounts] == [
        (20, 20, (0, 20), 1),
        (5, 5, (0, 5), 0),
        (0, 0, None, 0),
    ]


def test_a_feed_that_was_never_extracted_only_lags(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(b"x"), Record(b"y"))
    done = verified(shop)
    assert done.is_equal
    assert done.accounts[0].lag == 2


def test_a_gap_is_found(workshop: Make) -> None:
    shop = filled(workshop)
    plant(shop, lambda rows: rows.filter([row not in (3, 4, 7) for row in range(len(rows))]))
    faults = found(shop)
    assert places(faults["gap"]) == [(0, 3, 5), (0, 7, 8)]
    # The names of planted files tell that they are not what extract wrote; nothing else is wrong.
    assert faults.keys() == {"gap"}


def test_a_file_that_is_gone_is_found(workshop: Make) -> None:
    shop = filled(workshop)
    table = archive_table(shop)
    table.io.delete(planting.files(table)[0].file_path)
    faults = found(shop)
    assert places(faults["gap"]) == [(0, 0, 10)]
    assert ["the file is not there" in each.about for each in faults["file"]] == [True]


def test_a_file_that_is_cut_off_is_found(workshop: Make) -> None:
    shop = filled(workshop)
    table = archive_table(shop)
    path = planting.files(table)[0].file_path
    with table.io.new_output(path).create(overwrite=True) as stream:
        stream.write(b"PAR1 and then nothing")
    faults = found(shop)
    assert places(faults["gap"]) == [(0, 0, 10)]
    assert ["cannot be read" in each.about for each in faults["file"]] == [True]


def test_an_s3_that_goes_away_meanwhile_is_no_difference(workshop: Make) -> None:
    shop = filled(workshop)
    forwarder = Forwarder(int(shop.lake.storage.endpoint.rpartition(":")[2]))
    reached = replace(shop.lake.storage, endpoint=f"http://127.0.0.1:{forwarder.port}")
    forwarder.before(b".parquet")
    with pytest.raises(ServiceAway, match="S3 at"):
        verified(replace(shop, lake=replace(shop.lake, storage=reached)))


def test_a_double_is_found(workshop: Make) -> None:
    shop = filled(workshop)
    plant(shop, lambda rows: rows.take([*range(len(rows)), 5]))
    faults = found(shop)
    assert places(faults["double"]) == [(0, 5, 6)]
    assert faults.keys() == {"double"}


def test_a_file_that_was_committed_twice_is_found(workshop: Make) -> None:
    shop = filled(workshop)
    table = archive_table(shop)
    planting.replace(table, planting.files(table)[1])
    assert places(found(shop)["double"]) == [(0, offset, offset + 1) for offset in range(10, 20)]


REORDERED = [{"name": "a", "value": None}, {"name": "a", "value": b"1"}, {"name": "b", "value": b"\xff"}]
NOT_NULL = [{"name": "a", "value": b"1"}, {"name": "a", "value": b""}, {"name": "b", "value": b"\xff"}]
ALTERED: dict[int, tuple[str, Any]] = {
    1: ("value", b"v"),
    2: ("value", None),
    3: ("key", b""),
    4: ("headers", REORDERED),
    5: ("headers", NOT_NULL),
    6: ("timestamp", NOW + 5),
    7: ("timestamp_type", "append"),
}


def test_altered_bytes_are_found_with_the_part_that_differs(workshop: Make) -> None:
    shop = filled(workshop)

    def change(rows: pa.Table) -> pa.Table:
        for at, (column, value) in ALTERED.items():
            rows = altered(rows, column, at=at, value=value)
        return rows

    plant(shop, change)
    faults = found(shop)
    assert {each.first: each.about for each in faults["altered"]} == {at: name for at, (name, _) in ALTERED.items()}
    assert faults.keys() == {"altered"}


def test_a_record_in_the_wrong_partition_is_found(workshop: Make) -> None:
    shop = filled(workshop)
    plant(shop, lambda rows: altered(rows, "partition", at=6, value=1))
    faults = found(shop)
    assert places(faults["misplaced"]) == [(0, 6, 7)]
    assert "not of partition 0" in faults["misplaced"][0].about
    assert places(faults["gap"]) == [(0, 6, 7)]
    assert "partition runs from 0 to 1" in faults["file"][0].about


def test_a_record_in_the_wrong_hour_is_found(workshop: Make) -> None:
    shop = filled(workshop)
    hour = datetime.fromtimestamp(NOW // 3_600_000 * 3600, UTC) - timedelta(hours=1)
    plant(shop, lambda rows: altered(rows, "hour", at=2, value=hour))
    faults = found(shop)
    assert places(faults["misplaced"]) == [(0, 2, 3)]
    assert "another hour by its own hour" in faults["misplaced"][0].about


def test_a_timestamp_of_another_hour_than_its_file_is_found(workshop: Make) -> None:
    shop = filled(workshop)
    plant(shop, lambda rows: altered(rows, "timestamp", at=2, value=NOW - 2 * 3_600_000))
    assert "another hour by its timestamp" in found(shop)["misplaced"][0].about


def test_statistics_that_hide_rows_are_found(workshop: Make) -> None:
    shop = filled(workshop)
    last = planting.files(archive_table(shop))[0].upper_bounds
    plant(shop, lambda rows: rows, claims={"upper_bounds": {**last, 2: (8).to_bytes(8, "little")}})
    faults = found(shop)
    assert places(faults["gap"]) == [(0, 9, 10)]
    assert any("offset runs from 0 to 9, but its manifest says 0 to 8" in each.about for each in faults["file"])


def test_a_manifest_that_miscounts_is_found(workshop: Make) -> None:
    shop = filled(workshop)
    plant(shop, lambda rows: rows, claims={"record_count": 11})
    assert ["10 rows, but its manifest says 11" in each.about for each in found(shop)["file"]] == [True]


def test_rows_past_the_head_are_found(workshop: Make) -> None:
    shop = filled(workshop)
    table = archive_table(shop)
    head = heads_of(table)
    behind = Heads(head.topic_id, {**head.next, 0: 15})
    with (
        table.transaction() as transaction,
        transaction.update_snapshot(snapshot_properties={heads.PROPERTY: behind.to_json()}).fast_append(),
    ):
        pass
    assert places(found(shop)["ahead"]) == [(0, 15, 20)]


def test_a_head_past_the_newest_record_is_a_gap(workshop: Make) -> None:
    shop = filled(workshop)
    shop.publish(Record(b"skipped"), Record(b"skipped"))
    table = archive_table(shop)
    head = heads_of(table)
    early = Heads(head.topic_id, {**head.next, 0: 22})
    with (
        table.transaction() as transaction,
        transaction.update_snapshot(snapshot_properties={heads.PROPERTY: early.to_json()}).fast_append(),
    ):
        pass
    assert places(found(shop)["gap"]) == [(0, 20, 22)]


def test_what_the_broker_has_no_more_is_looked_over_in_the_archive_alone(workshop: Make) -> None:
    shop = filled(workshop)
    plant(shop, lambda rows: rows.take([0, 1, 2, 2, 3, 6, 7, 8, 9]))
    delete_before(shop, 12)
    done = verified(shop)
    account = done.accounts[0]
    assert places([each for each in account.findings if each.kind == "hole"]) == [(0, 4, 6)]
    assert places([each for each in account.findings if each.kind == "double"]) == [(0, 2, 3)]
    assert (account.counts["gap"], account.equal, account.on_broker) == (0, 8, (12, 20))


def test_what_the_broker_deleted_before_it_was_archived_is_found_until_somebody_accepts_it(workshop: Make) -> None:
    shop = filled(workshop)
    shop.publish(*(Record(b"late", partition=0) for _ in range(10)))
    delete_before(shop, 25)
    assert places(found(shop)["deleted"]) == [(0, 20, 25)]


def test_an_archive_that_has_lost_its_oldest_files_says_so_when_the_broker_has_them_no_more(workshop: Make) -> None:
    shop = filled(workshop)
    table = archive_table(shop)
    planting.replace(table, without=[*planting.files(table, 0)[:1], *planting.files(table, 1)])
    for partition, offset in ((0, 15), (1, 5)):
        delete_before(shop, offset, partition=partition)
    holes = [each for account in verified(shop).accounts for each in account.findings if each.kind == "hole"]
    assert places(holes) == [(0, 0, 10), (1, 0, 5)]


def test_an_archive_that_began_late_misses_nothing_before(workshop: Make) -> None:
    shop = workshop({"key": ["id"]})
    shop.publish(*(Record(b"v", partition=0) for _ in range(10)))
    delete_before(shop, 4)
    shop.extract()
    delete_before(shop, 8)
    shop.extract()
    done = verified(shop)
    assert [each for account in done.accounts for each in account.findings] == []
    assert heads_of(archive_table(shop)).first == {0: 4}


def delete_before(shop: Workshop, offset: int, *, partition: int = 0) -> None:
    """What retention does, at once."""
    admin = AdminClient(dict(shop.kafka))
    (answer,) = admin.delete_records([TopicPartition(shop.feed.topic, partition, offset)]).values()
    answer.result(30)


def test_a_loss_that_was_accepted_is_shown_and_no_gap(workshop: Make) -> None:
    shop = filled(workshop)
    plant(shop, lambda rows: rows.take([0, 1, 2, 3, 4, 9]))
    delete_before(shop, 12)
    lost = Loss(0, 6, 9, at="2026-01-01T00:00:00+00:00", by="ada", why="a test")
    with archive_table(shop).transaction() as transaction:
        transaction.set_properties({PROPERTY: to_json([lost])})
    done = verified(shop)
    assert done.is_equal
    assert places([each for each in done.accounts[0].findings if each.kind == "lost"]) == [(0, 6, 9)]
    assert places([each for each in done.accounts[0].findings if each.kind == "hole"]) == [(0, 5, 6)]


def test_aborted_and_committed_transactions_are_equal(workshop: Make) -> None:
    shop = workshop()
    producer = Producer({**shop.kafka, "transactional.id": shop.feed.name})
    producer.init_transactions()
    for value in (b"kept", b"aborted", b"kept too"):
        producer.begin_transaction()
        producer.produce(shop.feed.topic, value=value, partition=0)
        producer.flush()
        producer.abort_transaction() if value == b"aborted" else producer.commit_transaction()
    shop.extract()
    done = verified(shop)
    assert done.is_equal
    assert (done.accounts[0].equal, done.accounts[0].head) == (2, 6)


def test_a_record_that_the_topic_never_had_is_surplus(workshop: Make) -> None:
    shop = filled(workshop)
    producer = Producer({**shop.kafka, "transactional.id": shop.feed.name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(shop.feed.topic, value=b"x", partition=0)
    producer.commit_transaction()
    shop.extract()
    # The transaction's mark is at offset 21, where no record can be; the first file is made to claim it.
    shop.publish(Record(b"after the mark"))
    shop.extract()
    plant(shop, lambda rows: altered(rows, "offset", at=0, value=21), claims=reaching(shop, 21))
    faults = found(shop)
    assert places(faults["surplus"]) == [(0, 21, 22)]
    assert places(faults["gap"]) == [(0, 0, 1)]


def reaching(shop: Workshop, last: int) -> dict[str, Any]:
    bounds = planting.files(archive_table(shop))[0].upper_bounds
    return {"upper_bounds": {**bounds, 2: last.to_bytes(8, "little")}}


def test_what_compaction_dropped_since_is_told_and_no_difference(workshop: Make) -> None:
    shop = workshop({"key": ["id"], "topic": {"partitions": 1, "compaction": True}})
    compact_soon(shop)
    for round_ in range(3):
        shop.publish(*(Record(b"%d" % round_, key=f"k{each}") for each in range(5)))
        shop.extract()
        time.sleep(0.2)  # The broker rolls a segment when a record comes after its time.
    deadline = time.monotonic() + 90
    while not (account := verified(shop).accounts[0]).counts["compacted"]:
        assert time.monotonic() < deadline, "the broker did not compact"
        shop.publish(Record(b"roll", key="roll"))
    assert account.differences == 0
    assert account.records == 15


def compact_soon(shop: Workshop) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    settings = {"min.cleanable.dirty.ratio": "0.001", "segment.ms": "100", "max.compaction.lag.ms": "100"}
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, shop.feed.topic, incremental_configs=entries)
    admin = AdminClient(dict(shop.kafka))
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(30)


def test_a_drained_topic_is_compared_too(workshop: Make) -> None:
    old = workshop({"key": ["id"], "order": ["revision"]})
    new = workshop({"key": ["id"], "order": ["revision"], "topic": {"drains": {"topic": old.feed.topic}}})
    old.publish(Record(b"one"), Record(b"two"), Record(b"three", partition=2))
    new.publish(Record(b"four"))
    new.extract()
    done = verified(new)
    assert done.is_equal
    assert {(each.topic, each.partition): each.equal for each in done.accounts if each.equal} == {
        (new.feed.topic, 0): 1,
        (old.feed.topic, -1): 2,
        (old.feed.topic, -3): 1,
    }
    plant(new, lambda rows: altered(rows, "value", at=1, value=b"too"), partition=-1)
    (finding,) = found(new)["altered"]
    assert (finding.partition, finding.first) == (-1, 1)
    assert str(finding) == "altered: partition 0 of the drained topic, offset 1: value"
    plant(new, lambda rows: rows.slice(1), partition=-1)
    assert places(found(new)["gap"]) == [(-1, 0, 1)]


def test_the_command_tells_coordinates_and_never_a_value(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = filled(workshop)
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    (tmp_path / f"{shop.feed.name}.avsc").write_text(json.dumps(shop.feed.schema))
    command, runner = ["verify", shop.feed.name, "--archive"], CliRunner()
    clean = runner.invoke(app, command)
    assert clean.exit_code == 0, clean.output
    assert "equal" in clean.stdout
    plant(shop, lambda rows: altered(rows, "value", at=4, value=b"secret"))
    differs = runner.invoke(app, command)
    assert differs.exit_code == 1
    assert "altered: partition 0 offset 4: value" in differs.stdout
    assert "secret" not in differs.output
    told = json.loads(runner.invoke(app, [*command, "--json"]).stdout)
    assert told["equal"] is False
    assert told["partitions"][0]["counts"] == {"altered": 1}
    assert runner.invoke(app, command[:2]).exit_code == 2
