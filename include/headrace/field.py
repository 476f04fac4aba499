"""A field of a feed's records, as far as a declaration may rely on it: its broad kind, and what is noted about it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "boolean",
    "integer",
    "float",
    "decimal",
    "string",
    "uuid",
    "bytes",
    "date",
    "time",
    "timestamp",
    "array",
    "map",
    "struct",
    "union",
    "json",
    "unknown",
]
"""The exact types are the columns'; `unknown` is what the schema itself gets wrong, or what has no name here."""

Schema = Mapping[str, Any]

PII = "pii"


@dataclass(frozen=True)
class Note:
    """What a schema says under `pii`, or under a word that was meant to be it."""

    path: str
    """Of the schema that says it."""
    word: str
    value: Any

    @property
    def kind(self) -> str | None:
        """The kind of personal data that it tells of, if it is written as one."""
        return word(self.value) if self.word == PII else None


@dataclass(frozen=True)
class Field:
    """One field, told from the schema's text alone, however broken the rest of it is."""

    name: str
    path: str
    """Where it stands in the file."""
    kind: Kind = "unknown"
    nullable: bool = False
    doc: str | None = None
    notes: tuple[Note, ...] = ()
    """What is noted of personal data in it: by the field itself, and by all that its schema holds or refers to."""
    symbols: tuple[str, ...] | None = None
    """The values of an enum."""
    aliases: tuple[str, ...] = ()
    """The names that it had in earlier versions."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Every kind of personal data that it holds, its own first, then those of what is inside it."""
        return tuple(dict.fromkeys(kind for note in self.notes if (kind := note.kind)))

    @property
    def pii(self) -> str | None:
        """The kind of personal data that it holds, itself or in a field inside it."""
        return self.kinds[0] if self.kinds else None


def word(value: Any) -> str | None:
    """A note, if it is written as one."""
    return value if isinstance(value, str) and value else None


def notes(path: str, schema: Schema) -> Iterator[Note]:
    """What one schema says of personal data, for itself alone."""
    for name, value in schema.items():
        if name.lower().removeprefix("x-") == PII:
            yield Note(path, name, value)
