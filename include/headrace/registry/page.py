"""A page of a long answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

MOST_SCHEMAS = 1000
"""The most schemas in one answer; Confluent's limit."""


@dataclass(frozen=True)
class Page:
    """Where an answer begins and how much of it is wanted; a limit that is not positive is none."""

    offset: int = 0
    limit: int = -1

    def of(self, items: Sequence[T], *, most: int | None = None) -> list[T]:
        """The page of these items."""
        begin, length = self.within(most)
        return list(items[begin : None if length is None else begin + length])

    def within(self, most: int | None) -> tuple[int, int | None]:
        """Where to begin and how many to give; a limit beyond the most counts as none, and then the most are given."""
        return max(self.offset, 0), self.limit if 0 < self.limit <= (most or self.limit) else most


ALL = Page()
