"""The fields of a JSON Schema: its properties, with what stands behind local references."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import unquote

from headrace.field import PII, Field, Kind, Note, Schema, notes, word

KINDS: Mapping[str, Kind] = {
    "boolean": "boolean",
    "integer": "integer",
    "number": "float",
    "string": "string",
    "array": "array",
    "object": "struct",
}
# A time has an offset from UTC, which no table's time keeps, so it stays a text.
FORMATS: Mapping[str, Kind] = {"date-time": "timestamp", "date": "date", "uuid": "uuid"}
COMBINERS = ("allOf", "anyOf", "oneOf")
CONDITIONS = ("if", "then", "else", "not")
BY_PRESENCE = ("dependentSchemas", "dependencies")
"""What holds of an object where it has some property."""
BY_NAME = ("properties", "patternProperties", *BY_PRESENCE)
"""What holds schemas by names, which are no words of JSON Schema's."""
STORES = ("$defs", "definitions")
"""What holds schemas that describe nothing until they are referred to."""
DATA = ("const", "default", "dependentRequired", "discriminator", "enum", "example", "examples", "x-feed")
"""What holds values, or words of others, and no schemas."""
REFERRING = ("$ref", "$dynamicRef", "$recursiveRef")
ANCHORS = ("$anchor", "$dynamicAnchor")
Part = tuple[str, Schema]
"""A schema inside another, and its path in the file."""
Alternative = tuple[Kind | Literal["null"], Schema]
"""A kind that a value may have, and the schema that says so."""


def fields(schema: Schema) -> tuple[Field, ...]:
    required = [name for each in _behind(schema, root=schema, seen=set()) for name in _required(each)]
    return tuple(_field(name, each, required=name in required, root=schema) for name, each in written(schema).items())


def whole_record(schema: Schema) -> Iterator[Note]:
    """What is noted of the record as a whole."""
    for path, part in _of_record(("", schema), root=schema, seen=set()):
        yield from notes(path, part)


def written(schema: Schema) -> dict[str, Schema]:
    """The properties as they stand in the file, those of schemas that the root refers to or combines included."""
    parts = reversed(list(_behind(schema, root=schema, seen=set())))
    return {name: field for part in parts for name, field in _properties(part)}


def _properties(schema: Schema) -> Iterator[tuple[str, Schema]]:
    properties = schema.get("properties")
    for name, field in properties.items() if isinstance(properties, dict) else ():
        yield name, field if isinstance(field, dict) else {}


def _field(name: str, field: Schema, *, required: bool, root: Schema) -> Field:
    alternatives = list(_alternatives(field, root=root, seen=set()))
    found: set[Kind] = {kind for kind, _ in alternatives if kind != "null"}
    if found == {"integer", "float"}:
        found = {"float"}
    kind: Kind = "union" if len(found) > 1 else next(iter(found), "unknown")
    behind = (word(each.get("description")) for each in _behind(field, root=root, seen=set()))
    return Field(
        name,
        f"properties.{name}",
        kind,
        nullable=not required or any(each == "null" for each, _ in alternatives),
        doc=next((doc for doc in behind if doc), None),
        notes=tuple(_notes(name, root)),
        symbols=_symbols(alternatives) if kind == "string" else None,
    )


def _required(schema: Schema) -> list[Any]:
    required = schema.get("required")
    return required if isinstance(required, list) else []


def _alternatives(schema: Schema, *, root: Schema, seen: set[int]) -> Iterator[Alternative]:
    for each in _behind(schema, root=root, seen=seen):
        types = each.get("type")
        for name in types if isinstance(types, list) else [types] if isinstance(types, str) else ():
            if name == "null":
                yield "null", each
            elif name == "string":
                yield FORMATS.get(str(each.get("format")), "string"), each
            else:
                yield KINDS.get(str(name), "unknown"), each


def _behind(schema: Schema, *, root: Schema, seen: set[int]) -> Iterator[Schema]:
    """The schema itself, then those it refers to or combines; each once, for it may contain itself."""
    if id(schema) in seen:
        return
    seen.add(id(schema))
    yield schema
    for part in _parts(schema, root=root):
        yield from _behind(part, root=root, seen=seen)


def _parts(schema: Schema, *, root: Schema) -> Iterator[Schema]:
    if isinstance(found := target(str(schema.get("$ref")), root), dict):
        yield found
    for combiner in COMBINERS:
        combined = schema.get(combiner)
        yield from (each for each in combined if isinstance(each, dict)) if isinstance(combined, list) else ()


