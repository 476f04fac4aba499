"""An extract, planned: from the archive's heads to the topics' ends, or why it may not go on."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from headrace.errors import RecordsLost, TopicError, TopicMissing
from headrace.feed import Feed
from headrace.heads import Heads, mirrored
from headrace.kafka import topic
from headrace.kafka.span import Span
from headrace.kafka.topic import Config, Topic

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """What one extract reads: spans from the archive's heads to the topics' ends, and the heads after it."""

    name: str
    spans: Mapping[int, Span]
    """Of the feed's own topic."""
    heads: Heads
    drained: Mapping[int, Span] = field(default_factory=dict)
    """Of the topic that the feed drains, by that topic's own partition numbers."""

    @property
    def records(self) -> int:
        """How many there are at most: holes count too."""
        return _count(self.spans) + _count(self.drained)

    def reaching(self, own: Mapping[int, int], drained: Mapping[int, int]) -> "Plan":
        """The plan as far as these offsets, by the topics' own partition numbers."""
        next_ = {**self.heads.next, **own, **{mirrored(number): offset for number, offset in drained.items()}}
        return replace(
            self,
            spans=_until(self.spans, own),
            drained=_until(self.drained, drained),
            heads=replace(self.heads, next=next_),
        )

    def limited(self, records: int) -> "Plan":
        """At most about so many records of it, the drained topic's before any of the own one: the next plan goes on."""
        if self.records <= records:
            return self
        drained = _shared(self.drained, records)
        left = records - _count(_until(self.drained, drained)) if drained == _ends(self.drained) else 0
        return self.reaching(_shared(self.spans, left), drained)


def topics(feed: Feed, head: Heads, *, kafka: Config) -> tuple[Topic, Topic | None]:
    """The feed's topic, and the one that it drains while the broker has it; once drained it may go."""
    own, drains = topic.describe(kafka, feed.topic), feed.declaration.topic.drains
    if drains is None:
        if head.drained_id:
            raise TopicError(
                f"feed {feed.name}: its archive holds records of an older topic, which its file no longer names, so "
                f"they could not be decoded again. Put topic.drains back; the older topic itself may be gone."
            )
        return own, None
    try:
        return own, topic.describe(kafka, drains.topic)
    except TopicMissing as error:
        if head.drained_id:
            log.info("feed %s: the drained topic %s is gone; nothing more comes of it", feed.name, drains.topic)
            return own, None
        raise TopicMissing(
            f"topic {drains.topic}, which feed {feed.name} drains: the broker has no such topic, and none of it was "
            f"archived. Correct topic.drains.topic in the feed file, or leave topic.drains out."
        ) from error


def confirm(kafka: Config, planned: Iterable[Topic]) -> None:
    """Refuse what was read if a topic was made anew since it was planned: the offsets would be another's."""
    for each in planned:
        if (now := topic.identity(kafka, each.name)) != each.id:
            raise TopicError(
                f"topic {each.name}: it was deleted while it was read (its id was {each.id}, now it is "
                f"{now or 'gone'}). Nothing was committed. Give the new topic a feed of its own."
            )


def plan(
    head: Heads, found: Topic, *, name: str, ordered: bool = True, drained: Topic | None = None, feed: str = "FEED"
) -> Plan:
    """Compare the archive's heads with the topics; refuses when one is another one or has lost records.

    A feed that drains an older topic always covers both, so that late records of the older one still count. Each is
    judged by its own heads alone; where the drained topic is gone from the broker, its heads are carried on.
    """
    old = head.drained
    refuse(head, found, ordered=ordered, drained=drained)
    for part, each in ((head.own, found), (old, drained)):
        if each is not None and (missing := lost(part, each)):
            raise RecordsLost(lost_message(each.name, missing, feed=feed))
    spans, old_spans = _spans(head.own, found), dict[int, Span]()
    own = _reached(head.own, found, spans)
    if drained is not None:
        old_spans = _spans(old, drained)
        old = _reached(old, drained, old_spans)
    return Plan(name, _unread(spans), Heads.joined(own, old), drained=_unread(old_spans))


