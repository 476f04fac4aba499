"""Shown: a key as one text, the same wherever keys are listed, so that whoever must can find it there again."""

from collections.abc import Iterable
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

OCTETS = "hex:"
"""Begins bytes, which are told in hex; people type them so too."""


def key(values: Iterable[Any]) -> str:
    """The fields of a key."""
    return "/".join(map(field, values))


def field(value: Any) -> str:
    """One of them; a moment is told in UTC, in which one without a zone is taken to be."""
    match value:
        case bool():
            return "true" if value else "false"
        case bytes() | bytearray():
            return f"{OCTETS}{value.hex()}"
        case datetime():
            there = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return _brief(there.isoformat(sep=" "))
        case time():
            return _brief(value.isoformat())
        case Decimal():
            return f"{value:f}"
    return str(value)


def _brief(text: str) -> str:
    """A time without zeros at the end of its fraction, as Spark and DuckDB tell it."""
    whole, point, fraction = text.partition(".")
    return f"{whole}.{digits}" if point and (digits := fraction.rstrip("0")) else whole
