"""Records as the demo publishes them, each labelled with what it means."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, NamedTuple

Value = str | int | Decimal | datetime | date | None | Mapping[str, "Value"]
Row = Mapping[str, Value]
Headers = tuple[tuple[str, bytes | None], ...]
Reason = Literal["unframed", "unknown_id", "undecodable", "invalid", "keyless", "conflict"]


class Coordinates(NamedTuple):
    """Where a record stands in its topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Version:
    """The record carries a whole row."""

    row: Row


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The record deletes its key."""

    key: str


@dataclass(frozen=True, slots=True)
class Corrupt:
    """The record cannot become a row and belongs in quarantine."""

    reason: Reason


Meaning = Version | Tombstone | Corrupt


@dataclass(frozen=True, slots=True)
class Record:
    """One Kafka message: its bytes, what they mean, and the story that it is part of."""

    key: bytes | None
    value: bytes | None
    partition: int
    timestamp: int
    headers: Headers
    meaning: Meaning
    story: str


def placed(
    records: Iterable[Record], *, after: Mapping[int, int] | None = None
) -> Iterator[tuple[Coordinates, Record]]:
    """Each record with its coordinates: an offset is the position in its partition, counted on from `after`."""
    ends = Counter(after)
    for record in records:
        yield Coordinates(record.partition, ends[record.partition]), record
        ends[record.partition] += 1
