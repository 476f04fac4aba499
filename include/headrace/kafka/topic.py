"""A topic as the broker tells of it: its identity, its partitions and how far each reaches; made as it is declared."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from headrace.errors import TopicError, TopicMissing, TopicSilent
from headrace.feed import Feed
from headrace.kafka.admin import Admin
from headrace.kafka.drift import Drift, Found, drifts, settings

TIMEOUT_S = 30.0

PROGRESS_S = 10.0
"""How long telling the lag tools may take: the archive has its records by then."""

UNSETTLED = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
}
"""What a broker says while leaders move; a moment later it knows."""

UNSETTLED_S = 0.2

CALL_TOPICS = 200
"""How many topics one call asks for: a controller makes at most 10,000 partitions in one go."""

T = TypeVar("T")

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
    """Ask the broker for a topic's identity and the reach of every partition, in a few calls for all of them.

    A partition whose leader is just being chosen is asked for again, as long as any answer may take.
    """
    admin, deadline = Admin(config), time.monotonic() + TIMEOUT_S
    while True:
        try:
            return _described(admin, name)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                told = f"topic {name}: the broker has no such topic. Create it with: headrace register"
                raise TopicMissing(told) from error
            if code not in UNSETTLED or time.monotonic() > deadline:
                raise
            admin.poll(UNSETTLED_S)


def _described(admin: Admin, name: str) -> Topic:
    asked = admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S)
    found = admin.answer(asked[name])
    numbers = [partition.id for partition in found.partitions]
    starts = _offsets(admin, name, numbers=numbers, spec=OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    ends = _offsets(admin, name, numbers=numbers, spec=OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return Topic(name, str(found.topic_id), {number: Reach(starts[number], ends[number]) for number in numbers})


def identity(config: Config, name: str) -> str:
    """The id of a topic, which no other topic ever has; empty when there is none."""
    admin = Admin(config)
    asked = admin.describe_topics(TopicCollection([name]), request_timeout=TIMEOUT_S)
    try:
        return str(admin.answer(asked[name]).topic_id)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return ""
        raise


def _offsets(admin: Admin, name: str, *, numbers: list[int], spec: OffsetSpec) -> dict[int, int]:
    wanted = {TopicPartition(name, number): spec for number in numbers}
    asked = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT_S)
    return {partition.partition: admin.answer(answer).offset for partition, answer in asked.items()}


@dataclass(frozen=True)
class Ensured:
    """What became of one feed's topic."""

    topic: str
    created: bool = False
    drifts: Sequence[Drift] = ()
    refusal: TopicError | None = None
    """Why the broker neither has the topic nor made it, or does not tell of it."""


def ensure(config: Config, feed: Feed) -> list[Drift]:
    """Create the feed's topic as declared if the broker has none; else tell in what the broker differs."""
    done = ensure_all(config, [feed])[feed.name]
    if done.refusal:
        raise done.refusal
    return list(done.drifts)


def ensure_all(config: Config, feeds: Sequence[Feed]) -> dict[str, Ensured]:
    """The same for many feeds in a few calls, by feed name; one that is refused keeps no other from its topic."""
    admin, broker = Admin(config), str(config.get("bootstrap.servers", "BROKER"))
    by_topic = {feed.topic: feed for feed in reversed(feeds)}
    shapes, refusals = _shapes(admin, feeds)
    missing = [feed for name, feed in by_topic.items() if name not in shapes and name not in refusals]
    created, not_created = _create_all(admin, missing)
    refusals |= not_created
    _await_known(admin, created)
    return {
        feed.name: Ensured(
            feed.topic,
            created=feed.topic in created,
            drifts=tuple(drifts(feed, shapes[feed.topic], broker=broker)) if feed.topic in shapes else (),
            refusal=refusals.get(feed.topic),
        )
        for feed in feeds
    }


def _shapes(admin: Admin, feeds: Sequence[Feed]) -> tuple[dict[str, Found], dict[str, TopicError]]:
    """What the broker has of the feeds' topics, and what it does not tell; a topic that it lacks is in neither."""
    shapes: dict[str, Found] = {}
    refusals: dict[str, TopicError] = {}
    detailed = {feed.topic for feed in feeds if settings(feed.declaration.topic)}
    for names in _calls(sorted({feed.topic for feed in feeds})):
        described, failed = _answers(admin, admin.describe_topics(TopicCollection(names), request_timeout=TIMEOUT_S))
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in described.keys() & detailed]
        asked = admin.describe_configs(resources, request_timeout=TIMEOUT_S) if resources else {}
        told, untold = _answers(admin, {resource.name: answer for resource, answer in asked.items()})
        for name, found in described.items():
            values = {setting: entry.value or "" for setting, entry in told.get(name, {}).items()}
            replication = min(len(partition.replicas) for partition in found.partitions)
            shapes[name] = Found(len(found.partitions), replication, values)
        # A name that is none is not there either: creating it tells why.
        absent = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_EXCEPTION)
        refusals |= _refusals({name: error for name, error in failed.items() if error.code() not in absent})
        refusals |= _refusals(untold)
    return shapes, refusals


