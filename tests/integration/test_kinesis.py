"""A feed of a Kinesis stream against moto's server: no loss, no duplicate, byte for byte; then as with any topic."""

import json
import logging
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from botocore.config import Config
from run_context import run_context
from stream_shop import StreamShop, client_of, counting, kinesis_server, later, refusing, shard_id, stream_shop
from typer.testing import CliRunner
from workshop import ORDER, Record

from headrace import archive, layout
from headrace.archive import Archive
from headrace.cli import app
from headrace.declaration import Kinesis
from headrace.errors import MovedError, RecordsLost, SettingsError, TopicError, TopicMissing, TopicSilent
from headrace.filing import Limits
from headrace.heads import Heads
from headrace.kinesis import calls, shard
from headrace.kinesis.pages import Bounds, Pages
from headrace.kinesis.plan import plan, reached
from headrace.kinesis.stream import describe
from headrace.lake import heads_of
from headrace.stages import loss, upkeep, verify

Make = Callable[..., StreamShop]

UNORDERED = {"key": ["id"]}
SIMPLE = [{"name": "id", "type": "string"}, {"name": "version", "type": "long"}]
LIMITS = Limits(1000, 1 << 20)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with kinesis_server() as url:
        yield url


@pytest.fixture
def shop(stack: Any, server: str) -> Make:
    return lambda *args, **kwargs: stream_shop(server, *args, **kwargs)


def order(id_: str, revision: int) -> dict[str, Any]:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    return {
        "id": id_,
        "revision": revision,
        "status": "paid",
        "price": Decimal("1.50"),
        "email": None,
        "created_at": made,
    }


def in_order(rows: list[dict[str, Any]]) -> bool:
    """Whether offsets are dense, and rise with the sequence numbers, in every shard."""
    shards = defaultdict(list)
    for row in rows:
        shards[row["partition"]].append(row)
    return all(
        [row["offset"] for row in each] == list(range(len(each)))
        and [row["sequence"] for row in each] == sorted((row["sequence"] for row in each), key=shard.rank)
        for each in shards.values()
    )


def test_an_envelope_keeps_the_data_the_partition_key_and_the_place_in_the_stream(shop: Make) -> None:
    one = shop()
    datas = [b"\x00\xff\xfe binary", b"", "ünïcode".encode()]
    placed = [one.put(data, key="schlüssel-✓") for data in datas]
    one.extract()
    rows = one.archived()
    assert [(row["partition"], row["sequence"]) for row in rows] == placed
    assert [row["value"] for row in rows] == datas
    assert {row["key"] for row in rows} == {"schlüssel-✓".encode()}
    assert {(row["timestamp_type"], row["leader_epoch"]) for row in rows} == {("append", None)}
    assert not any(row["headers"] for row in rows)
    age = datetime.now(UTC).timestamp() * 1000 - rows[0]["timestamp"]
    assert 0 <= age < 600_000
    assert in_order(rows)


def test_extracting_again_adds_nothing_and_going_on_adds_what_is_new(shop: Make) -> None:
    one = shop(shards=3)
    published = {one.put(str(number).encode(), key=f"key-{number}") for number in range(40)}
    assert one.extract().records == 40
    snapshot = one.lake.find(layout.archive_table(one.feed.name)).current_snapshot()
    assert one.extract().records == 0
    assert one.lake.find(layout.archive_table(one.feed.name)).current_snapshot() == snapshot
    published |= {one.put(str(number).encode(), key=f"key-{number}") for number in range(40, 60)}
    assert one.extract().records == 20
    rows = one.archived()
    assert {(row["partition"], row["sequence"]) for row in rows} == published
    assert len(rows) == 60
    assert in_order(rows)


def await_next_second(one: StreamShop) -> None:
    """Wait until the service's clock, which tells seconds, is past what was put."""
    begun = describe(one.kinesis, one.stream).at
    while describe(one.kinesis, one.stream).at == begun:
        pass


def test_files_lie_by_stream_shard_date_hour_and_offsets(shop: Make) -> None:
    one = shop()
    one.put(b"a")
    one.put(b"b")
    one.extract()
    (row, _), table = one.archived(), one.lake.find(layout.archive_table(one.feed.name))
    (task,) = table.scan().plan_files()
    hour = datetime.fromtimestamp(row["timestamp"] / 1000, UTC).strftime("%Y-%m-%d/%H")
    prefix = f"s3://headrace/archive/{one.stream}/0/{hour}/{0:020d}-{1:020d}-{one.feed.name}."
    assert task.file.file_path.startswith(prefix)


