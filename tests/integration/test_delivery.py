"""Delivery against a real broker: each record once for whoever reads committed ones, whatever is killed when."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.errors import DeliveryError, DeliveryFenced, DeliveryRefused
from headrace.kafka import topic
from headrace.kafka.delivery import RENEW_S, TRANSACTION_S, Delivery, Outgoing, batches
from headrace.kafka.pace import Rate

Make = Callable[..., str]
NOW = int(time.time() * 1000)
LARGEST = 1_048_588
"""What a topic takes that says nothing of it."""


@pytest.fixture
def kafka(stack: Any) -> Any:
    from headrace.airflow import connections

    return connections.kafka()


@pytest.fixture
def make(kafka: Any) -> Make:
    """Makes a topic of the test's own."""

    def made(partitions: int = 1, **config: str) -> str:
        name = f"d_{uuid.uuid4().hex[:10]}"
        settings = {option.replace("_", "."): value for option, value in config.items()}
        admin = AdminClient(dict(kafka))
        admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
        return name

    return made


def committed(kafka: Any, name: str) -> list[Message]:
    """Every record that a reader of committed ones sees, by partition and offset."""
    consumer = Consumer({**kafka, "group.id": "t", "isolation.level": "read_committed", "enable.partition.eof": True})
    reach = topic.describe(kafka, name).partitions
    waiting = {number for number, found in reach.items() if found.end > found.start}
    consumer.assign([TopicPartition(name, number, 0) for number in waiting])
    found: list[Message] = []
    while waiting:
        for message in consumer.consume(1000, timeout=1.0):
            if message.error() is not None:
                waiting.discard(message.partition())
            else:
                found.append(message)
    consumer.close()
    return sorted(found, key=lambda message: (message.partition() or 0, message.offset() or 0))


def numbered(first: int, next_: int) -> Iterator[tuple[Outgoing, int]]:
    for number in range(first, next_):
        yield Outgoing(b"k", str(number).encode(), timestamp=NOW), number + 1


def test_a_record_goes_out_whole(kafka: Any, make: Make) -> None:
    name = make(3)
    headers = [("trace", b"\x00\xff"), ("trace", None), ("empty", b"")]
    sent = [
        Outgoing(b"k", b"v", headers, NOW - 5, 2),
        Outgoing(None, b"v", (), NOW, 2),
        Outgoing(b"k", None, (), NOW, 2),
        Outgoing(b"", b"", (), NOW, 2),
    ]
    with Delivery(kafka, name, topic=name, largest=LARGEST) as delivery:
        delivery.send(sent, reached=4)
    read = committed(kafka, name)
    assert [(each.key(), each.value(), each.partition(), each.timestamp()[1]) for each in read] == [
        (message.key, message.value, message.partition, message.timestamp) for message in sent
    ]
    assert read[0].headers() == headers
    assert not read[1].headers()


def test_without_a_partition_the_key_decides(kafka: Any, make: Make) -> None:
    name = make(3)
    with Delivery(kafka, name, topic=name, largest=LARGEST) as delivery:
        delivery.send([Outgoing(str(number % 20).encode(), b"v") for number in range(100)], reached=1)
    places: dict[bytes, set[int]] = {}
    for each in committed(kafka, name):
        places.setdefault(each.key(), set()).add(each.partition())
    assert len(places) == 20
    # Where Java's own partitioner puts these.
    assert {key: places[key] for key in (b"0", b"1", b"2")} == {b"0": {2}, b"1": {0}, b"2": {2}}
    assert {len(found) for found in places.values()} == {1}
    assert set.union(*places.values()) == {0, 1, 2}


def test_a_message_of_16_megabytes_passes_and_one_that_the_topic_refuses_is_told(kafka: Any, make: Make) -> None:
    name, narrow = make(max_message_bytes=str(17 * 1024 * 1024)), make(max_message_bytes="1000")
    large = Outgoing(b"k", bytes(16_000_000))
    with Delivery(kafka, name, topic=name, largest=LARGEST) as delivery:
        delivery.send([large, large], reached=2)
    assert [len(each.value()) for each in committed(kafka, name)] == [16_000_000] * 2
    refused = [Outgoing(b"small", b"v"), Outgoing(b"k", os.urandom(5000))]
    with Delivery(kafka, narrow, topic=narrow, largest=1000) as delivery:
        delivery.send([Outgoing(b"small", b"v")], reached=1)
        with pytest.raises(DeliveryRefused, match="larger than the broker takes") as raised:
            delivery.send(refused, reached=3)
    assert not raised.value.retry, "it stays as large"
    assert len(committed(kafka, narrow)) == 1
    with Delivery(kafka, narrow, topic=narrow, largest=1000) as delivery:
        assert delivery.reached() == 1


