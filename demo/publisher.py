"""Publishes rounds so that every partition holds exactly the generator's sequence, whatever was interrupted before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message, Producer

from demo.errors import PublishError, TopicError
from demo.feed import Feed
from demo.generator import SEED, round_counts, round_records
from demo.record import Coordinates, Record, placed
from demo.topic import Kafka, end_offsets, read_span

FLUSH_SECONDS = 120.0
PRODUCER = {
    "enable.idempotence": "true",
    "acks": "all",
    "compression.type": "lz4",
    "linger.ms": "20",
    "delivery.timeout.ms": "60000",
    "queue.buffering.max.messages": "1000000",
    # Errors only: a broker that has just started makes the client warn of retries that go well.
    "log_level": "3",
}


@dataclass(frozen=True)
class Progress:
    """How many whole rounds a topic holds, where in each partition they end, and how far the next one has come."""

    rounds: int
    whole: Mapping[int, int]
    ends: Mapping[int, int]

    @property
    def partial(self) -> bool:
        return any(self.ends[partition] > whole for partition, whole in self.whole.items())


def rounds_published(
    feed: Feed, ends: Mapping[int, int], *, seed: int = SEED, size: int | None = None, limit: int = 10_000
) -> Progress:
    """How many rounds a topic with these end offsets holds."""
    whole = dict.fromkeys(range(feed.partitions), 0)
    for number in range(limit):
        counts = round_counts(feed, seed=seed, number=number, size=size)
        after = {partition: held + counts[partition] for partition, held in whole.items()}
        if any(ends[partition] < after[partition] for partition in whole):
            _require_within(feed, ends, after)
            return Progress(number, whole, {partition: ends[partition] for partition in whole})
        whole = after
    raise TopicError(f"{feed.name}: the topic holds more than {limit} rounds, more than the demo can have published.")


def publish(
    feed: Feed,
    *,
    topic: str,
    kafka: Kafka,
    rounds: int,
    ids: Mapping[str, int],
    at: int | None = None,
    seed: int = SEED,
    size: int | None = None,
) -> int:
    """Bring the topic to `rounds` whole rounds and say how many records that took. A second call takes none."""
    held = rounds_published(feed, end_offsets(kafka, topic, partitions=feed.partitions), seed=seed, size=size)
    sent = 0
    # Each round is whole in every partition before the next begins, or the end offsets would not tell how far it came.
    for number in range(held.rounds, rounds):
        records = round_records(feed, seed=seed, number=number, ids=ids, size=size, at=at)
        sent += _complete(feed, topic, kafka=kafka, records=records, held=held)
        ends = end_offsets(kafka, topic, partitions=feed.partitions)
        held = Progress(number + 1, ends, ends)
    return sent


def _complete(feed: Feed, topic: str, *, kafka: Kafka, records: list[Record], held: Progress) -> int:
    """Send what the topic lacks of one round."""
    places = list(placed(records, after=held.whole))
    _require_ours(feed, topic, kafka=kafka, places=places, held=held)
    return _send(
        topic, kafka, records=[record for place, record in places if place.offset >= held.ends[place.partition]]
    )


def _require_within(feed: Feed, ends: Mapping[int, int], after: Mapping[int, int]) -> None:
    for partition, most in after.items():
        if ends[partition] > most:
            raise TopicError(
                f"{feed.name}: partition {partition} ends at offset {ends[partition]}, where the demo has published at "
                f"most {most}. The demo needs the topic to itself: run it on an empty stack."
            )


def _require_ours(
    feed: Feed, topic: str, *, kafka: Kafka, places: Iterable[tuple[Coordinates, Record]], held: Progress
) -> None:
    """What stands of an interrupted round must be its beginning, not somebody else's records."""
    ours = dict(places)
    for partition, end in held.ends.items():
        first = held.whole[partition]
        for offset, message in enumerate(read_span(kafka, topic, partition=partition, first=first, end=end), first):
            if not _same(ours.get(Coordinates(partition, offset)), message):
                raise TopicError(
                    f"{feed.name}: the demo did not publish the record at partition {partition}, offset {offset}. "
                    "The demo needs the topic to itself: run it on an empty stack."
                )


def _same(record: Record | None, message: Message) -> bool:
    # Past the frame only: a schema registered anew has another id and the same payload.
    return record is not None and (record.key, (record.value or b"")[5:]) == (
        message.key(),
        (message.value() or b"")[5:],
    )


def _send(topic: str, kafka: Kafka, *, records: list[Record]) -> int:
    producer = Producer({**kafka, **PRODUCER})
    failures: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(f"partition {message.partition()}: {error}")

    for record in records:
        producer.produce(
            topic,
            key=record.key,
            value=record.value,
            partition=record.partition,
            timestamp=record.timestamp,
            headers=list(record.headers),
            on_delivery=delivered,
        )
        producer.poll(0)
    left = producer.flush(FLUSH_SECONDS)
    if failures or left:
        why = failures[0] if failures else f"no answer in {FLUSH_SECONDS:.0f} s"
        raise PublishError(f"{topic}: {max(len(failures), left)} records were not taken: {why}. Run the demo again.")
    return len(records)