def by_hand(one: StreamShop) -> tuple[Archive, Any, Any]:
    """An extract up to its commit."""
    name = layout.plan(one.feed.name, nonce=uuid.uuid4().hex)
    table = archive.archive_of(one.feed, one.lake)
    assert one.feed.declaration.kinesis
    found, declared = describe(one.kinesis, one.stream), one.feed.declaration.kinesis
    planned = plan(heads_of(table), found, name=name, feed=one.feed.name, declared=declared)
    pages, rival = Pages(one.kinesis, planned, Bounds(1000, 60)), Archive(one.lake, table, one.stream)
    files = rival.file((page.batch for page in pages), plan=name, limits=LIMITS)
    return rival, files, reached(planned, pages.positions)


def test_an_extract_that_died_between_its_files_and_its_commit_is_as_if_it_had_not_been(shop: Make) -> None:
    one = shop(shards=2)
    for number in range(10):
        one.put(bytes([number]), key=str(number))
    _, files, _ = by_hand(one)
    assert files
    one.put(b"later")
    assert one.extract().records == 11
    assert len(one.archived()) == 11
    assert in_order(one.archived())
    await_next_second(one)  # S3's clock tells seconds too.
    swept = upkeep.upkeep(one.feed, lake=one.lake, clock=lambda now: now + timedelta(days=1)).swept
    assert {each.kind: each.removed for each in swept}["data files"] == len(files)
    assert one.extract().records == 0
    assert len(one.archived()) == 11
    assert verify.verify(one.feed, lake=one.lake, kafka={}).is_equal


def test_of_two_extracts_that_planned_from_one_snapshot_only_one_lands(shop: Make) -> None:
    one = shop(shards=2)
    for number in range(10):
        one.put(bytes([number]), key=str(number))
    rivals = [by_hand(one) for _ in range(2)]
    (winner, files, heads), (loser, late_files, late_heads) = rivals
    winner.commit(files, head=heads)
    with pytest.raises(MovedError, match="another extract committed first"):
        loser.commit(late_files, head=late_heads)
    assert len(one.archived()) == 10
    assert in_order(one.archived())


@pytest.mark.parametrize("runs", ["one", "several"])
def test_a_split_and_a_merge_are_followed_and_the_last_version_of_a_key_wins(shop: Make, runs: str) -> None:
    one = shop(UNORDERED, fields=SIMPLE)
    keys = [f"key-{number}" for number in range(8)]
    steps: list[Callable[[], None]] = [lambda: None, lambda: one.split(0), lambda: one.merge_shards(1, 2)]
    for version, reshard in enumerate(steps):
        reshard()
        one.publish(*(Record({"id": key, "version": version}) for key in keys))
        if runs == "several":
            assert one.extract().records == len(keys)
    one.extract()
    rows = one.archived()
    assert {row["partition"] for row in rows} == {0, 1, 2, 3}
    assert len(rows) == 3 * len(keys)
    assert in_order(rows)
    head = heads_of(one.lake.find(layout.archive_table(one.feed.name)))
    assert {number: known.ended for number, known in head.shards.heads.items()} == {0: True, 1: True, 2: True, 3: False}
    run = uuid.uuid4().hex
    one.transform(run)
    one.publish_run(run)
    assert one.clean() == [{"id": key, "version": 2} for key in keys]


def test_no_child_is_read_before_its_parent_has_ended_however_many_runs_that_takes(shop: Make) -> None:
    one = shop()
    one.put_many(shard.PAGE_RECORDS + 500)
    one.split(0)
    child, _ = one.put(b"newest")
    assert one.extract(records=1).records == shard.PAGE_RECORDS
    assert {row["partition"] for row in one.archived()} == {0}
    assert one.extract(records=1).records == 500
    assert {row["partition"] for row in one.archived()} == {0}
    assert one.extract(records=1).records == 1
    rows = one.archived()
    assert [row["partition"] for row in rows if row["value"] == b"newest"] == [child]
    assert in_order(rows)


