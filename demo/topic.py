"""What a topic holds: its end offsets and its records, read without a consumer group's memory."""

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from demo.errors import TopicError

WAIT_SECONDS = 20.0
POLL_SECONDS = 0.1
# What a broker answers in the first moments of a topic's life.
NEW_TOPIC = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
)

Kafka = Mapping[str, str]


def end_offsets(kafka: Kafka, topic: str, *, partitions: int) -> dict[int, int]:
    """The next offset of every partition."""
    consumer = _consumer(kafka)
    try:
        return {number: _end(consumer, topic, partition=number) for number in range(partitions)}
    finally:
        consumer.close()


def read_span(kafka: Kafka, topic: str, *, partition: int, first: int, end: int) -> Iterator[Message]:
    """The records at offsets [first, end) of one partition."""
    consumer = _consumer(kafka)
    try:
        consumer.assign([TopicPartition(topic, partition, first)])
        for _ in range(first, end):
            yield _next(consumer, topic, partition=partition)
    finally:
        consumer.close()


def _consumer(kafka: Kafka) -> Consumer:
    # A group is asked for by the client; nothing is ever committed to it.
    return Consumer({**kafka, "group.id": "headrace-demo", "enable.auto.commit": "false"})


def _end(consumer: Consumer, topic: str, *, partition: int) -> int:
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            offsets = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=WAIT_SECONDS)
        except KafkaException as error:
            if error.args[0].code() not in NEW_TOPIC or time.monotonic() > deadline:
                raise TopicError(f"{topic}, partition {partition}: {error}. Is the topic registered?") from error
            time.sleep(POLL_SECONDS)
        else:
            return int(offsets[1])


def _next(consumer: Consumer, topic: str, *, partition: int) -> Message:
    message = consumer.poll(WAIT_SECONDS)
    if message is None:
        raise TopicError(f"{topic}, partition {partition}: no record in {WAIT_SECONDS:.0f} s. Is the stack up?")
    error = message.error()
    if error is not None:
        raise TopicError(f"{topic}, partition {partition}: {error}")
    return message
