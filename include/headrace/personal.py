"""Personal columns: which columns of a clean table hold personal data, as the table itself remembers it.

The feed file tells it of the fields that it has now. A column that it dropped keeps its old values in the table, and
who reads without the file knows only the table: so the table has a note of every column that it ever had.
"""

import json
from collections.abc import Iterable, Mapping

from headrace.feed import Feed

PROPERTY = "headrace.pii"
"""The table property: a JSON object of all columns, each with its kind of personal data, or null for none."""

UNKNOWN = "unknown"
"""The kind of a column that nothing is noted about: it may be personal, so it is kept back as if it were."""

Kinds = Mapping[str, str | None]


def note(feed: Feed, before: str | None) -> str:
    """The property's text for a feed as it is now, with what is there already about columns that it dropped."""
    return json.dumps({**_noted(before), **{field.name: field.pii for field in feed.fields}}, sort_keys=True)


def kinds(columns: Iterable[str], *, feed: Feed | None, noted: str | None) -> dict[str, str | None]:
    """What each column holds: as the feed file says, else as the table remembers, else unknown."""
    known = {**_noted(noted), **({field.name: field.pii for field in feed.fields} if feed else {})}
    return {column: known.get(column, UNKNOWN) for column in columns}


def _noted(text: str | None) -> dict[str, str | None]:
    read: dict[str, str | None] = json.loads(text) if text else {}
    return read