def test_a_run_that_leaves_something_to_the_next_one_knows_it(shop: Make) -> None:
    one = shop()
    one.put_many(shard.PAGE_RECORDS + 1)
    await_next_second(one)
    planned = plan(Heads(), describe(one.kinesis, one.stream), name="p", feed="f", declared=Kinesis())
    for bounds, short in ((Bounds(10, 60), True), (Bounds(20_000, 0), True), (Bounds(20_000, 60), False)):
        pages = Pages(one.kinesis, planned, bounds)
        assert sum(page.batch.num_rows for page in pages) == pages.records
        assert pages.is_short == short


def test_a_first_start_at_latest_is_pinned_though_nothing_came_by_then(shop: Make) -> None:
    one = shop(start="LATEST")
    one.put(b"old")
    await_next_second(one)
    assert one.extract().records == 0
    one.put(b"between the first run and the second")
    one.split(0)
    one.put(b"in a child")
    assert one.extract().records == 2
    assert [row["value"] for row in one.archived()] == [b"between the first run and the second", b"in a child"]
    assert one.extract().records == 0


def test_an_expired_iterator_is_renewed_from_the_last_record(shop: Make) -> None:
    one = shop()
    one.put_many(shard.PAGE_RECORDS + 20)
    await_next_second(one)
    seen = counting(one.kinesis, "GetShardIterator")
    left = refusing(one.kinesis, "GetRecords", "ExpiredIteratorException", None, "ExpiredIteratorException")
    assert one.extract().records == shard.PAGE_RECORDS + 20
    assert not left
    rows = one.archived()
    last = rows[shard.PAGE_RECORDS - 1]["sequence"]
    starts = [(each["ShardIteratorType"], each.get("StartingSequenceNumber")) for each in seen]
    assert starts == [("TRIM_HORIZON", None), ("TRIM_HORIZON", None), ("AFTER_SEQUENCE_NUMBER", last)]
    assert [row["value"] for row in rows] == [str(number).encode() for number in range(shard.PAGE_RECORDS + 20)]
    assert in_order(rows)


def test_iterators_that_keep_expiring_are_an_error_that_a_retry_may_mend(shop: Make) -> None:
    one = shop()
    refusing(one.kinesis, "GetRecords", *["ExpiredIteratorException"] * 3)
    with pytest.raises(TopicSilent, match="iterators of shard 0 expire"):
        one.extract()


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "LimitExceededException"])
def test_limits_are_waited_for(shop: Make, code: str) -> None:
    one = shop()
    one.put(b"a")
    left = refusing(one.kinesis, "GetRecords", *[code] * 4)
    assert one.extract().records == 1
    assert not left


def test_limits_that_do_not_end_are_an_error_that_a_retry_may_mend(shop: Make) -> None:
    one = shop()
    refusing(one.kinesis, "ListShards", *["LimitExceededException"] * 20)
    with pytest.raises(TopicSilent, match=r"Kinesis limits ListShards \(LimitExceededException\)") as raised:
        calls.ask(one.kinesis.list_shards, stream=one.stream, pauses=(0, 0), StreamName=one.stream)
    assert raised.value.retry


def test_a_stream_that_was_deleted_and_made_again_stops_the_feed(shop: Make) -> None:
    one = shop()
    one.put(b"a")
    one.extract()
    one.kinesis.delete_stream(StreamName=one.stream)
    with pytest.raises(TopicMissing, match=r"AWS has none of that name there.*kinesis.stream"):
        one.extract()
    one.kinesis.create_stream(StreamName=one.stream, ShardCount=1)
    with pytest.raises(TopicError, match="deleted and made again"):
        one.extract()


def test_a_stream_that_is_made_again_while_it_is_read_is_not_archived(shop: Make) -> None:
    one = shop()
    one.put(b"a")

    def make_again(**_: Any) -> None:
        one.kinesis.meta.events.unregister("after-call.kinesis.GetRecords", make_again)
        one.kinesis.delete_stream(StreamName=one.stream)
        one.kinesis.create_stream(StreamName=one.stream, ShardCount=1)

    one.kinesis.meta.events.register("after-call.kinesis.GetRecords", make_again)
    with pytest.raises(TopicError, match="deleted and made again"):
        one.extract()
    assert one.archived() == []


