"""A draft's fields in Avro."""

import re
from collections.abc import Sequence
from typing import Any

from headrace.starter.types import Choice, Enum, Exact, ListOf, MapOf, Member, Simple, Struct, Type

LOGICALS = {
    "uuid": ("string", "uuid"),
    "date": ("int", "date"),
    "time": ("long", "time-micros"),
    "timestamp": ("long", "timestamp-micros"),
    "timestamp-millis": ("long", "timestamp-millis"),
    "local-timestamp": ("long", "local-timestamp-micros"),
}
SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def schema(name: str, doc: str, *, fields: Sequence[Member]) -> dict[str, Any]:
    """The schema of a feed's records."""
    names = _Names()
    record = names.new(name)
    return {"type": "record", "name": record, "doc": doc, "fields": [_field(each, record, names) for each in fields]}


class _Names:
    """Names for the types inside, each given once: Avro has one type per name."""

    def __init__(self) -> None:
        self.given: set[str] = set()

    def new(self, *parts: str) -> str:
        wanted = "".join(word[:1].upper() + word[1:] for part in parts for word in part.split("_"))
        name, number = wanted, 2
        while name in self.given:
            name, number = f"{wanted}{number}", number + 1
        self.given.add(name)
        return name


def _field(member: Member, path: str, names: _Names) -> dict[str, Any]:
    type_ = _type(member.type, (path, member.name), names)
    open_ = {} if member.certain else {"default": None}
    notes = {"pii": member.pii, "doc": member.doc}
    return {
        "name": member.name,
        "type": type_ if member.certain else _or_null(type_),
        **open_,
        **{name: note for name, note in notes.items() if note},
    }


def _or_null(type_: Any) -> list[Any]:
    return ["null", *type_] if isinstance(type_, list) else ["null", type_]


def _type(type_: Type, path: tuple[str, ...], names: _Names) -> Any:
    match type_:
        case Simple(kind) if kind in LOGICALS:
            base, logical = LOGICALS[kind]
            return {"type": base, "logicalType": logical}
        case Simple(kind):
            return kind
        case Exact(precision, scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case Enum(symbols):
            # Avro's symbols are names; words that are none stay texts.
            nameable = all(SYMBOL.fullmatch(symbol) for symbol in symbols)
            return {"type": "enum", "name": names.new(*path), "symbols": list(symbols)} if nameable else "string"
        case ListOf(items, nullable):
            inner = _type(items, (*path, "item"), names)
            return {"type": "array", "items": _or_null(inner) if nullable else inner}
        case MapOf(values, nullable):
            inner = _type(values, (*path, "value"), names)
            return {"type": "map", "values": _or_null(inner) if nullable else inner}
        case Struct(fields):
            record = names.new(*path)
            return {"type": "record", "name": record, "fields": [_field(each, record, names) for each in fields]}
        case Choice(types):
            return [_type(each, path, names) for each in types]
