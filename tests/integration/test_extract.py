"""Extract against a real broker, S3 and catalog: no loss, no duplicate, byte for byte."""

import itertools
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from raw_header import produce_with_header
from spark_reading import cluster_of
from workshop import Workshop

from headrace import archive, archive_file, layout
from headrace.archive import Archive
from headrace.errors import MovedError, PlanExpired, SparkFailed, TopicError, TopicMissing, TopicSilent
from headrace.heads import Heads
from headrace.kafka import plan, span, topic
from headrace.lake import heads_of
from headrace.stages import extract, verify
from headrace.stages.cluster import Cluster

Make = Callable[..., Workshop]

# A broker soon deletes what looks older than its retention time, so these are records of this hour.
NOW = int(time.time() * 1000)


LOG_APPEND = ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)


def archived(shop: Workshop) -> list[dict[str, Any]]:
    table = shop.lake.find(layout.archive_table(shop.feed.name))
    rows = table.scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def produce(shop: Workshop, *messages: dict[str, Any], **config: Any) -> None:
    producer, refused = Producer({**shop.kafka, **config}), []
    for message in messages:
        producer.produce(
            shop.feed.topic,
            **{"partition": 0, "timestamp": NOW, **message},
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    assert producer.flush(30) == 0
    assert not refused


def extracted_by(shop: Workshop, way: str, **limits: int) -> Any:
    """Extract in the task, or by Spark whatever number of records there is."""
    cluster = cluster_of(shop) if way == "by Spark" else None
    limits_ = extract.Limits(limits.get("records", 500_000), limits.get("bytes", 128 * 2**20))
    return extract.extract(shop.feed, lake=shop.lake, kafka=shop.kafka, limits=limits_, cluster=cluster)


WAYS = pytest.mark.parametrize("way", ["in the task", "by Spark"])


def messages_of(shop: Workshop) -> list[tuple[Any, ...]]:
    """A topic as an ordinary consumer sees it."""
    consumer = Consumer(
        {**shop.kafka, "group.id": "restored", "enable.partition.eof": True, "auto.offset.reset": "error"}
    )
    partitions = range(shop.feed.declaration.topic.partitions)
    consumer.assign([TopicPartition(shop.feed.topic, number, 0) for number in partitions])
    found, ended = [], 0
    while ended < len(partitions):
        for message in consumer.consume(100, timeout=1):
            if message.error() is not None:
                ended += 1
                continue
            found.append(
                (
                    message.partition(),
                    message.offset(),
                    message.timestamp(),
                    message.key(),
                    message.value(),
                    message.headers() or [],
                )
            )
    consumer.close()
    return sorted(found, key=lambda message: message[:2])


ODD: list[dict[str, Any]] = [
    {"key": b"k", "value": b"\x00\x01", "headers": [("a", b"\x00\xff"), ("b", None), ("a", b""), ("ä€", b"x")]},
    {"key": None, "value": None},
    {"key": b"", "value": b""},
    {"key": b"\xff\xfe", "value": None, "headers": [("only", None)]},
    {"value": b"of another hour", "timestamp": NOW - 3_600_000},
    {"value": b"from the future", "timestamp": NOW + 1_800_000},
    {"value": b"of long ago", "timestamp": 0},
    {"value": b"no header", "headers": []},
    {"key": b"large", "value": bytes(range(256)) * (2**16 - 8)},
]


@WAYS
def test_a_topic_restored_from_its_archive_is_the_same_byte_by_byte(workshop: Make, way: str) -> None:
    kept = {"topic": {"partitions": 2, "retention": "forever", "largest_message": "17 MiB"}}
    shop, other = (workshop({"key": ["id"], "order": ["revision"], **kept}) for _ in range(2))
    large = {"message.max.bytes": 17 * 2**20}
    produce(shop, *ODD, *({**message, "partition": 1} for message in reversed(ODD)), **large)
    produce(shop, *({"key": b"%d" % n, "value": b"v%d" % n, "partition": n % 2} for n in range(1000)))
    done = extracted_by(shop, way)
    assert done.records == 1000 + 2 * len(ODD)
    rows = archived(shop)
    restored = [
        {
            **{name: row[name] for name in ("partition", "timestamp", "key", "value")},
            "headers": [(each["name"], each["value"]) for each in row["headers"]],
        }
        for row in rows
    ]
    produce(other, *restored, **large)
    assert messages_of(other) == messages_of(shop)
    assert {row["timestamp_type"] for row in rows} == {"create"}
    assert {row["leader_epoch"] for row in rows} == ({0} if way == "in the task" else {None})


@WAYS
def test_timestamps_of_the_broker_are_told_apart(workshop: Make, way: str) -> None:
    shop = workshop()
    resource = ConfigResource(ResourceType.TOPIC, shop.feed.topic, incremental_configs=[LOG_APPEND])
    admin = AdminClient(dict(shop.kafka))
    (changed,) = admin.incremental_alter_configs([resource]).values()
    changed.result(30)
    produce(shop, {"value": b"x", "timestamp": 5})
    extracted_by(shop, way)
    (row,) = archived(shop)
    assert row["timestamp_type"] == "append"
    assert row["timestamp"] == messages_of(shop)[0][2][1] > NOW


def test_spark_duckdb_pyiceberg_and_any_parquet_reader_open_the_archive(workshop: Make, tmp_path: Path) -> None:
    from headrace.airflow import connections
    from headrace.lake import spark_properties
    from spark_jobs.session import session

    shop = workshop()
    produce(shop, *({"key": b"k", "value": b"v%d" % n, "headers": [("h", b"x")]} for n in range(100)))
    extracted_by(shop, "in the task", records=40)
    table = shop.lake.find(layout.archive_table(shop.feed.name))
    expected = [(n, b"v%d" % n) for n in range(100)]
    assert [(row["offset"], row["value"]) for row in archived(shop)] == expected
    with session(connections.spark_remote(), properties=spark_properties(shop.lake)) as spark:
        rows = spark.table(f"{shop.lake.name}.archive.{shop.feed.name}").orderBy("offset").collect()
    assert [(row["offset"], bytes(row["value"])) for row in rows] == expected
    query = 'select "offset", value from archive order by 1'
    assert table.scan().to_duckdb("archive").sql(query).fetchall() == expected
    paths = []
    for task in table.scan().plan_files():
        bucket, _, key = task.file.file_path.removeprefix("s3://").partition("/")
        paths.append(str(tmp_path / key.rsplit("/", 1)[1]))
        shop.lake.s3.download_file(bucket, key, paths[-1])
    read = duckdb.sql(f'select "offset", value from read_parquet({paths}) order by 1')
    assert read.fetchall() == expected
    assert sorted(offset for path in paths for offset in pq.read_table(path)["offset"].to_pylist()) == [*range(100)]
    assert {pq.read_metadata(path).row_group(0).column(6).compression for path in paths} == {"ZSTD"}


@WAYS
def test_a_span_of_holes_only_still_moves_the_heads(workshop: Make, way: str) -> None:
    shop = workshop()
    producer = Producer({**shop.kafka, "transactional.id": shop.feed.name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(shop.feed.topic, value=b"aborted", partition=0)
    producer.flush()
    producer.abort_transaction()
    done = extracted_by(shop, way)
    assert (done.records, done.files, done.heads.next[0]) == (0, 0, 2)
    assert heads_of(shop.lake.find(layout.archive_table(shop.feed.name))).next[0] == 2
    produce(shop, {"value": b"after"})
    assert extracted_by(shop, way).records == 1
    assert [(row["offset"], row["value"]) for row in archived(shop)] == [(2, b"after")]


def test_spark_reads_exactly_the_plan_around_holes_and_what_came_later(workshop: Make) -> None:
    shop = workshop()
    producer = Producer({**shop.kafka, "transactional.id": shop.feed.name})
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        producer.produce(shop.feed.topic, value=b"%d" % number, partition=0)
        producer.flush()
        producer.commit_transaction() if number % 2 == 0 else producer.abort_transaction()
    late: list[int] = []

    def run(asked: str) -> str:
        produce(shop, {"value": b"after the plan"})
        late.append(1)
        return cluster_of(shop).run(asked)

    limits = extract.Limits(500_000, 128 * 2**20)
    done = extract.extract(shop.feed, lake=shop.lake, kafka=shop.kafka, limits=limits, cluster=Cluster(run, 1))
    assert (done.records, late) == (3, [1])
    assert shop.extract().records == 1
    assert [row["value"] for row in archived(shop)] == [b"0", b"2", b"4", b"after the plan"]


def test_a_plan_below_the_switch_and_one_that_spark_fails_are_read_in_the_task(
    workshop: Make, caplog: pytest.LogCaptureFixture
) -> None:
    shop, asked = workshop(), []

    def fail(plan_: str) -> str:
        asked.append(plan_)
        raise SparkFailed("Spark is away")

    def extracted() -> Any:
        limits, cluster = extract.Limits(1000, 1 << 20), Cluster(fail, 5)
        return extract.extract(shop.feed, lake=shop.lake, kafka=shop.kafka, limits=limits, cluster=cluster)

    produce(shop, *({"value": b"x"} for _ in range(4)))
    assert (extracted().records, len(asked)) == (4, 0)
    produce(shop, *({"value": b"x"} for _ in range(5)))
    with caplog.at_level(logging.WARNING):
        assert (extracted().records, len(asked)) == (5, 1)
    assert "Spark is away" in caplog.text
    assert [row["offset"] for row in archived(shop)] == [*range(9)]


def test_an_extract_that_was_overtaken_starts_over_from_the_new_heads(
    workshop: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop = workshop()
    produce(shop, *({"value": b"x"} for _ in range(5)))
    rivals = [shop.extract]
    commit = Archive.commit

    def overtaken(self: Archive, files: Any, *, head: Heads) -> None:
        if rivals:
            rivals.pop()()
            produce(shop, {"value": b"later"})
        commit(self, files, head=head)

    monkeypatch.setattr(Archive, "commit", overtaken)
    with caplog.at_level(logging.INFO):
        assert shop.extract().records == 1
    assert "starting over" in caplog.text
    assert [row["offset"] for row in archived(shop)] == [*range(6)]


def test_a_plan_older_than_a_run_may_be_is_not_committed(workshop: Make) -> None:
    shop = workshop()
    produce(shop, {"value": b"x"})
    table = archive.archive_of(shop.feed, shop.lake)
    planned = plan.plan(heads_of(table), topic.describe(shop.kafka, shop.feed.topic), name="old")
    hour = timedelta(hours=1)
    old = Archive(shop.lake, table, shop.feed.topic, time_limit=hour, opened=archive.boot_time() - 3601)
    with pytest.raises(PlanExpired, match=r"runs\.time_limit") as raised:
        old.commit([], head=planned.heads)
    assert raised.value.retry
    assert shop.extract().records == 1


def test_a_run_whose_time_is_up_commits_what_it_has_read_and_the_next_goes_on(
    workshop: Make, caplog: pytest.LogCaptureFixture
) -> None:
    shop = workshop({"key": ["id"], "topic": {"partitions": 2}})
    produce(shop, *({"value": b"x", "partition": number % 2} for number in range(60_000)))
    caplog.set_level("INFO", "headrace.stages.extract")
    seen, silent = 0, 0
    while seen < 60_000:
        try:
            done = ended_early(shop)
        except TopicSilent:  # the broker was slower than eight looks at the clock
            silent += 1
            assert silent < 50, "it does not get on"
            continue
        seen += done.records
        assert sum(done.heads.next.values()) == seen, "the heads say what was read"
    assert "are left for the next run" in caplog.text, "eight batches are at most 40,000 records"
    rows = sorted((row["partition"], row["offset"]) for row in archived(shop))
    assert rows == [(partition, offset) for partition in range(2) for offset in range(30_000)]


def test_spark_reads_a_backlog_in_steps_each_with_its_commit(workshop: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = workshop({"key": ["id"], "topic": {"partitions": 2}})
    produce(shop, *({"value": b"x", "partition": number % 2} for number in range(10)))
    monkeypatch.setattr(extract, "SPARK_RECORDS", 6)
    done = extracted_by(shop, "by Spark")
    assert (done.records, done.heads.next) == (10, {0: 5, 1: 5})
    assert sorted((row["partition"], row["offset"]) for row in archived(shop)) == [
        (partition, offset) for partition in range(2) for offset in range(5)
    ]
    table = shop.lake.find(layout.archive_table(shop.feed.name))
    assert len(table.metadata.snapshots) == 2


def ended_early(shop: Workshop) -> Any:
    """An extract by whose clock half an hour is over after it was looked at eight times."""
    return extract.extract(
        shop.feed,
        lake=shop.lake,
        kafka=shop.kafka,
        limits=extract.Limits(500_000, 128 * 2**20),
        clock=itertools.count(step=225).__next__,
    )


def test_a_header_whose_name_is_no_utf_8_keeps_no_record_out_of_the_archive(
    workshop: Make, caplog: pytest.LogCaptureFixture
) -> None:
    shop = workshop()
    produce(shop, {"value": b"before", "headers": [("h", b"x")]})
    produce_with_header(shop.kafka, shop.feed.topic, b"\xff\xfe", value=b"odd")
    with caplog.at_level(logging.WARNING):
        assert shop.extract().records == 2
    assert "offset 1: a header's name is not UTF-8" in caplog.text
    before, odd = archived(shop)
    assert before["headers"] == [{"name": "h", "value": b"x"}]
    assert (odd["value"], odd["headers"]) == (b"odd", [{"name": "\ufffd", "value": None}])


def test_what_spark_archived_of_headers_that_our_client_cannot_read_is_no_difference(workshop: Make) -> None:
    shop = workshop()
    produce(shop, {"value": b"before", "headers": [("h", b"x")]})
    produce_with_header(shop.kafka, shop.feed.topic, b"\xff\xfe", value=b"odd")
    assert extracted_by(shop, "by Spark").records == 2
    before, odd = archived(shop)
    assert before["headers"] == [{"name": "h", "value": b"x"}]
    assert [each["value"] for each in odd["headers"]] == [b"v"]
    done = verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka)
    assert done.is_equal
    assert sum(account.equal for account in done.accounts) == 2


def test_a_file_is_never_overwritten_but_may_be_put_again_as_it_is(workshop: Make) -> None:
    shop = workshop()
    path = f"s3://headrace/archive/{shop.feed.topic}/put"
    archive_file.put(shop.lake.s3, path, b"first")
    archive_file.put(shop.lake.s3, path, b"first")
    for other in (b"other", b"longer than it"):
        with pytest.raises(ClientError, match=r"PreconditionFailed|412"):
            archive_file.put(shop.lake.s3, path, other)
    kept = shop.lake.s3.get_object(Bucket="headrace", Key=f"archive/{shop.feed.topic}/put")["Body"].read()
    assert kept == b"first"


def test_an_envelope_keeps_key_value_headers_and_timestamp_as_they_came(workshop: Workshop) -> None:
    shop = workshop()
    headers = [("trace", b"\x00\xff"), ("trace", None), ("empty", b"")]
    produce(
        shop,
        {"key": b"k", "value": b"\x00\x01", "headers": headers, "timestamp": NOW + 123},
        {"key": None, "value": None},
        {"key": b"", "value": b""},
        {"value": b"late", "timestamp": 1},
    )
    shop.extract()
    first, tombstone, empty, unplaced = archived(shop)
    assert (first["key"], first["value"], first["timestamp"]) == (b"k", b"\x00\x01", NOW + 123)
    assert [(each["name"], each["value"]) for each in first["headers"]] == headers
    assert first["timestamp_type"] == "create"
    assert (tombstone["key"], tombstone["value"]) == (None, None)
    assert (empty["key"], empty["value"]) == (b"", b"")
    assert (unplaced["timestamp"], unplaced["hour"]) == (1, None)


def test_extracting_again_adds_nothing(workshop: Workshop) -> None:
    shop = workshop()
    produce(shop, *({"value": bytes([number])} for number in range(100)))
    assert shop.extract().records == 100
    assert shop.extract().records == 0
    assert [row["offset"] for row in archived(shop)] == list(range(100))


def test_files_lie_by_topic_partition_date_hour_and_offsets(workshop: Workshop) -> None:
    shop = workshop()
    produce(shop, {"value": b"a"}, {"value": b"b"})
    shop.extract()
    table = shop.lake.find(layout.archive_table(shop.feed.name))
    (task,) = table.scan().plan_files()
    hour = datetime.fromtimestamp(NOW / 1000, UTC).strftime("%Y-%m-%d/%H")
    prefix = f"s3://headrace/archive/{shop.feed.topic}/0/{hour}/{0:020d}-{1:020d}-"
    assert task.file.file_path.startswith(prefix)
    assert task.file.file_path.endswith(".parquet")


def test_of_two_extracts_that_planned_from_one_snapshot_only_one_lands(workshop: Workshop) -> None:
    shop = workshop()
    produce(shop, *({"value": bytes([number])} for number in range(10)))
    limits = extract.Limits(1000, 1 << 20)
    rivals = []
    for name in ("one", "two"):
        table = archive.archive_of(shop.feed, shop.lake)
        planned = plan.plan(heads_of(table), topic.describe(shop.kafka, shop.feed.topic), name=name)
        rival = Archive(shop.lake, table, shop.feed.topic)
        batches = span.read(shop.kafka, shop.feed.topic, spans=planned.spans)
        files = rival.file(batches, plan=name, limits=limits)
        rivals.append((rival, files, planned.heads))
    (winner, files, heads), (loser, late_files, late_heads) = rivals
    winner.commit(files, head=heads)
    with pytest.raises(MovedError, match="another extract committed first"):
        loser.commit(late_files, head=late_heads)
    assert [row["offset"] for row in archived(shop)] == list(range(10))


def test_records_of_an_aborted_transaction_are_not_archived(workshop: Workshop) -> None:
    shop = workshop()
    producer = Producer({**shop.kafka, "transactional.id": shop.feed.name})
    producer.init_transactions()
    for value, finish in ((b"kept", "commit"), (b"aborted", "abort"), (b"kept too", "commit")):
        producer.begin_transaction()
        producer.produce(shop.feed.topic, value=value, partition=0)
        producer.flush()
        producer.commit_transaction() if finish == "commit" else producer.abort_transaction()
    assert shop.extract().records == 2
    assert [row["value"] for row in archived(shop)] == [b"kept", b"kept too"]
    assert shop.extract().records == 0


def make_again(shop: Workshop) -> None:
    """Make a deleted topic; the broker says that it exists until it is gone, and then knows it only after a moment."""
    while not topic.ensure_all(shop.kafka, [shop.feed])[shop.feed.name].created:
        pass
    while shop.feed.topic not in AdminClient(dict(shop.kafka)).list_topics(timeout=30).topics:
        pass


def test_a_topic_that_was_deleted_and_made_again_stops_the_feed(workshop: Workshop) -> None:
    shop = workshop()
    produce(shop, {"value": b"a"})
    shop.extract()
    admin = AdminClient(dict(shop.kafka))
    admin.delete_topics([shop.feed.topic])[shop.feed.topic].result(30)
    make_again(shop)
    with pytest.raises(TopicError, match="deleted and made again"):
        shop.extract()


def test_a_feed_that_is_not_registered_yet_says_so_and_may_be_tried_again(workshop: Make) -> None:
    shop = workshop()
    with pytest.raises(TopicMissing, match="headrace register") as raised:
        topic.describe(shop.kafka, "not_registered")
    assert raised.value.retry


def test_a_small_file_limit_makes_more_files_of_the_same_records(workshop: Workshop) -> None:
    shop = workshop()
    produce(shop, *({"value": bytes(100)} for _ in range(50)))
    done = extract.extract(shop.feed, lake=shop.lake, kafka=shop.kafka, limits=extract.Limits(7, 1 << 20))
    assert (done.records, done.files) == (50, 8)
    assert [row["offset"] for row in archived(shop)] == list(range(50))


def test_progress_is_shown_to_lag_tools_as_a_consumer_group(workshop: Workshop) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions

    shop = workshop()
    produce(shop, *({"value": b"x"} for _ in range(5)))
    head: Heads = shop.extract().heads
    admin = AdminClient(dict(shop.kafka))
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(f"headrace.{shop.feed.name}")])
    (answer,) = asked.values()
    reached = {each.partition: each.offset for each in answer.result(30).topic_partitions}
    assert reached == head.next


def test_lag_tools_are_told_again_when_nothing_is_new(workshop: Workshop) -> None:
    """Whoever committed may have died before it told, and Kafka forgets an idle group."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    shop = workshop()
    produce(shop, {"value": b"x"})
    head: Heads = shop.extract().heads
    admin, group = AdminClient(dict(shop.kafka)), f"headrace.{shop.feed.name}"
    admin.delete_consumer_groups([group])[group].result(30)
    assert shop.extract().records == 0
    (answer,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    assert {each.partition: each.offset for each in answer.result(30).topic_partitions} == head.next
