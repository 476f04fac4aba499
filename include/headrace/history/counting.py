"""Counting: an import's records in its topic, read back after the last was committed."""

import time
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from headrace import provenance
from headrace.errors import HistoryError
from headrace.history.staging import Begun
from headrace.kafka import span, topic
from headrace.kafka.span import Span
from headrace.kafka.topic import Config, Topic

PATIENCE_S = 60.0
"""How long to wait for records that are committed but cannot be read yet, behind another's open transaction."""
PAUSE_S = 0.5


def count(
    kafka: Config,
    name: str,
    *,
    begun: Begun,
    import_id: str,
    expected: int,
    progress: Callable[[int], None],
    patience_s: float = PATIENCE_S,
) -> int | None:
    """How many committed records carry the import's id; None when the broker has already deleted some of the span."""
    ours, reached, deadline = 0, dict(begun.ends), time.monotonic() + patience_s
    while True:
        found = topic.describe(kafka, name)
        require_same_topic(found, begun, import_id=import_id)
        if any(reach.start > reached.get(number, 0) for number, reach in found.partitions.items()):
            return None
        spans = {
            number: Span(reached.get(number, 0), reach.end)
            for number, reach in found.partitions.items()
            if reach.end > reached.get(number, 0)
        }
        for batch in span.read(kafka, name, spans=spans) if spans else ():
            ours += imported(batch, import_id)
            progress(ours)
        reached |= {number: each.next for number, each in spans.items()}
        if ours >= expected or time.monotonic() > deadline:
            return ours
        time.sleep(PAUSE_S)


def imported(batch: pa.RecordBatch, import_id: str) -> int:
    """How many records of an envelope batch carry an import's id."""
    headers = batch.column("headers").flatten()
    ours = headers.field("value").filter(pc.equal(headers.field("name"), provenance.IMPORT))
    return sum(value is not None and value.endswith(f":{import_id}".encode()) for value in ours.to_pylist())


def require_same_topic(found: Topic, begun: Begun, *, import_id: str) -> None:
    if found.id != begun.topic_id:
        raise HistoryError(
            f"topic {found.name}: it was deleted and made again since import {import_id} began, so what was published "
            f"is gone with it. Give that up with --discard, then import once more."
        )
