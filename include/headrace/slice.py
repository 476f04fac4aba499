"""A slice: which records of an archive are meant, by time, offsets, partitions and keys, or by quarantine."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import SliceError
from headrace.heads import mirrored

OFFSETS = re.compile(r"(\d+):(\d+)-(\d+)")
MILLISECONDS = re.compile(r"\d{12,}")

Spans = Mapping[int, tuple[tuple[int, int], ...]]
Place = tuple[int, int]


@dataclass(frozen=True)
class Slice:
    """All of an archive's own records, narrowed by whatever is given; partitions are numbered as Kafka does."""

    since: int | None = None
    """Kafka timestamps from here on, in milliseconds since 1970."""
    until: int | None = None
    """Kafka timestamps before this."""
    offsets: Spans = field(default_factory=dict)
    """By partition, spans `[first, next)`."""
    partitions: frozenset[int] = frozenset()
    keys: frozenset[bytes] = field(default=frozenset(), repr=False)
    """Personal: neither told nor logged."""
    drained: bool = False
    """The drained topic's records instead of the own topic's."""
    quarantine: str | None = None
    """What lies in quarantine for this reason; empty for any."""
    places: frozenset[Place] = frozenset()
    """Where that lies, by the archive's numbers."""

    def at(self, places: Iterable[Place]) -> "Slice":
        return replace(self, places=frozenset(places))

    def identity(self, *, feed: str, topic_id: str, to: str, secret: bytes) -> str:
        """The same for the same slice to the same place, and nothing that a key could be guessed from."""
        told = {
            "feed": feed,
            "topic_id": topic_id,
            "to": to,
            "since": self.since,
            "until": self.until,
            "offsets": {str(number): sorted(spans) for number, spans in sorted(self.offsets.items())},
            "partitions": sorted(self.partitions),
            "keys": sorted(key.hex() for key in self.keys),
            "drained": self.drained,
            "quarantine": self.quarantine,
        }
        return hmac.new(secret, json.dumps(told, sort_keys=True).encode(), hashlib.sha256).hexdigest()[:16]

    def has_partition(self, partition: int) -> bool:
        """Whether any record of a partition, by the archive's number, may be meant."""
        if (partition < 0) != self.drained:
            return False
        number = kafka_number(partition)
        return (
            (not self.partitions or number in self.partitions)
            and (not self.offsets or number in self.offsets)
            and (not self._by_place or partition in self._by_partition)
        )

    def may_hold(self, partition: int, *, offsets: tuple[int, int], times: tuple[int | None, int | None]) -> bool:
        """Whether a file of a partition may hold any of it, by the smallest and largest offset and timestamp there."""
        low, high = offsets
        spans = self.offsets.get(kafka_number(partition), ())
        early, late = times
        return (
            self.has_partition(partition)
            and (not spans or any(first <= high and next_ > low for first, next_ in spans))
            and (self.since is None or late is None or late >= self.since)
            and (self.until is None or early is None or early < self.until)
        )

    def has(self, partition: int, offset: int, *, timestamp: int | None, key: bytes | None) -> bool:
        """Whether one record is meant."""
        spans = self.offsets.get(kafka_number(partition), ())
        return (
            self.has_partition(partition)
            and (not spans or any(first <= offset < next_ for first, next_ in spans))
            and (self.since is None or (timestamp is not None and timestamp >= self.since))
            and (self.until is None or (timestamp is not None and timestamp < self.until))
            and (not self.keys or key in self.keys)
            and (not self._by_place or (partition, offset) in self.places)
        )

    def mask(self, batch: pa.RecordBatch, partition: int) -> pa.Array:
        """The same for many records of one partition at once."""
        offset, timestamp = batch["offset"], batch["timestamp"]
        meant = pc.is_valid(offset)
        if spans := self.offsets.get(kafka_number(partition), ()):
            within = [pc.and_(pc.greater_equal(offset, first), pc.less(offset, next_)) for first, next_ in spans]
            whole = within[0]
            for each in within[1:]:
                whole = pc.or_(whole, each)
            meant = pc.and_(meant, whole)
        if self.since is not None:
            meant = pc.and_(meant, pc.fill_null(pc.greater_equal(timestamp, self.since), False))
        if self.until is not None:
            meant = pc.and_(meant, pc.fill_null(pc.less(timestamp, self.until), False))
        if self.keys:
            keys = pa.array(sorted(self.keys), batch["key"].type)
            meant = pc.and_(meant, pc.is_in(batch["key"], keys))
        if self._by_place:
            meant = pc.and_(meant, pc.is_in(offset, self._by_partition[partition]))
        return meant

    @property
    def by_time(self) -> bool:
        return self.since is not None or self.until is not None

    @property
    def _by_place(self) -> bool:
        return self.quarantine is not None

    @cached_property
    def _by_partition(self) -> dict[int, pa.Array]:
        found: dict[int, list[int]] = {}
        for partition, offset in self.places:
            found.setdefault(partition, []).append(offset)
        return {partition: pa.array(sorted(offsets), pa.int64()) for partition, offsets in found.items()}


def kafka_number(partition: int) -> int:
    """The number that Kafka has for a partition of the archive, whichever topic it is of."""
    return mirrored(partition) if partition < 0 else partition


def spans(texts: Iterable[str]) -> dict[int, tuple[tuple[int, int], ...]]:
    """`0:100-199` and the like, which names both the first and the last offset, by partition."""
    found: dict[int, tuple[tuple[int, int], ...]] = {}
    for text in texts:
        match = OFFSETS.fullmatch(text.strip())
        if match is None:
            raise SliceError(f'offsets "{text}" are not of the form PARTITION:FIRST-LAST, such as 0:100-199.')
        partition, first, last = (int(group) for group in match.groups())
        if last < first:
            raise SliceError(f'offsets "{text}" end before they begin. The first offset comes first.')
        found[partition] = (*found.get(partition, ()), (first, last + 1))
    return found


def moment(text: str | None) -> int | None:
    """A time in ISO 8601, in UTC where it says nothing else, or in milliseconds since 1970, as milliseconds."""
    if text is None or not text.strip():
        return None
    if MILLISECONDS.fullmatch(text.strip()):
        return int(text)
    try:
        told = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise SliceError(
            f'time "{text}" is not ISO 8601, such as 2026-11-17T08:00 or 2026-11-17T08:00+01:00.'
        ) from error
    aware = told if told.tzinfo else told.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