def _create_all(admin: Admin, feeds: Iterable[Feed]) -> tuple[set[str], dict[str, TopicError]]:
    """The topics that were made, and the ones that were refused; one that another made meanwhile is in neither."""
    created: set[str] = set()
    refusals: dict[str, TopicError] = {}
    for several in _calls(feeds):
        topics = [_new(feed) for feed in several]
        made, failed = _answers(admin, admin.create_topics(topics, request_timeout=TIMEOUT_S))
        created |= made.keys()
        exists = KafkaError.TOPIC_ALREADY_EXISTS
        refusals |= _refusals({name: error for name, error in failed.items() if error.code() != exists})
    return created, refusals


def _await_known(admin: Admin, created: Iterable[str]) -> None:
    """Wait until the broker tells of what its controller has made: whoever registers next is told of drift, too."""
    unknown, deadline = sorted(created), time.monotonic() + TIMEOUT_S
    while unknown and time.monotonic() < deadline:
        failed: dict[str, KafkaError] = {}
        for names in _calls(unknown):
            failed |= _answers(admin, admin.describe_topics(TopicCollection(names), request_timeout=TIMEOUT_S))[1]
        unknown = sorted(name for name, error in failed.items() if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART)
        if unknown:
            admin.poll(UNSETTLED_S)


def _answers(admin: Admin, asked: Mapping[str, Future[T]]) -> tuple[dict[str, T], dict[str, KafkaError]]:
    answers: dict[str, T] = {}
    failed: dict[str, KafkaError] = {}
    for name, answer in asked.items():
        try:
            answers[name] = admin.answer(answer)
        except KafkaException as error:
            failed[name] = error.args[0]
    return answers, failed


MENDS = {
    KafkaError.INVALID_REPLICATION_FACTOR: "Lower topic.replication in the feed file, or add brokers.",
    KafkaError.INVALID_PARTITIONS: "Change topic.partitions in the feed file.",
    KafkaError.TOPIC_EXCEPTION: "Change topic.name in the feed file.",
    KafkaError.INVALID_CONFIG: "Change topic in the feed file.",
    KafkaError.POLICY_VIOLATION: "The broker has a policy for new topics: change topic in the feed file.",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "Allow our Kafka user Create, Describe and DescribeConfigs on it.",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Allow our Kafka user to create topics, or create it yourself.",
    KafkaError._AUTHENTICATION: "Check mechanism, user and password in the Airflow connection headrace_kafka.",
    KafkaError._SSL: "Check the ssl settings in the Airflow connection headrace_kafka.",
}


def _refusals(failed: Mapping[str, KafkaError]) -> dict[str, TopicError]:
    """The broker's refusals in our words; no answer at all is no refusal, and may be asked again."""
    refusals: dict[str, TopicError] = {}
    for name, error in failed.items():
        if error.code() in MENDS:
            said = error.str().rstrip(".")
            refusals[name] = TopicError(f"topic {name}: the broker refused it: {said}. {MENDS[error.code()]}")
        else:
            refusals[name] = TopicSilent(f"topic {name}: the broker gave no answer: {error.str()}. Is it up?")
    return refusals


def _new(feed: Feed) -> NewTopic:
    declared = feed.declaration.topic
    # Minus one asks for the broker's own number.
    replicas = -1 if declared.replication is None else declared.replication
    return NewTopic(feed.topic, declared.partitions, replicas, config=settings(declared))


def _calls(these: Iterable[T]) -> Iterator[list[T]]:
    waiting = iter(these)
    while several := list(islice(waiting, CALL_TOPICS)):
        yield several


def show_progress(config: Config, reached: Mapping[str, Mapping[int, int]], *, group: str) -> None:
    """Commit each topic's next offsets to a group that nothing reads, so that ordinary lag tools see how far it is."""
    offsets = [
        TopicPartition(name, number, offset) for name, next_ in reached.items() for number, offset in next_.items()
    ]
    admin = Admin(config)
    asked = admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, offsets)], request_timeout=PROGRESS_S
    )
    for each in admin.answer(asked[group]).topic_partitions:
        if each.error is not None:
            raise KafkaException(each.error)
