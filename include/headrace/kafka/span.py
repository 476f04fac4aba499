"""Spans: exactly planned offsets of a topic's partitions, read once and in order."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headrace.errors import TopicSilent
from headrace.kafka.topic import Config

BATCH = 10_000
STALL_S = 60.0
"""How long a partition may give nothing before the read is given up; the task's retry plans again."""


@dataclass(frozen=True)
class Span:
    """Offsets `[first, next)` of one partition."""

    first: int
    next: int

    def __len__(self) -> int:
        return self.next - self.first


def read(config: Config, topic: str, *, spans: Mapping[int, Span]) -> Iterator[list[Message]]:
    """The messages of the spans in batches, each partition's in the order of offsets.

    Holes (compaction, transaction markers) are passed over, so fewer messages than `next - first` may come.
    """
    consumer = Consumer(
        {
            "fetch.min.bytes": 1,
            "fetch.wait.max.ms": 20,
            "queued.max.messages.kbytes": 65536,
            **config,
            "group.id": "headrace-span",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, number, span.first) for number, span in spans.items()])
        yield from _batches(consumer, topic, spans=dict(spans))
    finally:
        consumer.close()


def _batches(consumer: Consumer, topic: str, *, spans: dict[int, Span]) -> Iterator[list[Message]]:
    heard = time.monotonic()
    while spans:
        messages = consumer.consume(BATCH, timeout=1.0)
        if messages:
            heard = time.monotonic()
        elif time.monotonic() - heard > STALL_S:
            raise TopicSilent(
                f"topic {topic}: partitions {sorted(spans)} gave nothing for {STALL_S:.0f} s; is the broker up?"
            )
        batch, ended = _within(messages, spans=spans)
        for number in ended:
            del spans[number]
        if ended:
            consumer.incremental_unassign([TopicPartition(topic, number) for number in ended])
        if batch:
            yield batch


def coordinates(message: Message) -> tuple[int, int]:
    """A consumed message's partition and offset."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None, "a consumed message has coordinates"
    assert offset is not None, "a consumed message has coordinates"
    return partition, offset


def _within(messages: list[Message], *, spans: Mapping[int, Span]) -> tuple[list[Message], set[int]]:
    """The messages that lie in their spans, and the partitions whose span has been read to its end."""
    batch: list[Message] = []
    ended: set[int] = set()
    for message in messages:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        number, offset = coordinates(message)
        if number not in spans or number in ended:
            continue
        # A notice of the partition's end carries the next offset: so a span that ends in a hole comes to its end.
        if offset >= spans[number].next - (error is None):
            ended.add(number)
        if error is None and offset < spans[number].next:
            batch.append(message)
    return batch, ended