def test_keys_that_aws_refuses_point_to_the_connection(shop: Make) -> None:
    one = shop()
    refusing(one.kinesis, "DescribeStreamSummary", "AccessDeniedException")
    with pytest.raises(SettingsError, match=r"AWS refuses DescribeStreamSummary .*headrace_kinesis"):
        one.extract()


def test_a_service_that_is_away_is_an_error_that_a_retry_may_mend(shop: Make) -> None:
    one = shop()
    refusing(one.kinesis, "GetRecords", *["InternalFailure"] * 3, status=500)
    with pytest.raises(TopicSilent, match="GetRecords failed with InternalFailure"):
        one.extract()
    nobody = client_of("http://127.0.0.1:9")
    with pytest.raises(TopicSilent, match="Kinesis gives no answer") as raised:
        describe(nobody, one.stream)
    assert raised.value.retry
    assert one.extract().records == 0


def test_retention_that_may_have_overtaken_us_stops_the_feed(shop: Make) -> None:
    one = shop()
    one.put(b"a")
    one.extract()
    mended = later(one.kinesis, timedelta(hours=25))
    with pytest.raises(RecordsLost, match=r"keeps records for 24 hours.*shard 0 after 20.*Kinesis does not tell"):
        one.extract()
    mended()
    assert one.extract().records == 0


def test_a_shard_whose_turn_came_too_late_is_left_to_the_next_run_which_tells_the_loss(shop: Make) -> None:
    one = shop()
    one.put(b"a")
    one.extract()
    one.put(b"b")
    mended = later(one.kinesis, timedelta(hours=25), "GetRecords")
    assert one.extract().records == 0, "something before b may be gone by now"
    mended()
    later(one.kinesis, timedelta(hours=25))
    with pytest.raises(RecordsLost, match="shard 0 after 20"):
        one.extract()


