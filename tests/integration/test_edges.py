"""Extract at the edges of what a topic may be: holes, open transactions, growth, being made again, being cut short."""

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker import Broker
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from forwarder import Forwarder
from workshop import ORDER, Workshop

from headrace import layout
from headrace.airflow import connections
from headrace.errors import RecordsLost, TopicDamaged, TopicError
from headrace.kafka import plan, span, topic
from headrace.lake import heads_of
from headrace.settings import Settings
from headrace.stages import extract

Make = Callable[..., Workshop]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that compacts as soon as it can, and may be stopped."""
    made = Broker(tmp_path_factory.mktemp("broker"))
    made.start()
    yield made
    made.kill()


def archive(shop: Workshop) -> Any:
    return shop.lake.find(layout.archive_table(shop.feed.name))


def offsets(shop: Workshop, partition: int = 0) -> list[int]:
    rows = archive(shop).scan(selected_fields=("partition", "offset")).to_arrow().to_pylist()
    return sorted(row["offset"] for row in rows if row["partition"] == partition)


def produce(shop: Workshop, *values: bytes | None, topic: str | None = None, **message: Any) -> None:
    producer = Producer(dict(shop.kafka))
    for value in values:
        producer.produce(topic or shop.feed.topic, value=value, **{"partition": 0, **message})
    assert producer.flush(30) == 0


def consumed(kafka: Mapping[str, Any], name: str, partition: int = 0) -> list[int]:
    """The offsets that a plain consumer of the topic's whole sees."""
    consumer = Consumer({**kafka, "group.id": "edges", "enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([TopicPartition(name, partition, 0)])
    seen: list[int] = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        seen.append(message.offset())
    consumer.close()
    return seen


def configure(shop: Workshop, **settings: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    admin = AdminClient(dict(shop.kafka))
    resource = ConfigResource(ResourceType.TOPIC, shop.feed.topic, incremental_configs=entries)
    asked = admin.incremental_alter_configs([resource])
    for answer in asked.values():
        answer.result(30)


def test_a_compacted_topic_is_archived_with_its_holes(workshop: Make, own: Broker) -> None:
    shop = replace(workshop({**ORDER, "topic": {"compaction": True}}), kafka=own.config)
    topic.ensure(shop.kafka, shop.feed)
    configure(shop, segment_ms="100", min_cleanable_dirty_ratio="0.01", min_compaction_lag_ms="0")
    produce(shop, *(b"%d" % number for number in range(50)), key=b"same")
    while len(seen := consumed(shop.kafka, shop.feed.topic)) == seen[-1] + 1:
        produce(shop, b"more", key=b"same")  # what is compacted is only ever an older segment
    end = topic.describe(shop.kafka, shop.feed.topic).end(0)
    done = shop.extract()
    kept = offsets(shop)
    assert len(kept) == done.records < end, "there are holes, and no record is made up for them"
    assert set(consumed(shop.kafka, shop.feed.topic)) <= set(kept), "compaction goes on, but gives no record back"
    assert done.heads.next[0] == end
    assert shop.extract().records == 0


def transaction(shop: Workshop, *values: bytes) -> Producer:
    """A transaction that is open, its records on the broker."""
    producer = Producer({**shop.kafka, "transactional.id": shop.feed.name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(shop.feed.topic, value=value, partition=0)
    assert producer.flush(30) == 0
    return producer


@pytest.mark.parametrize(("finish", "kept"), [("commit", [0, 1, 2, 3]), ("abort", [0, 3])])
def test_an_open_transaction_holds_a_plan_back_until_it_ends(workshop: Make, finish: str, kept: list[int]) -> None:
    shop = workshop()
    produce(shop, b"before")
    producer = transaction(shop, b"one", b"two")
    produce(shop, b"after")
    assert shop.extract().heads.next[0] == 1, "what lies behind the last stable offset is not planned"
    assert offsets(shop) == [0]
    producer.commit_transaction(30) if finish == "commit" else producer.abort_transaction(30)
    shop.extract()
    assert offsets(shop) == kept
    assert heads_of(archive(shop)).next[0] == 5, "the marker that ended it has an offset too"


def test_a_span_of_nothing_but_holes_moves_the_head(workshop: Make) -> None:
    shop = workshop()
    produce(shop, b"before")
    shop.extract()
    transaction(shop, b"one", b"two").abort_transaction(30)
    done = shop.extract()
    assert (done.records, done.heads.next[0]) == (0, 4)
    assert shop.extract().heads == heads_of(archive(shop))


def test_a_span_that_ends_in_a_hole_comes_to_its_end_whatever_comes_after(workshop: Make) -> None:
    shop = workshop()
    produce(shop, b"zero")
    transaction(shop, b"one").commit_transaction(30)
    spans = {0: span.Span(0, 3)}
    assert topic.describe(shop.kafka, shop.feed.topic).end(0) == 3

    def read() -> list[int]:
        batches = span.read(shop.kafka, shop.feed.topic, spans=spans)
        return [offset for batch in batches for offset in batch["offset"].to_pylist()]

    assert read() == [0, 1]
    produce(shop, b"three", b"four")
    assert read() == [0, 1], "exactly the plan"


def grow(shop: Workshop, partitions: int, *, name: str | None = None) -> None:
    admin, name = AdminClient(dict(shop.kafka)), name or shop.feed.topic
    admin.create_partitions([NewPartitions(name, partitions)])[name].result(30)
    while len(admin.list_topics(name, timeout=30).topics[name].partitions) < partitions:
        pass


@pytest.mark.parametrize("declared", [{}, {"order": [], "merge": "append"}], ids=["order fields", "append"])
def test_a_topic_that_grows_is_read_on_from_its_new_partitions_start(workshop: Make, declared: dict[str, Any]) -> None:
    shop = workshop({**ORDER, "topic": {"partitions": 1}, **declared})
    produce(shop, b"a")
    shop.extract()
    grow(shop, 3)
    produce(shop, b"b", partition=2)
    done = shop.extract()
    assert (done.records, done.heads.next) == (1, {0: 1, 1: 0, 2: 1})
    assert offsets(shop, 2) == [0]


def test_a_topic_that_grows_stops_a_feed_without_order_fields(workshop: Make) -> None:
    shop = workshop({**ORDER, "order": [], "topic": {"partitions": 1}})
    produce(shop, b"a")
    shop.extract()
    before = archive(shop).metadata_location
    grow(shop, 2)
    with pytest.raises(TopicError, match=r"grown the partitions \[1\]") as raised:
        shop.extract()
    assert not raised.value.retry
    assert archive(shop).metadata_location == before


def make_again(shop: Workshop, name: str, feed: Any) -> None:
    admin = AdminClient(dict(shop.kafka))
    admin.delete_topics([name])[name].result(30)
    while not topic.ensure_all(shop.kafka, [feed])[feed.name].created:
        pass
    while name not in admin.list_topics(timeout=30).topics:
        pass


def test_a_drained_topic_that_was_made_again_stops_the_feed(workshop: Make) -> None:
    old = workshop()
    shop = workshop({**ORDER, "topic": {"drains": {"topic": old.feed.topic}}})
    produce(old, b"a")
    shop.extract()
    make_again(shop, old.feed.topic, old.feed)
    produce(old, b"b", b"c")
    with pytest.raises(TopicError, match=f"topic {old.feed.topic}: .* deleted and made again"):
        shop.extract()


def test_a_topic_made_again_while_it_is_read_is_not_taken_for_the_planned_one(workshop: Make) -> None:
    shop = workshop({**ORDER, "topic": {"partitions": 1}})
    produce(shop, b"old", b"old")
    planned = topic.describe(shop.kafka, shop.feed.topic)
    plan.confirm(shop.kafka, [planned])
    make_again(shop, shop.feed.topic, shop.feed)
    produce(shop, b"new", b"new")
    with pytest.raises(TopicError, match=r"deleted while it was read .* Nothing was committed"):
        plan.confirm(shop.kafka, [planned])


def test_records_that_vanish_while_they_are_read_stop_the_feed_with_their_count(
    workshop: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, size, count = workshop({**ORDER, "topic": {"partitions": 1}}), 1000, 60_000
    produce(shop, b"archived")
    shop.extract()
    producer = Producer({**shop.kafka, "linger.ms": 50, "queue.buffering.max.messages": 2 * count})
    for _ in range(count):
        producer.produce(shop.feed.topic, value=os.urandom(size), partition=0)
    assert producer.flush(60) == 0
    forwarder = Forwarder(int(shop.lake.storage.endpoint.rpartition(":")[2]))
    reached = replace(shop.lake.storage, endpoint=f"http://127.0.0.1:{forwarder.port}")
    admin = AdminClient(dict(shop.kafka))

    def vanish() -> None:
        (answer,) = admin.delete_records([TopicPartition(shop.feed.topic, 0, count + 1)]).values()
        answer.result(30)

    # The first file is put while most of the topic is still to be read: reading waits for puts, and nothing compresses.
    for ahead in ("FILE_AHEAD_BYTES", "PUT_AHEAD_BYTES"):
        monkeypatch.setattr(f"headrace.archive.{ahead}", 1 << 20)
    forwarder.before(b"PUT /headrace/archive/", vanish)
    lake = replace(shop.lake, storage=reached)
    with pytest.raises(RecordsLost, match=rf"partition 0 offsets \d+ to {count}\. ") as raised:
        extract.extract(shop.feed, lake=lake, kafka=shop.kafka, limits=extract.Limits(1000, 1 << 20))
    # What was read before is archived, and not one offset more or less is told as lost.
    offsets = archive(shop).scan(selected_fields=("offset",)).to_arrow()["offset"].to_pylist()
    first = int(re.search(r"offsets (\d+) to", str(raised.value))[1])
    assert 1 < first < count
    assert sorted(offsets) == list(range(first))
    forwarder.cut()


def test_a_topic_that_is_shorter_than_its_archive_stops_the_feed(workshop: Make, tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    broker.start()
    try:
        shop = replace(workshop({**ORDER, "topic": {"partitions": 1}}), kafka=broker.config)
        topic.ensure(shop.kafka, shop.feed)
        produce(shop, b"a", b"b")
        shop.extract()
        broker.kill()
        for file in (tmp_path / "data" / f"{shop.feed.topic}-0").glob("0*"):
            file.unlink()  # a disk restored from before the records came
        broker.start()
        with pytest.raises(TopicError, match="shorter than what was archived of it: partition 0 ends at 0, not 2"):
            shop.extract()
        produce(shop, b"c")
        with pytest.raises(TopicError, match="partition 0 ends at 1, not 2"):
            shop.extract()
        assert offsets(shop) == [0, 1]
    finally:
        broker.kill()


def test_a_record_that_rotted_on_the_broker_s_disk_is_not_archived(workshop: Make, own: Broker) -> None:
    shop = replace(workshop({**ORDER, "topic": {"partitions": 1}}), kafka=own.config)
    topic.ensure(shop.kafka, shop.feed)
    produce(shop, b"as it was produced")
    (log,) = (own.folder / "data" / f"{shop.feed.topic}-0").glob("*.log")
    with log.open("r+b") as file:
        file.seek(log.read_bytes().index(b"as it was produced"))
        file.write(b"A")
    with pytest.raises(TopicDamaged, match=r"partition 0: .* failed CRC32C check .* Nothing was committed") as raised:
        shop.extract()
    assert raised.value.retry
    assert archive(shop).current_snapshot() is None


def test_of_extracts_at_once_each_record_comes_once(workshop: Make) -> None:
    shop = workshop({**ORDER, "topic": {"partitions": 1}})
    produce(shop, *(b"%d" % number for number in range(500)))
    shop.extract()
    produce(shop, *(b"%d" % number for number in range(500)))
    together, counts = threading.Barrier(3), list[int]()

    def run() -> None:
        rival = replace(shop, lake=connections.lake(Settings()))
        together.wait(30)
        counts.append(rival.extract().records)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(counts) == [0, 0, 500], "one wins; the others start over and find nothing left"
    assert offsets(shop) == list(range(1000))
