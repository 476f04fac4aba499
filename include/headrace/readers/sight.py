"""Sight: which columns of a clean table a reader is shown; personal ones only if asked for, and only to who may."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType

from headrace import personal
from headrace.errors import PersonalRefused, ReadError
from headrace.fault import nearest
from headrace.feed import Feed

HIDDEN = "_"
"""What the names of the platform's own columns begin with; no field's does."""
EVERY = "*"

Asked = Collection[str] | Literal["*"]
"""Names of personal columns, or all of them."""


@dataclass(frozen=True)
class Seen:
    """One column as readers know it."""

    name: str
    type: IcebergType
    doc: str | None = None
    pii: str | None = None
    """The kind of personal data in it."""


@dataclass(frozen=True)
class Allowance:
    """The kinds of personal data that may be read here, as `HEADRACE_PERSONAL` says."""

    kinds: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> "Allowance":
        return cls(frozenset(word.strip() for word in text.split(",") if word.strip()))

    def __contains__(self, pii: str | None) -> bool:
        return pii is None or EVERY in self.kinds or pii in self.kinds

    def __str__(self) -> str:
        return ", ".join(sorted(self.kinds)) or "none"


def columns(schema: Schema, *, feed: Feed | None, noted: str | None) -> dict[str, Seen]:
    """A table's columns without the platform's own; `noted` is what the table remembers of personal ones."""
    fields = {field.name: field for field in schema.fields if not field.name.startswith(HIDDEN)}
    kinds = personal.kinds(fields, feed=feed, noted=noted)
    docs = {field.name: field.doc for field in feed.fields} if feed else {}
    return {
        name: Seen(name, field.field_type, docs.get(name) or field.doc, kinds[name]) for name, field in fields.items()
    }


def shown(feed: str, known: Mapping[str, Seen], *, names: Iterable[str] | None, asked: Asked) -> list[Seen]:
    """The columns that were asked for: by name, else all but personal ones and those of them that were asked for."""
    if names is not None:
        return [known_column(feed, name, known) for name in names]
    wanted = {name for name, column in known.items() if column.pii} if asked == EVERY else set(asked)
    for name in sorted(wanted):
        known_column(feed, name, known)
    return [column for name, column in known.items() if not column.pii or name in wanted]


def known_column(feed: str, name: str, known: Mapping[str, Seen]) -> Seen:
    if name not in known:
        raise ReadError(f"clean.{feed}: there is no column {name!r}. {nearest(name, [*known])}")
    return known[name]


def refuse(feed: str, wanted: Iterable[Seen], *, allowance: Allowance) -> None:
    """Raise where a column is personal and its kind may not be read here."""
    refused = [column for column in wanted if column.pii not in allowance]
    if refused:
        raise PersonalRefused("".join(_refusal(feed, refused, allowance)))


def _refusal(feed: str, refused: list[Seen], allowance: Allowance) -> Iterator[str]:
    yield f"clean.{feed}: personal columns: {', '.join(f'{column.name} ({column.pii})' for column in refused)}. "
    yield f"What HEADRACE_PERSONAL lets you read here: {allowance}. "
    yield "Leave them out, read them as a warehouse gets them (as_warehouse=…), "
    yield "or ask whoever runs this environment."
    if any(column.pii == personal.UNKNOWN for column in refused):
        yield f" Whether those of kind {personal.UNKNOWN} are personal is noted nowhere: point HEADRACE_SCHEMAS at "
        yield f"the folder of the feed files, or run the feed {feed} once, which notes it in the table."