def test_a_loss_is_accepted_and_the_feed_goes_on(shop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = shop()
    one.put(b"a")
    one.extract()
    later(one.kinesis, timedelta(hours=25))
    with pytest.raises(RecordsLost, match=f"headrace accept-loss {one.feed.name}"):
        one.extract()
    lost, rival = (loss.find_in_stream(one.feed, lake=one.lake, kinesis=one.kinesis) for _ in range(2))
    assert lost is not None
    assert rival is not None
    assert set(lost.places) == {0}
    loss.accept(lost, at="2026-11-18", by="Ada", why="a test")
    with pytest.raises(MovedError, match="Look again"):
        loss.accept(rival, at="2026-11-18", by="Bob", why="a test")
    assert loss.find_in_stream(one.feed, lake=one.lake, kinesis=one.kinesis) is None
    one.put(b"b")
    assert one.extract().records == 1
    assert [row["offset"] for row in one.archived()] == [0, 1]
    (known,) = loss.known(one.feed, lake=one.lake)
    assert (known.partition, known.count, known.by) == (0, 0, "Ada")
    (tmp_path / one.feed.file).write_text(json.dumps(one.feed.schema), encoding="utf-8")
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_KINESIS", json.dumps(connection(one)))
    assert "unknown" in CliRunner().invoke(app, ["losses", one.feed.name], catch_exceptions=False).output
    shown = CliRunner().invoke(app, ["losses", one.feed.name, "--json"], catch_exceptions=False)
    assert json.loads(shown.stdout)[0]["between"] == known.between
    nothing = CliRunner().invoke(app, ["accept-loss", one.feed.name, "--why", "a test"], catch_exceptions=False)
    assert (nothing.exit_code, nothing.stdout) == (0, f"feed {one.feed.name}: nothing is lost, and nothing was done\n")


def connection(one: StreamShop) -> dict[str, Any]:
    extra = {"region_name": "eu-west-1", "endpoint_url": one.url}
    return {"conn_type": "aws", "login": "key", "password": "secret", "extra": extra}


def test_a_quiet_stream_that_is_looked_at_in_time_has_lost_nothing(shop: Make) -> None:
    one = shop()
    one.put(b"a")
    one.extract()
    for hours in (20, 40, 60):
        mended = later(one.kinesis, timedelta(hours=hours))
        assert one.extract().records == 0
        mended()
    assert len(one.archived()) == 1


def test_many_shards_most_of_them_empty_are_read_once_each(shop: Make) -> None:
    one = shop(shards=30)
    published = {one.put(str(number).encode(), key=f"key-{number}") for number in range(60)}
    one.extract()
    assert {(row["partition"], row["sequence"]) for row in one.archived()} == published
    assert in_order(one.archived())
    assert one.extract().records == 0
    empty = shop(shards=3)
    assert empty.extract().records == 0
    assert empty.archived() == []


def test_a_run_that_meets_its_bound_leaves_no_shard_behind_for_good(shop: Make) -> None:
    one = shop(shards=12)
    busy = [f"key-{number}" for number in range(200)]
    places = {key: one.put(b"x", key=key)[0] for key in busy}
    assert set(places.values()) == set(range(12))
    one.extract(records=1)
    first = {row["partition"] for row in one.archived()}
    assert len(first) < 12, "eight shards are read at once"
    for key in busy:
        one.put(b"y", key=key)
    one.extract(records=1)
    assert {row["partition"] for row in one.archived()} == set(range(12))


def test_shards_are_listed_page_by_page(shop: Make) -> None:
    one = shop(shards=5)
    small = lambda params, **_: {**params, "MaxResults": 2}  # noqa: E731 -- an event handler
    one.kinesis.meta.events.register("provide-client-params.kinesis.ListShards", small)
    assert set(describe(one.kinesis, one.stream).shards) == {0, 1, 2, 3, 4}


def test_large_records_come_whole(shop: Make) -> None:
    one = shop()
    datas = [bytes([number]) * (1024 * 1024 - 1) for number in range(12)] + [b"x" * (10 * 1024 * 1024 - 1)]
    for data in datas:
        one.put(data)
    assert one.extract().records == len(datas)
    assert [row["value"] for row in one.archived()] == datas


def test_a_record_of_the_stream_reaches_the_warehouse_and_an_aggregate_goes_to_quarantine(
    shop: Make, caplog: pytest.LogCaptureFixture
) -> None:
    one = shop(ORDER, shards=2)
    one.publish(*(Record(order(f"o-{number}", revision)) for number in range(10) for revision in (2, 1)))
    packed = one.put(b"\xf3\x89\x9a\xc2" + b"packed", key="o-1")
    with caplog.at_level(logging.WARNING, "headrace.stages.stream"):
        one.extract()
    assert "1 records are aggregates of the Kinesis Producer Library" in caplog.text
    run = uuid.uuid4().hex
    assert one.transform(run)["quarantined"] == 1
    one.check(run)
    one.publish_run(run)
    (place,) = one.quarantine()
    assert one.quarantine()[place] == "unframed"
    assert place[0] == packed[0]
    assert [(row["id"], row["revision"]) for row in one.clean()] == [(f"o-{number}", 2) for number in range(10)]
    one.load()
    assert one.reconcile().figures.rows == 10
    assert one.extract().records == 0
    assert one.transform(uuid.uuid4().hex) is None


def test_registering_a_feed_of_a_stream_makes_no_topic(shop: Make) -> None:
    from confluent_kafka.admin import AdminClient

    from headrace.airflow import connections, registration

    one, kafka = shop(), connections.kafka()
    (done,) = registration.register([one.feed], store=connections.registry(), kafka=kafka)
    assert done.is_good
    assert done.id == one.schema_id
    assert one.stream not in AdminClient(dict(kafka)).list_topics(timeout=30).topics


def test_a_task_extracts_through_the_airflow_connection(
    shop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.airflow import tasks

    one = shop({"key": ["id"], "order": ["revision"]})
    path = tmp_path / one.feed.file
    path.write_text(json.dumps(one.feed.schema), encoding="utf-8")
    with run_context(one.feed.name):
        with pytest.raises(AirflowFailException, match="Airflow has no connection headrace_kinesis"):
            tasks.extract(str(path))
        monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_KINESIS", json.dumps(connection(one)))
        assert tasks.extract(str(path)) is False, "an empty stream leaves nothing to merge"
        assert one.transform("first") is None
        one.publish(Record(order("o-1", 1)))
        assert tasks.extract(str(path)) is True
        assert len(one.archived()) == 1
        one.merge()
        assert tasks.extract(str(path)) is False


def test_shard_ids_are_as_aws_writes_them() -> None:
    assert shard_id(7) == "shardId-000000000007"


def test_a_clients_own_retries_stay_few_so_that_ours_decide() -> None:
    assert isinstance(calls.CONFIG, Config)
    assert calls.CONFIG.retries["total_max_attempts"] == 3
