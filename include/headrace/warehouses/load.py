"""Loads: what a warehouse records about a table, and what one load did to it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Way = Literal["anew", "whole", "changes"]
"""How a table was brought to a snapshot: made new and switched to, compared as a whole, or by what has changed."""


@dataclass(frozen=True)
class Load:
    """Which snapshot a table holds, and under which contract: columns, masks and whatever else shapes it."""

    snapshot: int | None = None
    contract: str | None = None
    published: datetime | None = field(default=None, compare=False)
    """When the snapshot was."""
    admitted: bool = True
    """Whether those may read the table who are declared to, and nobody else whom we let in."""


@dataclass(frozen=True)
class Held:
    """A table that a warehouse holds."""

    table: str
    published: datetime
    loaded: datetime
    reconciled: datetime | None


@dataclass(frozen=True)
class Counts:
    """The rows that a load touched."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
