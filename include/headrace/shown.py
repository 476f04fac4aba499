"""Shown: a key as one text, the same wherever keys are listed, so that whoever must can find it there again."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

OCTETS = "hex:"
"""Begins bytes, which are told in hex; people type them so too."""
DAY = r"\d{4}-\d\d-\d\d"
MOMENT = re.compile(DAY + r"[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?")


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
            return value.isoformat("microseconds")  # as it lies in the clean table, where it is a text
        case Decimal():
            return f"{value:f}"
    return str(value)


def _brief(text: str) -> str:
    """A time without zeros at the end of its fraction, as Spark and DuckDB tell it."""
    whole, point, fraction = text.partition(".")
    return f"{whole}.{digits}" if point and (digits := fraction.rstrip("0")) else whole


def says(text: str, value: Any) -> bool:
    """Whether a text that somebody typed says exactly this value; engines round, cut off and fill up what they read.

    What they cannot read at all is none.
    """
    try:
        match value:
            case None:
                return False
            case bool() | str():
                return True
            case int():
                return int(text) == value
            case Decimal():
                return Decimal(text) == value
            case datetime():
                return MOMENT.fullmatch(text.strip()) is not None and _in_utc(text.strip()) == _in_utc(f"{value}")
            case date():
                return text.strip() == value.isoformat()
    except (ValueError, InvalidOperation, OverflowError):
        return False
    return True


def _in_utc(text: str) -> datetime:
    """A moment; one without a zone is in UTC."""
    read = datetime.fromisoformat(text)
    return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
