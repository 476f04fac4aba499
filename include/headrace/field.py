"""A field of a feed's records, as far as a declaration may rely on it: its broad kind, and what is noted about it."""

from collections.abc import Mapping
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


@dataclass(frozen=True)
class Field:
    """One field, told from the schema's text alone, however broken the rest of it is."""

    name: str
    path: str
    """Where it stands in the file."""
    kind: Kind = "unknown"
    nullable: bool = False
    doc: str | None = None
    pii: str | None = None
    """The kind of personal data that it holds, itself or in a field inside it."""
    symbols: tuple[str, ...] | None = None
    """The values of an enum."""


def word(value: Any) -> str | None:
    """A note, if it is written as one."""
    return value if isinstance(value, str) and value else None
