"""Spans: exactly planned offsets of a topic's partitions, read once and in order, as envelope batches."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headrace.errors import TopicDamaged, TopicSilent
from headrace.kafka import envelopes
from headrace.kafka.topic import Config

STALL_S = 60.0
"""How long a partition may give nothing before the read is given up; the task's retry plans again."""

BATCH = 5_000
"""The most messages of one batch."""
BATCH_BYTES = 8 * 2**20
"""About how many bytes a batch holds; the next one's messages are guessed to be as large as the last one's."""
POLL_S = 0.1
"""How long a batch may gather; short, so that messages that are suddenly large do not pile up in one."""

# The client asks a broker again only a second after it believes to have enough, which of small messages are read in a
# tenth of that. The queue's kilobytes count no overhead, which is thrice the size of a small message.
FETCHING = {
    "fetch.min.bytes": 1,
    "fetch.wait.max.ms": 20,
    "fetch.queue.backoff.ms": 10,
    "fetch.message.max.bytes": 2 * 2**20,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 16 * 1024,
}


@dataclass(frozen=True)
class Span:
    """Offsets `[first, next)` of one partition."""

    first: int
    next: int

    def __len__(self) -> int:
        return self.next - self.first


IsOver = Callable[[], bool]
"""Whether time is up."""


def never() -> bool:
    return False


def read(config: Config, topic: str, *, spans: Mapping[int, Span]) -> Iterator[pa.RecordBatch]:
    """All records of the spans."""
    return iter(Reading(config, topic, spans=spans))


class Reading:
    """The records of spans in envelope batches, each partition's in the order of offsets.

    Holes (compaction, transaction markers) are passed over, so fewer records than `next - first` may come. No batch is
    begun once `is_over`; `reached` tells how far each span was read.
    """

    def __init__(self, config: Config, topic: str, *, spans: Mapping[int, Span], is_over: IsOver = never) -> None:
        self._config, self._topic, self._spans, self._is_over = config, topic, spans, is_over
        self._ends = _Ends(spans)

    @property
    def reached(self) -> dict[int, int]:
        """By partition, the offset below which everything was read."""
        return {number: int(self._ends.reached[number]) for number in self._spans}

    @property
    def is_short(self) -> bool:
        """Whether time was up before the last span's end."""
        return bool(self._ends.open)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        consumer = Consumer(
            {
                **FETCHING,
                **self._config,
                "group.id": "headrace.span",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                # Brokers send what their disks hold without a look at it, and the Java client checks it by default.
                "check.crcs": True,
            }
        )
        try:
            consumer.assign([TopicPartition(self._topic, number, span.first) for number, span in self._spans.items()])
            yield from _batches(consumer, self._topic, ends=self._ends, is_over=self._is_over)
        finally:
            consumer.close()


def _batches(consumer: Consumer, topic: str, *, ends: "_Ends", is_over: IsOver) -> Iterator[pa.RecordBatch]:
    heard, wanted = time.monotonic(), BATCH
    while ends.open and not is_over():
        with _garbage_kept():
            batch, ended = ends.within(consumer.consume(wanted, timeout=POLL_S))
        if ended or batch is not None:
            heard = time.monotonic()
        elif time.monotonic() - heard > STALL_S:
            raise TopicSilent(
                f"topic {topic}: partitions {sorted(ends.open)} gave nothing for {STALL_S:.0f} s; is the broker up?"
            )
        if ended:
            consumer.incremental_unassign([TopicPartition(topic, number) for number in ended])
        if batch is not None:
            wanted = max(1, min(BATCH, BATCH_BYTES * batch.num_rows // max(1, batch.nbytes)))
            yield batch
            heard = time.monotonic()  # the silence of whoever took the batch is not the broker's


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Without Python's search for cycles: thousands of new messages would start it again and again over all that the
    process holds, which took two thirds of the time in an Airflow task. Messages form no cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Ends:
    """Where each span ends, to tell what of the consumed messages belongs to them, and how far each was read."""

    def __init__(self, spans: Mapping[int, Span]) -> None:
        self.open = set(spans)
        # By partition number; none of a partition that was not asked for, or was read to its end, is wanted.
        self._next = np.full(max(spans, default=-1) + 1, -1, np.int64)
        self.reached = np.full(len(self._next), -1, np.int64)
        for number, span in spans.items():
            self._next[number], self.reached[number] = span.next, span.first

    def within(self, messages: list[Message]) -> tuple[pa.RecordBatch | None, set[int]]:
        """The messages that lie in their spans, and the partitions whose span has now been read to its end."""
        reached = np.full(len(self._next), -1, np.int64)
        errors = [*map(Message.error, messages)]
        if {*map(type, errors)} - {type(None)}:
            silent = [error is None for error in errors]
            self._hear([message for message, none in zip(messages, silent, strict=True) if not none], reached)
            messages = [*compress(messages, silent)]
        batch = None
        if messages:
            partitions, offsets = envelopes.coordinates(messages)
            # Where a number comes twice the last one stays, and offsets ascend.
            reached[partitions] = np.maximum(reached[partitions], offsets + 1)
            wanted = offsets < self._next[partitions]
            if not wanted.all():
                messages, partitions, offsets = [*compress(messages, wanted)], partitions[wanted], offsets[wanted]
            if messages:
                batch = envelopes.batch(messages, partitions=partitions, offsets=offsets)
        ended = {number for number in self.open if reached[number] >= self._next[number]}
        read = list(self.open)
        self.reached[read] = np.minimum(np.maximum(self.reached[read], reached[read]), self._next[read])
        self.open -= ended
        self._next[list(ended)] = -1
        return batch, ended

    @staticmethod
    def _hear(notices: list[Message], reached: np.ndarray) -> None:
        """A notice of a partition's end carries the next offset: so a span that ends in a hole comes to its end."""
        for message in notices:
            error, number, offset = message.error(), message.partition(), message.offset()
            if error is not None and error.code() == KafkaError._BAD_MSG:
                raise TopicDamaged(
                    f"topic {message.topic()}, partition {number}: the broker gave records that are not as they were "
                    f"produced: {error.str()}. Nothing was committed. Its disk may be bad: let another replica lead."
                )
            if error is None or error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            if number is not None and offset is not None:
                reached[number] = max(int(reached[number]), offset)
