"""A field of the feed as an import fills it: how a value is read, written into the Kafka key and sorted by."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.history.scalars import Read
from headrace.history.source import Values

Shortcut = Callable[[pa.Array], Values]
"""Reads a whole column at once; raises where one value of it might be refused, and then each is read by itself."""


def same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Target:
    """One field. `read` gives the value as the encoder takes it, and raises Unfit for what the field cannot hold."""

    name: str
    told: str
    """Its type in words."""
    nullable: bool
    read: Read
    shortcut: Callable[[pa.DataType], Shortcut | None]
    """A quicker way for a column of some type, if there is one."""
    pii: str | None = None
    is_optional: bool = False
    """Whether records may go without it."""
    default: Any = None
    """What records have that go without it."""
    is_json: bool = False
    """Whether it is nested or JSON, so that a column of texts is read as JSON."""
    key: Read = same
    """A value as it stands in a Kafka key that is JSON; its text is the key where there is only one field."""
    sorts: pa.DataType | None = None
    """What it is sorted as; None for what has no order."""
    sort: Read = same
