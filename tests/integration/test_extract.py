"""Extract against a real broker, S3 and catalog: no loss, no duplicate, byte for byte."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from workshop import Workshop

from headrace import archive, layout
from headrace.archive import Archive
from headrace.errors import MovedError, TopicError, TopicMissing
from headrace.heads import Heads
from headrace.kafka import span, topic
from headrace.lake import heads_of
from headrace.stages import extract

Make = Callable[..., Workshop]

# A broker soon deletes what looks older than its retention time, so these are records of this hour.
NOW = int(time.time() * 1000)


def archived(shop: Workshop) -> list[dict[str, Any]]:
    table = shop.lake.find(layout.archive_table(shop.feed.name))
    rows = table.scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def produce(shop: Workshop, *messages: dict[str, Any], **config: Any) -> None:
    producer = Producer({**shop.kafka, **config})
    for message in messages:
        producer.produce(shop.feed.topic, **{"partition": 0, "timestamp": NOW, **message})
    assert producer.flush(30) == 0


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
        plan = extract.plan(heads_of(table), topic.describe(shop.kafka, shop.feed.topic), name=name)
        rival = Archive(shop.lake, table, shop.feed.topic)
        batches = span.read(shop.kafka, shop.feed.topic, spans=plan.spans)
        files = [rival.write(group, plan_name=name) for group in extract.group(batches, limits=limits)]
        rivals.append((rival, files, plan.heads))
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
