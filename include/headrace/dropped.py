"""Dropped: what an archive no longer holds because its feed keeps records for a limited time.

It stands in a property of the archive's table, which outlives every snapshot: verify does not take it for a loss, and
whoever rebuilds from the archive can tell that it is not whole.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.table import Table

PROPERTY = "headrace.dropped"
"""The key in an archive's table properties."""

Span = tuple[int, int]
"""Offsets `[first, next)`."""


@dataclass(frozen=True)
class Dropped:
    """Which records were dropped."""

    before: str = ""
    """All whose Kafka timestamp lies before this hour, in ISO 8601; empty when nothing was dropped."""
    spans: Mapping[int, Sequence[Span]] = field(default_factory=dict)
    """Where they lay, by the archive's partitions; of late records a span may also hold some that stayed."""

    def of(self, partition: int) -> Sequence[Span]:
        return self.spans.get(partition, ())

    def to_json(self) -> str:
        return json.dumps({"before": self.before, "spans": {str(number): each for number, each in self.spans.items()}})


def dropped_of(table: Table) -> Dropped:
    """What an archive has dropped so far."""
    return read(table.properties)


def read(properties: Mapping[str, str]) -> Dropped:
    raw = json.loads(properties.get(PROPERTY, "{}"))
    spans = {int(number): [(first, next_) for first, next_ in each] for number, each in raw.get("spans", {}).items()}
    return Dropped(raw.get("before", ""), spans)


def joined(spans: Iterable[Span], *, kept: Iterable[Span]) -> list[Span]:
    """The spans, as few as may be: where nothing that was kept lies between two, they are one."""
    held = _united(kept)
    ends = [next_ for _, next_ in held]
    result: list[Span] = []
    for first, next_ in _united(spans):
        # The first kept span that reaches past the last dropped one.
        place = bisect_right(ends, result[-1][1]) if result else 0
        if result and (place == len(held) or held[place][0] >= first):
            result[-1] = (result[-1][0], next_)
        else:
            result.append((first, next_))
    return result


def _united(spans: Iterable[Span]) -> list[Span]:
    """Spans that touch or overlap as one, in order."""
    result: list[Span] = []
    for first, next_ in sorted(spans):
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], next_))
        else:
            result.append((first, next_))
    return result


def outside(first: int, next_: int, spans: Iterable[Span]) -> list[Span]:
    """What none of the spans covers of another."""
    left = []
    for low, high in sorted(spans):
        if low < next_ and high > first:
            if first < low:
                left.append((first, low))
            first = max(first, high)
    return [*left, (first, next_)] if first < next_ else left
