"""The types that a starter knows, each of them sayable in Avro and in JSON Schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "string",
    "bytes",
    "uuid",
    "date",
    "time",
    "timestamp",
    "timestamp-millis",
    "local-timestamp",
]


@dataclass(frozen=True)
class Simple:
    """A type without parts."""

    kind: Kind


@dataclass(frozen=True)
class Exact:
    """A decimal number."""

    precision: int
    scale: int


@dataclass(frozen=True)
class Enum:
    """One of a few words."""

    symbols: tuple[str, ...]


@dataclass(frozen=True)
class ListOf:
    """Values of one type in a row."""

    items: Type
    nullable: bool = False


@dataclass(frozen=True)
class MapOf:
    """Values of one type by names that are no fields."""

    values: Type
    nullable: bool = False


@dataclass(frozen=True)
class Struct:
    """Named fields."""

    fields: tuple[Member, ...]


@dataclass(frozen=True)
class Choice:
    """Values of one of several types."""

    types: tuple[Type, ...]


Type = Simple | Exact | Enum | ListOf | MapOf | Struct | Choice


@dataclass(frozen=True)
class Member:
    """A field: whether it may be missing or null, and what is noted about it."""

    name: str
    type: Type
    optional: bool = False
    nullable: bool = False
    doc: str | None = None
    pii: str | None = None

    @property
    def certain(self) -> bool:
        """Whether every record has a value here, as a key needs it."""
        return not self.optional and not self.nullable
