"""A slice: which records of an archive are meant, by time, offsets, partitions and keys, or by quarantine."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import SliceError
from headrace.heads import mirrored

OFFSETS = re.compile(r"(\d+):(\d+)-(\d+)")
MILLISECONDS = re.compile(r"\d{12,}")
LARGEST = 2**63 - 1
"""Offsets and timestamps have 64 bits, with a sign, in Kafka and in the archive."""

Spans = Mapping[int, tuple[tuple[int, int], ...]]
Offsets = npt.NDArray[np.int64]


HEX = "hex:"
"""How a key begins that is typed as its bytes."""


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
    places: Mapping[int, Offsets] = field(default_factory=dict, repr=False, compare=False)
    """Where that lies: ascending offsets, by the archive's partition numbers. There may be millions."""

    def at(self, partitions: npt.NDArray[np.int32], offsets: Offsets) -> "Slice":
        """The slice at these places alone."""
        order = np.lexsort((offsets, partitions))
        numbers, starts = np.unique(partitions[order], return_index=True)
        parts = np.split(offsets[order], starts[1:])
        return replace(self, places=dict(zip(numbers.tolist(), parts, strict=False)))  # without places, one empty part

    def identity(self, *, feed: str, topic_id: str, to: str, same_partitions: bool, secret: bytes) -> str:
        """The same for the same slice to the same place, and nothing that a key could be guessed from."""
        told = {
            "feed": feed,
            "topic_id": topic_id,
            "to": to,
            "same_partitions": same_partitions,
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
            and (not self._by_place or partition in self.places)
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
            and (not self._by_place or _any_within(self.places[partition], low, high))
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
            and (not self._by_place or _any_within(self.places[partition], offset, offset))
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
            meant = pc.and_(meant, pa.array(_are_among(self.places[partition], offset.to_numpy())))
        return meant

    @property
    def by_time(self) -> bool:
        return self.since is not None or self.until is not None

    @property
    def _by_place(self) -> bool:
        return self.quarantine is not None


def kafka_number(partition: int) -> int:
    """The number that Kafka has for a partition of the archive, whichever topic it is of."""
    return mirrored(partition) if partition < 0 else partition


def _any_within(places: Offsets, low: int, high: int) -> bool:
    """Whether any place lies between two offsets, both meant."""
    return bool(np.searchsorted(places, low) < np.searchsorted(places, high, side="right"))


def _are_among(places: Offsets, offsets: Offsets) -> npt.NDArray[np.bool_]:
    """Which of the offsets are places, of which there is at least one."""
    nearest = np.minimum(np.searchsorted(places, offsets), len(places) - 1)
    return np.equal(places[nearest], offsets)


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
        if last >= LARGEST:
            raise SliceError(f'offsets "{text}" end beyond any that Kafka has. The largest is {LARGEST - 1}.')
        found[partition] = (*found.get(partition, ()), (first, last + 1))
    return found


def key(text: str) -> bytes:
    """A Kafka key as it is typed: its text, or `hex:` and its bytes."""
    if not text.startswith(HEX):
        return text.encode()
    try:
        return bytes.fromhex(text.removeprefix(HEX))
    except ValueError:  # not quoted: a key may be personal
        raise SliceError(f"after {HEX} a key is told in pairs of hexadecimal digits, such as {HEX}00ff.") from None


def moment(text: str | None) -> int | None:
    """A time in ISO 8601, in UTC where it says nothing else, or in milliseconds since 1970, as milliseconds."""
    if text is None or not text.strip():
        return None
    if MILLISECONDS.fullmatch(text.strip()):
        return _timestamp(text)
    try:
        told = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise SliceError(
            f'time "{text}" is not ISO 8601, such as 2026-11-17T08:00 or 2026-11-17T08:00+01:00.'
        ) from error
    aware = told if told.tzinfo else told.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


def _timestamp(text: str) -> int:
    if (told := int(text)) > LARGEST:
        raise SliceError(f'time "{text}" is later than any that Kafka has. In milliseconds, {LARGEST} is the last.')
    return told
