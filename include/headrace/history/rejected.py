"""Rejected rows: where each is and why it is no record of the feed; never a value of it."""

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Why a row is rejected."""

    UNREADABLE = "unreadable"  # a line that is no JSON object, or has more or fewer values than there are columns
    KEYLESS = "keyless"  # a key field is null
    NULL = "null"  # a field is null that may not be
    UNFIT = "unfit"  # a value that its field cannot hold without losing something
    INVALID = "invalid"  # breaks the JSON Schema
    LARGE = "large"  # larger than the topic takes


@dataclass(frozen=True)
class Rejected:
    """A row that is no record of the feed: where it is, and why; never a value of it."""

    origin: str
    row: int
    fault: Fault
    field: str = ""
    why: str = ""
