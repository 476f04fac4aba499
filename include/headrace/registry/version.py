"""A version as a request names it: a number, or `latest`."""

import re

from headrace.registry.errors import invalid_version

LATEST = -1
MOST = 2**31 - 1


def version_of(text: str) -> int:
    """Read a version; -1 is another word for the latest one."""
    if text.strip().lower() == "latest":
        return LATEST
    number = whole(text)
    if number is None or (number != LATEST and number < 1):
        raise invalid_version(text)
    return number


def whole(text: str) -> int | None:
    """The number that a text is, of those that Java's and Postgres's integers hold; Python's own reading takes more."""
    number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,20}", text) else None
    return number if number is not None and -MOST - 1 <= number <= MOST else None
