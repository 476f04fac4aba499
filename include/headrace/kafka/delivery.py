"""Delivery: records published in Kafka transactions that also note how far it has come, so that none goes twice.

Each batch is one short transaction. Its progress, a number per lane, is committed in the same transaction as the offset
of a consumer group: after a crash anywhere, `reached` tells the last batch that readers see, and the delivery goes on
right after it. The transactional id is the delivery's name: whoever starts it again shuts out the one before, whose
open transaction is aborted. Kafka forgets a lane `offsets.retention.minutes` (7 days) after it was last committed, so
a delivery that is at work commits them all again, now and then.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import inf
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from headrace.errors import DeliveryError, DeliveryFenced, DeliveryRefused
from headrace.kafka.pace import Pace, Rate
from headrace.kafka.topic import Config

TIMEOUT_S = 30.0
COMMIT_TRIES = 3
TRANSACTION_S = 60
"""How long readers of committed records may be held up by a delivery that died and is not started again."""
BATCH_RECORDS = 10_000
BATCH_BYTES = 16 * 1024 * 1024
BATCH_S = 1.0
"""No batch holds more than may go in this time, so that a slow rate makes small transactions, never long ones."""
LARGEST_MESSAGE = 1_000_000_000
"""The client's own limit, out of the way: the broker's and the topic's decide."""
LARGEST_BATCH = 1_000_000
"""What the client sends together at most, as it does by itself; less where the topic takes less at once."""

RENEW_S = 3600.0
"""How often the numbers of all lanes are committed again, so that none is forgotten long before the others."""
AGAIN = "again"
"""The lane that notes which wish to begin again was last fulfilled."""
PARTITIONER = "murmur2_random"
"""Java's, where the connection says nothing else: a key that lies in two partitions has no order."""

REFUSALS = {
    KafkaError.MSG_SIZE_TOO_LARGE: (
        "a message is larger than the broker takes. Raise the topic's max.message.bytes (in a feed file "
        "topic.largest_message)"
    ),
    KafkaError.INVALID_TIMESTAMP: (
        "a message is older or newer than the broker takes. Raise the topic's message.timestamp.before.max.ms, or "
        "message.timestamp.after.max.ms for one that is ahead of the broker's clock"
    ),
}
"""What a topic refuses for good, by Kafka's code, and what helps."""
FENCED = {KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH}
UNCOORDINATED = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
BETWEEN_ASKING_S = 0.2
Headers = Sequence[tuple[str, bytes | None]]
Lane = int | str