@pytest.mark.parametrize("ago", [7_200_000, -7_200_000], ids=["behind", "ahead"])
def test_a_timestamp_that_the_topic_refuses_is_told_with_its_setting(kafka: Any, make: Make, ago: int) -> None:
    hour = "3600000"
    name = make(message_timestamp_before_max_ms=hour, message_timestamp_after_max_ms=hour)
    refused = pytest.raises(DeliveryRefused, match=r"message\.timestamp\.after\.max\.ms")
    with Delivery(kafka, name, topic=name, largest=LARGEST) as delivery, refused as raised:
        delivery.send([Outgoing(b"k", b"v", (), NOW - ago)], reached=1)
    assert not raised.value.retry, "it stays as old"
    with Delivery(kafka, name, topic=name, largest=LARGEST) as delivery:
        delivery.send([Outgoing(b"k", b"v", (), NOW)], reached=1)
    assert len(committed(kafka, name)) == 1


def test_many_small_messages_pass_a_topic_that_takes_little_at_once(kafka: Any, make: Make) -> None:
    name = make(max_message_bytes="5000")
    sent = [Outgoing(b"k", os.urandom(200)) for _ in range(1000)]
    with Delivery({**kafka, "linger.ms": 100}, name, topic=name, largest=5000) as delivery:
        delivery.send(sent, reached=1000)
    assert [each.value() for each in committed(kafka, name)] == [message.value for message in sent]


def test_progress_and_records_land_together_by_lane(kafka: Any, make: Make) -> None:
    name = make()
    with Delivery(kafka, name, topic=name, largest=LARGEST) as delivery:
        assert (delivery.reached(), delivery.reached(-3)) == (0, 0)
        for batch, reached in batches(numbered(0, 25), Rate(records=10)):
            delivery.send(batch, reached=reached)
        delivery.send([Outgoing(None, b"other")], reached=7, lane=-3)
        assert (delivery.reached(), delivery.reached(-3)) == (25, 7)
    with Delivery(kafka, name, topic=name, largest=LARGEST) as again:
        assert (again.reached(), again.reached(-3)) == (25, 7)
    assert len(committed(kafka, name)) == 26


def test_all_lanes_begin_again_at_once_and_once_for_a_wish(kafka: Any, make: Make) -> None:
    name = make()
    with Delivery(kafka, name, topic=name, largest=LARGEST) as delivery:
        for lane in (0, 1, -1):
            delivery.send([Outgoing(None, b"v")], reached=5, lane=lane)
        delivery.begin_again([0, -1], wish=77)
        assert [delivery.reached(lane) for lane in (0, 1, -1)] == [0, 5, 0]
        delivery.send([Outgoing(None, b"v")], reached=3)
    with Delivery(kafka, name, topic=name, largest=LARGEST) as retry:
        retry.begin_again([0, -1], wish=77)
        assert retry.reached() == 3
        retry.begin_again([0, -1], wish=78)
        assert retry.reached() == 0


def test_a_lane_is_not_forgotten_while_another_one_goes_on(kafka: Any, make: Make) -> None:
    name, now = make(), [0.0]

    def forget(lane: int) -> None:
        """As Kafka does a week after the lane's own last batch."""
        group, admin = f"{name}.{lane}", AdminClient(dict(kafka))
        admin.delete_consumer_groups([group])[group].result(30)

    with Delivery(kafka, name, topic=name, largest=LARGEST, clock=lambda: now[0]) as delivery:
        for lane in (0, 1):
            delivery.send([Outgoing(None, b"v")], reached=5 + lane, lane=lane)
        forget(0)
        now[0] += RENEW_S
        delivery.send([Outgoing(None, b"v")], reached=9, lane=1)
        assert [delivery.reached(lane) for lane in (0, 1)] == [5, 9]
    with Delivery(kafka, name, topic=name, largest=LARGEST) as again:
        assert [again.reached(lane) for lane in (0, 1)] == [5, 9]
        forget(0)
        again.renew()
        assert again.reached(0) == 5
    assert len(committed(kafka, name)) == 3


