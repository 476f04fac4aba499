"""Extract: copy what is new in a topic, and in the one it drains, byte for byte; one commit adds files and heads."""

import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaException, Message

from headrace import record
from headrace.archive import Archive, Envelopes, archive_of, stamp
from headrace.errors import RecordsLost, TopicError, TopicMissing
from headrace.feed import Feed
from headrace.heads import Heads, mirrored
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
    """What one extract reads: spans from the archive's heads to the topics' ends, and the heads after it."""

    name: str
    spans: Mapping[int, Span]
    """Of the feed's own topic."""
    heads: Heads
    drained: Mapping[int, Span] = field(default_factory=dict)
    """Of the topic that the feed drains, by that topic's own partition numbers."""


def plan(head: Heads, found: Topic, *, name: str, ordered: bool = True, drained: Topic | None = None) -> Plan:
    """Compare the archive's heads with the topics; refuses when one is another one or has lost records.

    A feed that drains an older topic always covers both, so that late records of the older one still count. Each is
    judged by its own heads alone; where the drained topic is gone from the broker, its heads are carried on.
    """
    spans, old_spans = _spans(head.own, found, ordered=ordered), dict[int, Span]()
    own, old = Heads(found.id, _ends(spans)), head.drained
    if drained is not None:
        old_spans = _spans(old, drained, ordered=ordered)
        old = Heads(drained.id, _ends(old_spans))
    return Plan(name, _unread(spans), Heads.joined(own, old), drained=_unread(old_spans))


def _spans(head: Heads, found: Topic, *, ordered: bool) -> dict[int, Span]:
    """One topic's spans, also the empty ones."""
    if head.topic_id and head.topic_id != found.id:
        raise TopicError(
            f"topic {found.name}: its id is {found.id}, but the archive was copied from {head.topic_id}: the topic was "
            f"deleted and made again. Going on would mix two topics; give the new one a feed of its own."
        )
    _refuse_shrinking(head, found)
    if not ordered:
        _refuse_growth(head, found)
    _refuse_losses(head, found)
    return {
        number: Span(head.next.get(number, reach.start), reach.end)
        for number, reach in sorted(found.partitions.items())
    }


def _ends(spans: Mapping[int, Span]) -> dict[int, int]:
    return {number: span.next for number, span in spans.items()}


def _unread(spans: Mapping[int, Span]) -> dict[int, Span]:
    return {number: span for number, span in spans.items() if len(span)}


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


def group(batches: Iterable[list[Message]], *, limits: Limits, drains: str | None = None) -> Iterator[Envelopes]:
    """Messages by partition and hour, each group given out when it is full or when all of them together are."""
    waiting: dict[tuple[int, int | None], Envelopes] = {}
    held = 0
    for batch in batches:
        for message in batch:
            (partition, offset), (_, milliseconds) = coordinates(message), stamp(message)
            number = mirrored(partition) if message.topic() == drains else partition
            place = (number, record.filed_hour(milliseconds))
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
    head, ordered = heads_of(table), bool(feed.declaration.order) or feed.declaration.merge == "append"
    found, drained = topic.describe(kafka, feed.topic), _drained(feed, head, kafka=kafka)
    planned = plan(head, found, name=uuid.uuid4().hex[:12], ordered=ordered, drained=drained)
    if not planned.spans and not planned.drained:
        return Extracted(0, 0, planned.heads)
    drains = drained.name if drained else None
    below = {number: offset for number, offset in planned.heads.next.items() if number < 0}
    archive = Archive(lake, table, feed.topic, drains, below)
    files, records = [], 0
    for envelopes in group(_read(kafka, planned, own=feed.topic, drains=drains), limits=limits, drains=drains):
        records += len(envelopes.messages)
        files.append(archive.write(envelopes, plan_name=planned.name))
    archive.commit(files, head=planned.heads)
    _show_progress(feed, planned.heads, kafka=kafka, drains=drains)
    return Extracted(records, len(files), planned.heads)


def _drained(feed: Feed, head: Heads, *, kafka: Config) -> Topic | None:
    """The topic that the feed drains, while the broker has it; once drained it may go."""
    drains = feed.declaration.topic.drains
    if drains is None:
        if head.drained_id:
            raise TopicError(
                f"feed {feed.name}: its archive holds records of an older topic, which its file no longer names, so "
                f"they could not be decoded again. Put topic.drains back; the older topic itself may be gone."
            )
        return None
    try:
        return topic.describe(kafka, drains.topic)
    except TopicMissing as error:
        if head.drained_id:
            log.info("feed %s: the drained topic %s is gone; nothing more comes of it", feed.name, drains.topic)
            return None
        raise TopicMissing(
            f"topic {drains.topic}, which feed {feed.name} drains: the broker has no such topic, and none of it was "
            f"archived. Correct topic.drains.topic in the feed file, or leave topic.drains out."
        ) from error


def _read(kafka: Config, planned: Plan, *, own: str, drains: str | None) -> Iterator[list[Message]]:
    """The older topic to its end, then the own one; nothing of either counts before the one commit of both."""
    if drains is not None and planned.drained:
        yield from span.read(kafka, drains, spans=planned.drained)
    if planned.spans:
        yield from span.read(kafka, own, spans=planned.spans)


def _show_progress(feed: Feed, head: Heads, *, kafka: Config, drains: str | None) -> None:
    reached = {feed.topic: head.own.next, **({drains: head.drained.next} if drains else {})}
    try:
        topic.show_progress(kafka, reached, group=f"headrace.{feed.name}")
    except KafkaException as error:  # for watching only: the archive has its records
        log.warning("feed %s: lag tools were not told how far it is: %s", feed.name, error)