class Outgoing(NamedTuple):
    """A record to publish; without a partition its key decides, without a timestamp it is of now."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    """Milliseconds since 1970. Zero cannot be told from none: the client sends the time of now."""
    partition: int | None = None

    @property
    def size(self) -> int:
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


class Delivery:
    """One delivery to one topic, by name; used as a context, whose entry shuts out earlier ones of that name."""

    def __init__(
        self,
        config: Config,
        name: str,
        *,
        topic: str,
        largest: int,
        rate: Rate | None = None,
        partitioner: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`largest` is the topic's max.message.bytes, which is one of batches: small messages together may pass it."""
        self.name, self.topic = name, topic
        self.pace = Pace(rate or Rate())
        self._config = dict(config)
        self._groups: dict[Lane, Any] = {}
        self._known: dict[Lane, int] = {}
        self._clock, self._renewed = clock, -inf
        self._open = False
        self._refusal: KafkaError | None = None
        self._producer = Producer(
            {
                "linger.ms": 5,
                "compression.type": "zstd",
                "partitioner": PARTITIONER,
                **self._config,
                **({"partitioner": partitioner} if partitioner else {}),
                "message.max.bytes": LARGEST_MESSAGE,
                "batch.size": min(int(config.get("batch.size", LARGEST_BATCH)), largest),
                "transactional.id": name,
                "transaction.timeout.ms": TRANSACTION_S * 1000,
                "delivery.report.only.error": True,
                "on_delivery": self._note_refusal,
            }
        )

    def __enter__(self) -> Self:
        try:
            self._producer.init_transactions(TIMEOUT_S)
        except KafkaException as error:
            raise self._failed(error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open:
            with suppress(KafkaException):  # the broker ends it by itself, only later
                self._producer.abort_transaction(TIMEOUT_S)

    def reached(self, lane: Lane = 0) -> int:
        """The number that the last committed batch of a lane came with; zero before the first."""
        with self._client(lane) as client:
            found = self._committed(client)
            self._groups[lane] = client.consumer_group_metadata()
        if found.error is not None:
            raise self._failed(KafkaException(found.error))
        self._known[lane] = max(found.offset, 0)
        return self._known[lane]

    def _committed(self, client: Consumer) -> TopicPartition:
        """What the group has; soon after a broker's start its coordinator is not to be found yet."""
        patience = self._clock() + TIMEOUT_S
        while True:
            try:
                (found,) = client.committed([TopicPartition(self.topic, 0)], TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() not in UNCOORDINATED or self._clock() > patience:
                    raise
                time.sleep(BETWEEN_ASKING_S)
            else:
                return found

    def send(self, messages: Sequence[Outgoing], *, reached: int, lane: Lane = 0) -> None:
        """Publish the messages and the number that they reach, both or neither, not faster than the rate allows."""
        self.renew()
        # Before the transaction: an open one holds up everybody who reads committed records.
        self.pace.wait(len(messages), sum(message.size for message in messages))
        self._transact(messages, {lane: reached})

    def renew(self) -> None:
        """Commit the lanes' numbers again, if it is time: each by itself and without records, so that nobody waits."""
        if self._clock() - self._renewed < RENEW_S:
            return
        for lane, number in list(self._known.items()):
            if number:
                self._transact((), {lane: number})
        self._renewed = self._clock()

    def begin_again(self, lanes: Iterable[int], *, wish: int) -> None:
        """Take the lanes back to zero, all or none, and once for a wish: its next try goes on where it stopped."""
        if self.reached(AGAIN) != wish:
            self._transact((), {**dict.fromkeys(lanes, 0), AGAIN: wish})

    def _transact(self, messages: Sequence[Outgoing], reached: Mapping[Lane, int]) -> None:
        committing = False
        try:
            self._producer.begin_transaction()
            self._open = True
            for message in messages:
                self._produce(message)
            for lane, number in reached.items():
                place = [TopicPartition(self.topic, 0, number)]
                self._producer.send_offsets_to_transaction(place, self._group(lane), TIMEOUT_S)
            committing = True
            self._commit()
        except KafkaException as error:
            # Where a commit gave no answer, nothing can be aborted: whoever starts again asks what was reached.
            self._open = not error.args[0].fatal() and not (committing and error.args[0].retriable())
            raise self._failed(error) from error
        self._open = False
        self._known.update(reached)

    def _commit(self) -> None:
        """A commit that gave no answer in time may be asked for again, and only that."""
        for left in reversed(range(COMMIT_TRIES)):
            try:
                self._producer.commit_transaction(TIMEOUT_S)
                return
            except KafkaException as error:
                if not left or not error.args[0].retriable():
                    raise

    def _group(self, lane: Lane) -> Any:
        """The lane's own group as a transaction names it."""
        if lane not in self._groups:
            with self._client(lane) as client:
                self._groups[lane] = client.consumer_group_metadata()
        return self._groups[lane]

    @contextmanager
    def _client(self, lane: Lane) -> Iterator[Consumer]:
        """A client of the lane's group, which reads nothing; only a stable offset is told. Closed at once: each has
        threads of its own, and a topic may have many partitions."""
        settings: Mapping[str, Any] = {"enable.auto.commit": False, "isolation.level": "read_committed"}
        client = Consumer({**self._config, "group.id": f"{self.name}.{lane}", **settings})
        try:
            yield client
        finally:
            client.close()

    def _produce(self, message: Outgoing) -> None:
        given: dict[str, Any] = {"key": message.key, "headers": list(message.headers)}
        if message.partition is not None:
            given["partition"] = message.partition
        if message.timestamp is not None:
            given["timestamp"] = message.timestamp
        while True:
            try:
                return self._producer.produce(self.topic, message.value, **given)
            except BufferError:
                self._producer.poll(0.1)

    def _note_refusal(self, error: KafkaError | None, _: Message) -> None:
        """The transaction's own error may only say that something went wrong before."""
        self._refusal = self._refusal or error

    def _failed(self, error: KafkaException) -> DeliveryError:
        """What happened, and what to do; never with a key or a value."""
        cause: KafkaError = error.args[0]
        if not cause.fatal():
            try:
                self._producer.poll(0)
                cause = self._refusal or cause
            except KafkaException as fatal:  # what the client found out meanwhile
                cause = fatal.args[0]
        where = f"delivery {self.name} to topic {self.topic}"
        if cause.code() in FENCED:
            return DeliveryFenced(
                f"{where}: the same delivery was started somewhere else since, and goes on there. Nothing is lost or "
                f"doubled; let that one end, or stop it and start this one again."
            )
        if cause.code() in REFUSALS:
            refusal = REFUSALS[cause.code()]
            return DeliveryRefused(f"{where}: {refusal}, then start it again: it goes on where it stopped.")
        return DeliveryError(f"{where}: {cause.str().rstrip('.')}. Start it again: it goes on where it stopped.")


def batches(messages: Iterable[tuple[Outgoing, int]], rate: Rate | None = None) -> Iterator[tuple[list[Outgoing], int]]:
    """Messages, each with the number it reaches, in batches with the number of their last."""
    waiting: list[Outgoing] = []
    size = reached = 0
    for message, number in messages:
        grown = size + message.size
        if waiting and _is_full(len(waiting) + 1, grown, rate or Rate()):
            yield waiting, reached
            waiting, grown = [], message.size
        waiting.append(message)
        size, reached = grown, number
    if waiting:
        yield waiting, reached


def _is_full(records: int, size: int, rate: Rate) -> bool:
    return records > BATCH_RECORDS or size > BATCH_BYTES or rate.seconds(records, size) > BATCH_S
