"""A topic as the broker tells of it: its identity, its partitions and how far each reaches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from headrace.errors import TopicMissing

TIMEOUT_S = 30.0

Config = Mapping[str, Any]
"""A Kafka client's settings, as librdkafka names them."""


@dataclass(frozen=True)
class Reach:
    """The offsets that a partition holds: `[start, end)`, where end is the last stable offset."""

    start: int
    end: int


@dataclass(frozen=True)
class Topic:
    """A topic at one moment."""

    name: str
    id: str
    partitions: Mapping[int, Reach]

    def end(self, partition: int) -> int:
        """The next offset of a partition; zero for one that is not there."""
        return self.partitions[partition].end if partition in self.partitions else 0


def describe(config: Config, name: str) -> Topic:
    """Ask the broker for a topic's identity and the reach of every partition, in a few calls for all of them."""
    admin = AdminClient(dict(config))
    described = admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S)[name]
    try:
        found = described.result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise TopicMissing(
                f"topic {name}: the broker has no such topic. Create it with: headrace register"
            ) from error
        raise
    numbers = [partition.id for partition in found.partitions]
    starts = _offsets(admin, name, numbers=numbers, spec=OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    ends = _offsets(admin, name, numbers=numbers, spec=OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return Topic(name, str(found.topic_id), {number: Reach(starts[number], ends[number]) for number in numbers})


def _offsets(admin: AdminClient, name: str, *, numbers: list[int], spec: OffsetSpec) -> dict[int, int]:
    wanted = {TopicPartition(name, number): spec for number in numbers}
    asked = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT_S)
    return {partition.partition: answer.result().offset for partition, answer in asked.items()}


def create(config: Config, name: str, *, partitions: int, replication: int) -> bool:
    """Create a topic; False when it is already there."""
    admin = AdminClient(dict(config))
    asked = admin.create_topics([NewTopic(name, partitions, replication)], request_timeout=TIMEOUT_S)
    try:
        asked[name].result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise
    return True


def show_progress(config: Config, name: str, *, group: str, next_offsets: Mapping[int, int]) -> None:
    """Commit offsets to a consumer group that nothing reads, so that ordinary lag tools see how far a feed is."""
    consumer = Consumer({**config, "group.id": group, "enable.auto.commit": False})
    try:
        reached = [TopicPartition(name, number, offset) for number, offset in next_offsets.items()]
        consumer.commit(offsets=reached, asynchronous=False)
    finally:
        consumer.close()
