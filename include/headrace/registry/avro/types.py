"""Avro's types as values: a schema is a root and the types it names, so that recursion needs no cycle."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar


class Kind(StrEnum):
    """Which type it is, in the specification's word."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"
    RECORD = "record"
    ENUM = "enum"
    FIXED = "fixed"
    ARRAY = "array"
    MAP = "map"
    UNION = "union"


PRIMITIVES: Mapping[str, Kind] = {kind.value: kind for kind in list(Kind)[:8]}

Props = Mapping[str, Any]
"""Attributes that Avro does not know, such as `logicalType`, `feed` and `pii`: kept as they were written."""


@dataclass(frozen=True)
class Primitive:
    kind: Kind
    props: Props = field(default_factory=dict)


@dataclass(frozen=True)
class Array:
    kind: ClassVar[Kind] = Kind.ARRAY
    items: "Type"
    props: Props = field(default_factory=dict)


@dataclass(frozen=True)
class Map:
    kind: ClassVar[Kind] = Kind.MAP
    values: "Type"
    props: Props = field(default_factory=dict)


@dataclass(frozen=True)
class Union:
    kind: ClassVar[Kind] = Kind.UNION
    branches: "tuple[Type, ...]"


@dataclass(frozen=True)
class ByName:
    """A record, enum or fixed; wherever one is defined or used, only its full name stands."""

    name: str


Type = Primitive | Array | Map | Union | ByName


@dataclass(frozen=True)
class Default:
    """A value in JSON; apart from the value, since null is one too."""

    value: Any


@dataclass(frozen=True)
class Field:
    name: str
    type: Type
    default: Default | None = None
    order: str = "ascending"
    doc: str | None = field(default=None, compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)
    props: Props = field(default_factory=dict)


# Documentation and aliases do not compare: a type that is written out twice is the same type, whatever its doc says.
@dataclass(frozen=True)
class Record:
    kind: ClassVar[Kind] = Kind.RECORD
    name: str
    fields: tuple[Field, ...]
    error: bool = False
    doc: str | None = field(default=None, compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)
    props: Props = field(default_factory=dict)


@dataclass(frozen=True)
class Enum:
    kind: ClassVar[Kind] = Kind.ENUM
    name: str
    symbols: tuple[str, ...]
    default: str | None = None
    doc: str | None = field(default=None, compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)
    props: Props = field(default_factory=dict)


@dataclass(frozen=True)
class Fixed:
    kind: ClassVar[Kind] = Kind.FIXED
    name: str
    size: int
    doc: str | None = field(default=None, compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)
    props: Props = field(default_factory=dict)


Named = Record | Enum | Fixed
Definition = Primitive | Array | Map | Union | Named


@dataclass(frozen=True)
class Schema:
    """A type and every record, enum and fixed that it uses, by full name."""

    root: Type
    named: Mapping[str, Named]

    def definition(self, type_: Type) -> Definition:
        return self.named[type_.name] if isinstance(type_, ByName) else type_


def full_name(name: str, namespace: str | None) -> str:
    """A name as it is known everywhere; one that has a dot brings its own namespace, a leading dot none at all."""
    if "." in name:
        return name.removeprefix(".")
    return f"{namespace}.{name}" if namespace else name


def namespace_of(full: str) -> str | None:
    return full.rpartition(".")[0] or None


def simple_name(full: str) -> str:
    return full.rpartition(".")[2]
