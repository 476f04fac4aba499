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
        """The page of these items; a limit beyond the most counts as none, and then the most are given."""
        asked = self.limit if 0 < self.limit <= (most or self.limit) else most
        begin = max(self.offset, 0)
        return list(items[begin : None if asked is None else begin + asked])


ALL = Page()
