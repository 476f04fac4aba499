"""Values that a declaration gives for a field: whether the field can ever hold them."""

import re
import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from headrace.fault import nearest, show
from headrace.field import Field, Kind


def unfit(value: Any, field: Field) -> tuple[str, str] | None:
    """Why a field cannot hold a value, and what to do; None if it can, or if nobody can tell."""
    if field.symbols is not None and value not in field.symbols:
        return f'has {show(value)}, which "{field.name}" never is.', nearest(str(value), field.symbols)
    if field.kind in FITTING:
        fits, words = FITTING[field.kind]
        if not fits(value):
            return f'has {show(value)}, but "{field.name}" is {words}.', ""
    return None


# As the clean table holds them, where each is compared as a text or cast: another spelling would never be equal.
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ANYHOW = re.compile(r".*")
LONGS = range(-(2**63), 2**63)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in LONGS


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text_of(parse: Callable[[str], Any], spelling: re.Pattern[str] = ANYHOW) -> Callable[[Any], bool]:
    def is_one(value: Any) -> bool:
        try:
            return isinstance(value, str) and bool(spelling.fullmatch(value)) and parse(value) is not None
        except (ValueError, InvalidOperation):
            return False

    return is_one


FITTING: Mapping[Kind, tuple[Callable[[Any], bool], str]] = {
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "integer": (_is_whole, "a whole number of at most 64 bits"),
    "float": (_is_number, "a number"),
    "decimal": (lambda value: _is_number(value) or _is_text_of(Decimal)(value), "a number"),
    "string": (lambda value: isinstance(value, str), "a text"),
    "bytes": (lambda value: isinstance(value, str), "a text"),
    "uuid": (_is_text_of(uuid.UUID, UUID), "a UUID in small letters"),
    "date": (_is_text_of(date.fromisoformat, DATE), 'a date, such as "2026-01-31"'),
    "time": (_is_text_of(time.fromisoformat, TIME), 'a time, such as "23:59:59.000000"'),
    "timestamp": (_is_text_of(datetime.fromisoformat), 'a timestamp, such as "2026-01-31T23:59:59Z"'),
}
