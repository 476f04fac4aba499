"""A draft's fields in JSON Schema."""

from collections.abc import Sequence
from typing import Any

from headrace.starter.types import Choice, Enum, Exact, ListOf, MapOf, Member, Simple, Struct, Type

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# A local timestamp has no offset from UTC, which JSON Schema's date-time needs: it stays a text.
SIMPLE: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "int": {"type": "integer"},
    "long": {"type": "integer"},
    "timestamp-millis": {"type": "integer"},
    "float": {"type": "number"},
    "double": {"type": "number"},
    "string": {"type": "string"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "uuid": {"type": "string", "format": "uuid"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string"},
    "timestamp": {"type": "string", "format": "date-time"},
    "local-timestamp": {"type": "string"},
}


def schema(name: str, doc: str, *, fields: Sequence[Member]) -> dict[str, Any]:
    """The schema of a feed's records."""
    title = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    return {"$schema": DIALECT, "title": title, "description": doc, **_object(fields)}


def _object(fields: Sequence[Member]) -> dict[str, Any]:
    required = [each.name for each in fields if not each.optional]
    return {
        "type": "object",
        **({"required": required} if required else {}),
        "properties": {each.name: _property(each) for each in fields},
    }


def _property(member: Member) -> dict[str, Any]:
    type_ = _type(member.type)
    notes = {"pii": member.pii, "description": member.doc}
    return {
        **(_or_null(type_) if member.nullable else type_),
        **{name: note for name, note in notes.items() if note},
    }


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    values = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*types, "null"], **values}


def _type(type_: Type) -> dict[str, Any]:
    match type_:
        case Simple(kind):
            return dict(SIMPLE[kind])
        case Exact():
            return {"type": "number"}
        case Enum(symbols):
            return {"type": "string", "enum": list(symbols)}
        case ListOf(items, nullable):
            inner = _type(items)
            return {"type": "array", "items": _or_null(inner) if nullable else inner}
        case MapOf(values, nullable):
            inner = _type(values)
            return {"type": "object", "additionalProperties": _or_null(inner) if nullable else inner}
        case Struct(fields):
            return _object(fields)
        case Choice(types):
            every = [_type(each) for each in types]
            # Each keyword speaks of values of its own type only, so that those of all types stand side by side.
            merged = {word: value for each in every for word, value in each.items() if word != "type"}
            return {"type": [each["type"] for each in every], **merged}
