"""A source of history: rows in columns, read once, in one snapshot."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

Values: TypeAlias = "pa.Array | list[Any]"
"""A column: Arrow where the source has types, Python's own values where each value tells its own."""

BATCH_ROWS = 16_384


@dataclass(frozen=True)
class SourceColumn:
    """A column that a source has; without a type, its values tell."""

    name: str
    type: pa.DataType | None = None


@dataclass(frozen=True)
class Rows:
    """Some rows that follow one another."""

    origin: str
    """The file they are from; empty where there is only one place."""
    numbers: Sequence[int]
    """Where each of them is there, from 1; the number of a line where it is lines."""
    columns: Mapping[str, Values]
    unread: Mapping[int, str] = field(default_factory=dict)
    """Rows among them that could not be read at all, by their number, and why."""


class Reading(Protocol):
    """A source that is open: everything read from it is of one moment."""

    @property
    def columns(self) -> Sequence[SourceColumn]: ...

    @property
    def total(self) -> int | None:
        """How many rows there are in this very snapshot, if the source can tell before they are read."""

    @property
    def is_open(self) -> bool:
        """Whether rows may have columns that are not known before they are read."""

    def rows(self, names: Sequence[str]) -> Iterator[Rows]:
        """All rows, in the source's own order, with the columns named."""


class Source(Protocol):
    """Where history lies."""

    @property
    def told(self) -> str:
        """The source in words: the same source, the same words, and no secret in them."""

    def reading(self) -> AbstractContextManager[Reading]: ...