def refuse(head: Heads, found: Topic, *, ordered: bool, drained: Topic | None = None) -> None:
    """Stop where no plan, and no accepted loss either, could bring the archive on."""
    for part, each in ((head.own, found), (head.drained, drained)):
        if each is None:
            continue
        _refuse_another(part, each)
        _refuse_shrinking(part, each)
        if not ordered:
            _refuse_growth(part, each)


def lost(head: Heads, found: Topic) -> dict[int, Span]:
    """The spans of one topic that the broker deleted before they were archived, by partition."""
    if head.topic_id != found.id:
        return {}  # Never looked at: what the broker deleted before that was never promised.
    return {
        number: Span(head.of(number), reach.start)
        for number, reach in sorted(found.partitions.items())
        if reach.start > head.of(number)
    }


def lost_message(topic: str, missing: Mapping[int, Span], *, feed: str) -> str:
    """What is gone, where it begins, and how to go on."""
    told = "; ".join(f"partition {number} offsets {span.first} to {span.next - 1}" for number, span in missing.items())
    count = sum(len(span) for span in missing.values())
    return (
        f"topic {topic}: the broker deleted up to {count} records before they were archived: {told}. Nothing was "
        f"committed, and the feed stays stopped. Lengthen the topic's retention; restore the records if another copy "
        f'has them, or go on without: headrace accept-loss {feed} --why "…"'
    )


def _spans(head: Heads, found: Topic) -> dict[int, Span]:
    """One topic's spans, also the empty ones."""
    reached = head.next if head.topic_id == found.id else {}
    return {
        number: Span(reached.get(number, reach.start), reach.end) for number, reach in sorted(found.partitions.items())
    }


def _reached(head: Heads, found: Topic, spans: Mapping[int, Span]) -> Heads:
    """One topic's heads after its spans; the archive begins where the first of all extracts did."""
    begins = {number: span.first for number, span in spans.items() if span.first}
    return Heads(found.id, _ends(spans), first=head.first if head.topic_id == found.id else begins)


def _ends(spans: Mapping[int, Span]) -> dict[int, int]:
    return {number: span.next for number, span in spans.items()}


def _count(spans: Mapping[int, Span]) -> int:
    return sum(len(span) for span in spans.values())


def _until(spans: Mapping[int, Span], reached: Mapping[int, int]) -> dict[int, Span]:
    return _unread({number: Span(span.first, reached.get(number, span.next)) for number, span in spans.items()})


def _shared(spans: Mapping[int, Span], records: int) -> dict[int, int]:
    """Where each span ends if all together hold so many records, each the same part of its own."""
    count = _count(spans)
    if count <= records:
        return _ends(spans)
    return {number: span.first + len(span) * records // count for number, span in spans.items()}


def _unread(spans: Mapping[int, Span]) -> dict[int, Span]:
    return {number: span for number, span in spans.items() if len(span)}


def _holds_records(head: Heads) -> bool:
    """Whether anything can have been archived; a topic that never had a record may be made again, or grow."""
    return any(head.next.values())


def _refuse_another(head: Heads, found: Topic) -> None:
    if _holds_records(head) and head.topic_id != found.id:
        raise TopicError(
            f"topic {found.name}: its id is {found.id}, but the archive was copied from {head.topic_id}: the topic was "
            f"deleted and made again. Going on would mix two topics; give the new one a feed of its own."
        )


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
    grown = sorted(found.partitions.keys() - head.next.keys()) if _holds_records(head) else []
    if grown:
        raise TopicError(
            f"topic {found.name}: it has grown the partitions {grown}, but the feed names no order fields, so newer "
            f"versions of a key that moved could lose to older ones. Name order fields, or make a new feed and topic."
        )
