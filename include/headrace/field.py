"""A field of a feed's records, as far as a declaration may rely on it: its broad kind, and what is noted about it."""

from collections.abc import Iterable, Mapping
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
    kinds: tuple[str, ...] = ()
    """Every kind of personal data that it holds, its own first, then those of fields inside it."""
    symbols: tuple[str, ...] | None = None
    """The values of an enum."""
    aliases: tuple[str, ...] = ()
    """The names that it had in earlier versions."""

    @property
    def pii(self) -> str | None:
        """The kind of personal data that it holds, itself or in a field inside it."""
        return self.kinds[0] if self.kinds else None


def word(value: Any) -> str | None:
    """A note, if it is written as one."""
    return value if isinstance(value, str) and value else None


def kinds(own: Any, inside: Iterable[str]) -> tuple[str, ...]:
    """The kinds of personal data that a field notes itself, and those inside it, each once."""
    return tuple(dict.fromkeys(kind for kind in (word(own), *inside) if kind))
