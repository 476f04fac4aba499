"""Defaults: whether a value in JSON is one of a type, since a default that is not breaks each reader that needs it."""

import json
from collections.abc import Mapping
from typing import Any

from headrace.registry.avro.types import Array, Definition, Enum, Fixed, Kind, Map, Record, Schema, Type, Union

_INTEGERS: Mapping[Kind, int] = {Kind.INT: 2**31, Kind.LONG: 2**63}


def misfit(schema: Schema, type_: Type, *, value: Any) -> str | None:
    """Why the value is none of the type; nothing when it is one.

    Stricter than Avro's Java parser in four things that it lets pass and its readers or others then stumble over: a
    symbol that the enum lacks, a fixed of another length, a character that is no byte, a field that the record lacks.
    """
    definition = schema.definition(type_)
    match definition:
        case Array(items):
            return _first(schema, items, values=value) if isinstance(value, list) else _no(value, definition)
        case Map(values):
            return _first(schema, values, values=value.values()) if isinstance(value, dict) else _no(value, definition)
        case Union(branches):
            fits = any(misfit(schema, branch, value=value) is None for branch in branches)
            return None if fits else f"{_shown(value)} fits no branch of the union"
        case Record():
            return _record(schema, definition, value=value)
        case _:
            return _scalar(definition, value=value)


def _first(schema: Schema, type_: Type, *, values: Any) -> str | None:
    return next((why for value in values if (why := misfit(schema, type_, value=value))), None)


def _record(schema: Schema, record: Record, *, value: Any) -> str | None:
    if not isinstance(value, dict):
        return _no(value, record)
    if extra := value.keys() - {field.name for field in record.fields}:
        return f"the record {record.name} has no field {_shown(min(extra))}"
    for field in record.fields:
        if field.name not in value and field.default is None:
            return f"it lacks the field {_shown(field.name)} of the record {record.name}"
        given = value[field.name] if field.name in value or field.default is None else field.default.value
        if why := misfit(schema, field.type, value=given):
            return f"{field.name}: {why}"
    return None


def _scalar(definition: Definition, *, value: Any) -> str | None:
    match definition:
        case Enum(symbols=symbols) if isinstance(value, str):
            return None if value in symbols else f"{_shown(value)} is no symbol of the enum {definition.name}"
        case Fixed(size=size) if _is_bytes(value):
            return None if len(value) == size else f"{_shown(value)} has {len(value)} bytes and the fixed {size}"
    match definition.kind:
        case Kind.NULL:
            fits = value is None
        case Kind.BOOLEAN:
            fits = isinstance(value, bool)
        case Kind.INT | Kind.LONG as kind:
            fits = type(value) is int and -_INTEGERS[kind] <= value < _INTEGERS[kind]
        case Kind.FLOAT | Kind.DOUBLE:
            fits = type(value) in (int, float)
        case Kind.STRING:
            fits = isinstance(value, str)
        case Kind.BYTES:
            fits = _is_bytes(value)
        case _:
            fits = False
    return None if fits else _no(value, definition)


def _is_bytes(value: Any) -> bool:
    # Avro writes bytes as text, each byte as the character of that number.
    return isinstance(value, str) and all(ord(character) < 256 for character in value)


def _no(value: Any, definition: Definition) -> str:
    return f"{_shown(value)} is no {definition.kind.value}"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