def target(reference: str, root: Schema) -> Any:
    """What a JSON pointer, or an anchor, in this file points at; None when it points nowhere."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    pointer = unquote(reference[1:])
    if pointer and not pointer.startswith("/"):
        return next(_anchored(root, pointer), None)
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            found = found.get(name) if isinstance(found, dict) else None
    return found


def _anchored(schema: Any, anchor: str) -> Iterator[Any]:
    if isinstance(schema, dict):
        names = [schema.get(each) for each in ANCHORS]
        if anchor in names or f"#{anchor}" in (schema.get("$id"), schema.get("id")):
            yield schema
        for each in schema.values():
            yield from _anchored(each, anchor)
    elif isinstance(schema, list):
        for each in schema:
            yield from _anchored(each, anchor)


def _symbols(alternatives: list[Alternative]) -> tuple[str, ...] | None:
    """The texts of an enum, where that is all there is: several alternatives may allow other texts too."""
    texts = [each for kind, each in alternatives if kind != "null"]
    if len(texts) != 1 or not isinstance(texts[0].get("enum"), list):
        return None
    return tuple(symbol for symbol in texts[0]["enum"] if isinstance(symbol, str))


def _notes(name: str, root: Schema) -> Iterator[Note]:
    """What is noted of a property, by whatever may describe it: better a word too many than one that nobody reads."""
    seen: set[int] = set()
    for record in _of_record(("", root), root=root, seen=set()):
        for part in _describing(name, record):
            for path, schema in _inside(part, root=root, seen=seen):
                yield from notes(path, schema)


def _of_record(part: Part, *, root: Schema, seen: set[int]) -> Iterator[Part]:
    """The schemas that describe the record itself, whatever has to hold besides; each once."""
    path, schema = part
    if id(schema) in seen:
        return
    seen.add(id(schema))
    yield part
    within = [*_referred(schema, root)]
    within += [each for name in (*COMBINERS, *CONDITIONS) for each in _at(path, name, schema.get(name))]
    within += [each for name in BY_PRESENCE for each in _by_name(_dotted(path, name), schema.get(name))]
    for each in within:
        yield from _of_record(each, root=root, seen=seen)


def _describing(name: str, record: Part) -> Iterator[Part]:
    """What a record's schema says of one property."""
    path, schema = record
    listed = dict(_properties(schema))
    if name in listed:
        yield _dotted(path, f"properties.{name}"), listed[name]
    else:
        yield from _at(path, "additionalProperties", schema.get("additionalProperties"))
    patterns = schema.get("patternProperties")
    for pattern, each in patterns.items() if isinstance(patterns, dict) else ():
        if isinstance(each, dict) and _matches(pattern, name):
            yield _dotted(path, f"patternProperties.{pattern}"), each


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:  # a pattern of JavaScript's that Python does not know
        return True


def _inside(part: Part, *, root: Schema, seen: set[int]) -> Iterator[Part]:
    """A schema and every one inside it, with those that they refer to; each once, for it may contain itself."""
    path, schema = part
    if id(schema) in seen:
        return
    seen.add(id(schema))
    yield part
    within = [*_referred(schema, root)]
    for name, value in schema.items():
        if name in BY_NAME:
            within += _by_name(_dotted(path, name), value)
        elif name not in (*DATA, *STORES, PII):
            within += _at(path, name, value)
    for each in within:
        yield from _inside(each, root=root, seen=seen)


def _referred(schema: Schema, root: Schema) -> Iterator[Part]:
    """What a schema refers to; a reference that leads nowhere in this file may lead anywhere in it."""
    for referring in REFERRING:
        if isinstance(reference := schema.get(referring), str):
            found = target(reference, root)
            there = unquote(reference).removeprefix("#").strip("/").replace("/", ".")
            yield (there, found) if isinstance(found, dict) else ("", root)


def _at(path: str, name: str, value: Any) -> Iterator[Part]:
    """The schemas under a word: one, or a list of them."""
    if isinstance(value, dict):
        yield _dotted(path, name), value
    for place, each in enumerate(value if isinstance(value, list) else ()):
        if isinstance(each, dict):
            yield _dotted(path, f"{name}.{place}"), each


def _by_name(path: str, value: Any) -> Iterator[Part]:
    for name, each in value.items() if isinstance(value, dict) else ():
        if isinstance(each, dict):
            yield _dotted(path, name), each


def _dotted(path: str, step: str) -> str:
    return f"{path}.{step}" if path else step
