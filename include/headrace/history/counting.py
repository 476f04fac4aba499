"""Counting: an import's records in its topic, read back after the last was committed."""

import time
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from headrace import provenance
from headrace.errors import HistoryError, TopicSilent
from headrace.heads import Heads
from headrace.history.staging import Begun
from headrace.kafka import span, topic
from headrace.kafka.admin import Admin
from headrace.kafka.span import Span
from headrace.kafka.topic import TIMEOUT_S, Config, Topic

PATIENCE_S = 60.0
"""How long to wait while nothing more can be read, behind another's open transaction."""
PAUSE_S = 0.5


def ends(kafka: Config, found: Topic) -> dict[int, int]:
    """Where each partition ends, open transactions and all: what is published from now on comes behind it."""
    admin = Admin(kafka)
    wanted = {TopicPartition(found.name, number): OffsetSpec.latest() for number in found.partitions}  # type: ignore[no-untyped-call]
    asked = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=TIMEOUT_S)
    return {place.partition: admin.answer(answer).offset for place, answer in asked.items()}


def count(kafka: Config, name: str, *, begun: Begun, import_id: str, progress: Callable[[int], None]) -> int | None:
    """How many committed records carry the import's id; None when the broker has already deleted some of the span.

    The span ends where the topic does when this begins: everything of ours lies before, committed or not yet readable.
    """
    found = topic.describe(kafka, name)
    goal, reached, ours = ends(kafka, found), dict(begun.ends), 0
    deadline = time.monotonic() + PATIENCE_S
    while True:
        require_same_topic(found, begun, import_id=import_id)
        if any(reach.start > reached.get(number, 0) for number, reach in found.partitions.items()):
            return None
        spans = _readable(found, reached, goal=goal)
        for batch in span.read(kafka, name, spans=spans) if spans else ():
            ours += imported(batch, import_id)
            progress(ours)
        reached |= {number: each.next for number, each in spans.items()}
        behind = sorted(number for number, end in goal.items() if reached.get(number, 0) < end)
        if not behind:
            return ours
        if spans:
            deadline = time.monotonic() + PATIENCE_S
        elif time.monotonic() > deadline:
            raise TopicSilent(
                f"topic {name}: the last records of partitions {behind} cannot be read yet, behind a transaction that "
                f"another producer keeps open, so those of import {import_id} cannot be counted. Run it again later: "
                f"it goes on where it stopped."
            )
        time.sleep(PAUSE_S)
        found = topic.describe(kafka, name)


def _readable(found: Topic, reached: Mapping[int, int], *, goal: Mapping[int, int]) -> dict[int, Span]:
    """What can be read by now of what is still to come."""
    spans = {
        number: Span(reached.get(number, 0), min(reach.end, goal.get(number, 0)))
        for number, reach in found.partitions.items()
    }
    return {number: each for number, each in spans.items() if each.next > each.first}


def imported(batch: pa.RecordBatch, import_id: str) -> int:
    """How many records of an envelope batch carry an import's id; a replayed copy does, but was not imported."""
    column = batch.column("headers")
    records, headers = pc.list_parent_indices(column), column.flatten()
    names = headers.field("name")
    is_ours = pc.and_(
        pc.equal(names, provenance.IMPORT), pc.ends_with(headers.field("value"), f":{import_id}".encode())
    )
    copies = records.filter(pc.equal(names, provenance.REPLAY))
    return len(set(records.filter(is_ours).to_pylist()) - set(copies.to_pylist()))


def require_same_topic(found: Topic, begun: Begun, *, import_id: str) -> None:
    if found.id != begun.topic_id:
        raise HistoryError(
            f"topic {found.name}: it was deleted and made again since import {import_id} began, so what was published "
            f"is gone with it. Give that up with --discard, then import once more."
        )


def require_archived(found: Topic, begun: Begun, archived: Heads, *, import_id: str) -> None:
    """Refuse to call an import done where the broker deleted what it published before that was archived."""
    reached = archived.own if archived.topic_id == begun.topic_id else Heads()
    lost = [
        number
        for number, reach in sorted(found.partitions.items())
        if reach.start > max(begun.ends.get(number, 0), reached.of(number))
    ]
    if lost:
        raise HistoryError(
            f"topic {found.name}: since import {import_id} began, the broker deleted records of partitions {lost} "
            f"before they were archived. Raise the topic's retention, give this import up with --discard and import "
            f"once more: rows that come twice change no clean row."
        )
