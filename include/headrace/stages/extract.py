"""Extract: copy what is new in a topic to the archive, byte for byte; one commit adds the files and the heads."""

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException, Message

from headrace import record
from headrace.archive import Archive, Envelopes, archive_of, stamp
from headrace.errors import RecordsLost, TopicError
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.kafka import span, topic
from headrace.kafka.span import Span, coordinates
from headrace.kafka.topic import Config, Topic
from headrace.lake import Lake, heads_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """When an archive file is closed, so that memory stays bounded whatever the backlog."""

    file_records: int
    file_bytes: int


@dataclass(frozen=True)
class Plan:
    """What one extract reads: spans from the archive's heads to the topic's ends, and the heads after it."""

    name: str
    spans: Mapping[int, Span]
    heads: Heads


def plan(head: Heads, found: Topic, *, name: str, ordered: bool = True) -> Plan:
    """Compare the archive's heads with the topic; refuses when the topic is another one or has lost records."""
    if head.topic_id and head.topic_id != found.id:
        raise TopicError(
            f"topic {found.name}: its id is {found.id}, but the archive was copied from {head.topic_id}: the topic was "
            f"deleted and made again. Going on would mix two topics; give the new one a feed of its own."
        )
    _refuse_shrinking(head, found)
    if not ordered:
        _refuse_growth(head, found)
    _refuse_losses(head, found)
    spans = {
        number: Span(head.next.get(number, reach.start), reach.end)
        for number, reach in sorted(found.partitions.items())
    }
    reached = {number: span.next for number, span in spans.items()}
    return Plan(name, {number: span for number, span in spans.items() if len(span)}, Heads(found.id, reached))


def _refuse_shrinking(head: Heads, found: Topic) -> None:
    """A broker that ends before what was archived will give old offsets to new records, which we would never read."""
    shrunk = {number: offset for number, offset in head.next.items() if found.end(number) < offset}
    if shrunk:
        told = "; ".join(f"partition {number} ends at {found.end(number)}, not {shrunk[number]}" for number in shrunk)
        raise TopicError(
            f"topic {found.name}: it is shorter than what was archived of it: {told}. The broker lost records (an "
            f"unclean leader election, a restored disk); replay them from the archive into a new topic."
        )


def _refuse_growth(head: Heads, found: Topic) -> None:
    """Without order fields partition and offset decide, and new partitions move keys: old versions would win."""
    grown = sorted(found.partitions.keys() - head.next.keys()) if head.topic_id else []
    if grown:
        raise TopicError(
            f"topic {found.name}: it has grown the partitions {grown}, but the feed names no order fields, so newer "
            f"versions of a key that moved could lose to older ones. Name order fields, or make a new feed and topic."
        )


def _refuse_losses(head: Heads, found: Topic) -> None:
    if not head.topic_id:
        return  # Never archived: what the broker deleted before that was never promised.
    lost = {
        number: (head.of(number), reach.start)
        for number, reach in found.partitions.items()
        if reach.start > head.of(number)
    }
    if lost:
        told = "; ".join(
            f"partition {number} offsets {first} to {start - 1}" for number, (first, start) in lost.items()
        )
        count = sum(start - first for first, start in lost.values())
        raise RecordsLost(
            f"topic {found.name}: the broker deleted up to {count} records before they were archived: {told}. "
            f"Lengthen the topic's retention; the feed stays stopped until somebody accepts the loss."
        )


def group(batches: Iterable[list[Message]], *, limits: Limits) -> Iterator[Envelopes]:
    """Messages by partition and hour, each group given out when it is full or when all of them together are."""
    waiting: dict[tuple[int, int | None], Envelopes] = {}
    held = 0
    for batch in batches:
        for message in batch:
            (partition, offset), (_, milliseconds) = coordinates(message), stamp(message)
            place = (partition, record.filed_hour(milliseconds))
            group_ = waiting.setdefault(place, Envelopes(*place, first=offset))
            before = group_.bytes
            group_.add(message)
            held += group_.bytes - before
            if group_.bytes >= limits.file_bytes or len(group_.messages) >= limits.file_records:
                held -= group_.bytes
                yield waiting.pop(place)
        while held >= 2 * limits.file_bytes:
            largest = max(waiting, key=lambda place: waiting[place].bytes)
            held -= waiting[largest].bytes
            yield waiting.pop(largest)
    yield from waiting.values()


@dataclass(frozen=True)
class Extracted:
    """What one extract did."""

    records: int
    files: int
    heads: Heads


def extract(feed: Feed, *, lake: Lake, kafka: Config, limits: Limits) -> Extracted:
    """Plan, read exactly the plan, write the files, commit them with the heads."""
    table = archive_of(feed, lake)
    ordered = bool(feed.declaration.order) or feed.declaration.merge == "append"
    found = topic.describe(kafka, feed.topic)
    planned = plan(heads_of(table), found, name=uuid.uuid4().hex[:12], ordered=ordered)
    if not planned.spans:
        return Extracted(0, 0, planned.heads)
    archive = Archive(lake, table, feed.topic)
    files, records = [], 0
    for envelopes in group(span.read(kafka, feed.topic, spans=planned.spans), limits=limits):
        records += len(envelopes.messages)
        files.append(archive.write(envelopes, plan_name=planned.name))
    archive.commit(files, head=planned.heads)
    try:
        topic.show_progress(kafka, feed.topic, group=f"headrace.{feed.name}", next_offsets=planned.heads.next)
    except KafkaException as error:  # for watching only: the archive has its records
        log.warning("feed %s: lag tools were not told how far it is: %s", feed.name, error)
    return Extracted(records, len(files), planned.heads)