def test_whoever_is_started_again_shuts_out_the_one_before(kafka: Any, make: Make) -> None:
    name = make()
    with Delivery(kafka, name, topic=name, largest=LARGEST) as zombie:
        zombie.send([Outgoing(b"k", b"first")], reached=1)
        with Delivery(kafka, name, topic=name, largest=LARGEST) as newer:
            assert newer.reached() == 1
            with pytest.raises(DeliveryFenced, match="was started somewhere else since"):
                zombie.send([Outgoing(b"k", b"zombie")], reached=2)
            newer.send([Outgoing(b"k", b"second")], reached=2)
    assert [each.value() for each in committed(kafka, name)] == [b"first", b"second"]


KILLED = """
import os, signal, sys
from headrace.kafka import delivery as module
from headrace.kafka.delivery import Delivery, Outgoing, batches
broker, name, stop = sys.argv[1:4]

class Dying(Delivery):
    # Dies in the third transaction, with its records already at the broker.
    def _commit(self):
        self.sent = getattr(self, "sent", 0) + 1
        if self.sent == 3 and stop == "before":
            self._producer.flush(30)
            os.kill(os.getpid(), signal.SIGKILL)
        super()._commit()
        if self.sent == 3 and stop == "after":
            os.kill(os.getpid(), signal.SIGKILL)

module.BATCH_RECORDS = 10
with Dying({"bootstrap.servers": broker}, name, topic=name, largest=1_000_000) as delivery:
    first = delivery.reached()
    stream = ((Outgoing(b"k", str(n).encode()), n + 1) for n in range(first, 95))
    for batch, reached in batches(stream):
        delivery.send(batch, reached=reached)
"""


@pytest.mark.parametrize(("stop", "reached"), [("before", 20), ("after", 30)])
def test_killed_in_the_middle_it_goes_on_exactly_there(kafka: Any, make: Make, stop: str, reached: int) -> None:
    name = make()
    command = [sys.executable, "-c", KILLED, kafka["bootstrap.servers"], name]
    killed = subprocess.run([*command, stop], check=False, capture_output=True)
    assert killed.returncode == -9, killed.stderr
    with Delivery(kafka, name, topic=name, largest=LARGEST) as delivery:
        assert delivery.reached() == reached
    subprocess.run([*command, "never"], check=True)
    assert [int(each.value()) for each in committed(kafka, name)] == list(range(95))


class Unanswered(Delivery):
    """The group's coordinator gives no answer when the records have reached the broker."""

    def _group(self, lane: Any) -> Any:
        self._producer.flush(30)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer", retriable=True))


def test_a_delivery_that_fails_before_its_commit_leaves_no_transaction_open(kafka: Any, make: Make) -> None:
    name = make()
    with (
        pytest.raises(DeliveryError, match="no answer"),
        Unanswered(kafka, name, topic=name, largest=LARGEST) as delivery,
    ):
        delivery.send([Outgoing(b"k", b"never seen")], reached=1)
    assert topic.describe(kafka, name).partitions[0].end > 0, "an open transaction would hold its first record back"
    assert committed(kafka, name) == []


class Interrupted(Delivery):
    """Somebody presses Ctrl-C when the first record has reached the broker."""

    def _produce(self, message: Outgoing) -> None:
        super()._produce(message)
        self._producer.flush(30)
        raise KeyboardInterrupt


def test_an_interrupted_delivery_leaves_no_transaction_open(kafka: Any, make: Make) -> None:
    name = make()
    with pytest.raises(KeyboardInterrupt), Interrupted(kafka, name, topic=name, largest=LARGEST) as delivery:
        delivery.send([Outgoing(b"k", b"never seen")], reached=1)
    # While a transaction is open, its first record is the last stable offset; the broker marks its end a moment later,
    # and would by itself only after a minute.
    deadline = time.monotonic() + TRANSACTION_S / 2
    while topic.describe(kafka, name).partitions[0].end == 0:
        assert time.monotonic() < deadline, "the transaction is still open"
        time.sleep(0.1)
    assert committed(kafka, name) == []
