"""Durations as people write them: `90s`, `5m`, `12h`, `7d`; `forever` where something may last without end."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
PATTERN = r"[1-9][0-9]{0,8}[smhd]"
FOREVER = "forever"
LONGEST = timedelta(days=36_500)
"""A hundred years: whatever lasts longer overflows the dates that it is counted from."""


def parse(text: str) -> timedelta:
    """The time that a duration lasts."""
    if not re.fullmatch(PATTERN, text):
        raise ValueError("a duration is a whole number and a unit (s, m, h or d), such as 30s or 7d")
    lasts = timedelta(**{UNITS[text[-1]]: int(text[:-1])})
    if lasts > LONGEST:
        raise ValueError(f"a duration is at most {LONGEST.days}d")
    return lasts


def lasting(text: str) -> timedelta | None:
    """The time that something lasts; None for ever."""
    return None if text == FOREVER else parse(text)


def spoken(time: timedelta) -> str:
    """About how long, in the largest unit of which there are two or more."""
    seconds = int(time.total_seconds())
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _checked(text: str) -> str:
    lasting(text)
    return text


def _finite(text: str) -> str:
    parse(text)
    return text


Duration = Annotated[str, AfterValidator(_finite), Field(json_schema_extra={"pattern": f"^{PATTERN}$"})]
Lasting = Annotated[str, AfterValidator(_checked), Field(json_schema_extra={"pattern": f"^({PATTERN}|{FOREVER})$"})]
