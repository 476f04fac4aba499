"""Topics to measure with: orders in Avro with a key and a header each, produced once and read by everything."""

import io
import json
import multiprocessing
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import fastavro
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

Record = tuple[bytes, bytes, list[tuple[str, bytes]]]
"""Key, value, headers."""

POLL_EVERY = 5_000
SEED = 20_261_117
HOUR_MS = 3_600_000

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": "long"},
    {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["placed", "paid", "sent", "returned"]}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "customer", "type": "string"},
    {"name": "city", "type": ["null", "string"], "default": None},
    {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "note", "type": "bytes", "default": ""},
]
AVRO: dict[str, Any] = {"type": "record", "name": "Order", "fields": FIELDS}
STATUSES = ("placed", "paid", "sent", "returned")
CITIES = ("Amsterdam", "Bergen", "Cork", "Dresden", "Espoo", "Florence", "Ghent", "Hamburg")


@dataclass(frozen=True)
class Shape:
    """What the records of a topic look like."""

    note: int
    """Bytes of the note, which brings a record to its size."""
    words: bool
    """Whether the note is made of words, which compress, or of random bytes, which do not."""
    orders: int
    """How many different orders there are; further records are later versions of them, with the same bytes.

    Together they are far larger than what lz4 and zstd look back on, so that repetition saves nothing.
    """


SMALL = Shape(note=20, words=True, orders=200_000)
LARGE = Shape(note=920, words=True, orders=40_000)
DENSE = Shape(note=930, words=False, orders=20_000)
HUGE = Shape(note=16_000_000, words=False, orders=4)


def orders(shape: Shape) -> list[Record]:
    """The orders of a shape; always the same ones."""
    dice, schema = random.Random(SEED), fastavro.parse_schema(AVRO)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(2_000)]
    made: list[Record] = []
    for number in range(shape.orders):
        # Digits of no pattern, as real keys have; the number keeps them apart.
        key = f"{dice.getrandbits(32):08x}-{number:06d}"
        row = {
            "id": key,
            "revision": dice.randint(1, 40),
            "status": dice.choice(STATUSES),
            "price": dice.randint(100, 99_999).to_bytes(3, "big"),
            "customer": str(uuid.UUID(int=dice.getrandbits(128))),
            "city": dice.choice(CITIES),
            "created_at": 1_790_000_000_000 + dice.randint(0, 10**9),
            "note": _note(shape, dice, words),
        }
        body = io.BytesIO(b"\0\0\0\0\1")  # Confluent's frame
        body.seek(0, io.SEEK_END)
        fastavro.schemaless_writer(body, schema, row)
        made.append((key.encode(), body.getvalue(), [("trace", dice.randbytes(16))]))
    return made


def _note(shape: Shape, dice: random.Random, words: Sequence[str]) -> bytes:
    if not shape.words:
        return dice.randbytes(shape.note)
    return " ".join(dice.choices(words, k=shape.note // 5)).encode()[: shape.note]


@dataclass(frozen=True)
class Load:
    """Records to produce."""

    topic: str
    shape: Shape
    count: int
    partitions: int = 3
    hours: int = 0
    """Over how many hours, up to now, the timestamps run; 0 leaves them to the broker's day."""
    now_ms: int = 0
    huge: int = 0
    """How many of the records are of 16 MB, spread evenly among the others."""


def feed_text(topic: str, *, way: str) -> str:
    """A feed over a topic that is already there, read in the task or by Spark; nothing of it is ever due."""
    declared: dict[str, Any] = {"key": ["id"], "order": ["revision"], "topic": {"name": topic}, "schedule": "0 0 1 1 *"}
    declared["extract"] = {"spark_from": 0 if way == "spark" else "never"}
    return json.dumps({**AVRO, "feed": declared})


@contextmanager
def topic(kafka: Mapping[str, Any], load: Load, *, producers: int = 2) -> Iterator[dict[int, int]]:
    """A topic full of records, gone afterwards; gives the end of each partition, all of which begin at zero."""
    admin = AdminClient(dict(kafka))
    remove(admin, [load.topic])
    largest = str(17 * 2**20)
    asked = NewTopic(load.topic, load.partitions, 1, config={"retention.ms": "-1", "max.message.bytes": largest})
    admin.create_topics([asked])[load.topic].result(30)
    try:
        _produce_all(kafka, load, producers)
        ends = reaches(kafka, load.topic, load.partitions)
        if sum(ends.values()) != load.count:
            raise SystemExit(f"topic {load.topic}: {sum(ends.values())} records arrived, not {load.count}.")
        yield ends
    finally:
        remove(admin, [load.topic])


def remove(admin: AdminClient, names: Sequence[str]) -> None:
    there = admin.list_topics(timeout=30).topics
    known = [name for name in names if name in there]
    for done in admin.delete_topics(known, operation_timeout=30).values() if known else ():
        done.result(60)


def reaches(kafka: Mapping[str, Any], topic_: str, partitions: int) -> dict[int, int]:
    consumer = Consumer({**kafka, "group.id": "bench"})
    try:
        return {
            number: consumer.get_watermark_offsets(TopicPartition(topic_, number), timeout=30)[1]
            for number in range(partitions)
        }
    finally:
        consumer.close()


def _produce_all(kafka: Mapping[str, Any], load: Load, producers: int) -> None:
    """Side by side in processes of their own: one alone is slower than everything that reads."""
    spawn = multiprocessing.get_context("spawn")
    each = [load.count * (number + 1) // producers - load.count * number // producers for number in range(producers)]
    children = [spawn.Process(target=_produce, args=(dict(kafka), load, count)) for count in each]
    for child in children:
        child.start()
    try:
        for child in children:
            child.join()
    finally:
        for child in children:
            child.terminate()
    if failed := [child.exitcode for child in children if child.exitcode]:
        raise SystemExit(f"topic {load.topic}: a producer ended with {failed[0]}.")


def _produce(kafka: Mapping[str, Any], load: Load, count: int) -> None:
    made = orders(load.shape)
    huge, every = (orders(HUGE), max(load.count // load.huge, 1)) if load.huge else ([], 0)
    producer = Producer(
        {
            **kafka,
            "compression.type": "lz4",
            "enable.idempotence": True,
            "linger.ms": 20,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 256 * 1024,
            "message.max.bytes": 17 * 2**20,
        }
    )
    # From the start of the hours to now, each record a little later than the one before.
    first, step = load.now_ms - load.hours * HOUR_MS, load.hours * HOUR_MS / max(count, 1)
    for number in range(count):
        is_huge = every and number % every == every - 1
        key, value, headers = huge[number % len(huge)] if is_huge else made[number % len(made)]
        stamp = int(first + number * step) if load.hours else 0
        while True:
            try:
                producer.produce(load.topic, value, key, headers=headers, timestamp=stamp)
                break
            except BufferError:
                producer.poll(0.2)
        if number % POLL_EVERY == 0:
            producer.poll(0)
    if left := producer.flush(300):
        raise SystemExit(f"topic {load.topic}: {left} records were not delivered.")
