"""Guessing what a schema does not say: the key, and the field that counts a row's versions."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.errors import FeedError
from headrace.fault import nearest

IDENTITY = re.compile(r"(?:.*_)?(?:id|uuid|guid|key)|.*(?:Id|ID|Uuid|Key)")
VERSION = re.compile(r"(?:.*_)?(?:revision|version|sequence|seq|sequence_number|lsn)|.*(?:Revision|Version|Sequence)")


def key(candidates: Sequence[str], *, feed: str) -> str | None:
    """The field that seems to identify a row, by its name: `id`, then the feed's own id, then any id."""
    own = {f"{name}_id".lower() for name in (feed, feed.removesuffix("s"))}
    names = [name for name in candidates if IDENTITY.fullmatch(name)]
    ranked = sorted(names, key=lambda name: (name.lower() != "id", _words(name) not in own, names.index(name)))
    return ranked[0] if ranked else None


def order(candidates: Iterable[str]) -> str | None:
    """The field that seems to count the versions of a row; a wall clock never does."""
    return next((name for name in candidates if VERSION.fullmatch(name)), None)


def different(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The records, each once: the same record twice is a redelivery, not a second version."""
    return list({json.dumps(record, sort_keys=True): record for record in records}.values())


def tells_apart(names: Sequence[str], records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no two of these different records have the same values in these fields."""
    return len({json.dumps([record.get(name) for name in names]) for record in records}) == len(records)


def known(names: Sequence[str], fields: Sequence[str], *, option: str) -> list[str]:
    """The fields that somebody named; one that is none is refused."""
    for name in names:
        if name not in fields:
            raise FeedError(f'{option} names "{name}", which is not a field. {nearest(name, fields)}')
    return list(names)


def keyless(feed: str, fields: Sequence[str]) -> FeedError:
    """What to say where no field identifies a row, given those that may; a key needs an exact, single value."""
    told = f"{feed}: no field is sure to have a value that identifies a row."
    return FeedError(f"{told} Say which: --key FIELD, one of {', '.join(fields)}." if fields else told)


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
