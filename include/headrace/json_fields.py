"""The fields of a JSON Schema: its properties, with what stands behind local references."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from headrace.field import Field, Kind, Schema, kinds, word

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
Alternative = tuple[Kind | Literal["null"], Schema]
"""A kind that a value may have, and the schema that says so."""


def fields(schema: Schema) -> tuple[Field, ...]:
    required = [name for each in _behind(schema, root=schema, seen=set()) for name in _required(each)]
    return tuple(_field(name, each, required=name in required, root=schema) for name, each in written(schema).items())


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
        kinds=kinds(field.get("pii"), _personal(field, root=root, seen=set())),
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
    if (target := _target(schema, root)) is not None:
        yield target
    for combiner in COMBINERS:
        combined = schema.get(combiner)
        yield from (each for each in combined if isinstance(each, dict)) if isinstance(combined, list) else ()


def _target(schema: Schema, root: Schema) -> Schema | None:
    """What a local reference points at."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for part in reference.split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _symbols(alternatives: list[Alternative]) -> tuple[str, ...] | None:
    """The texts of an enum, where that is all there is: several alternatives may allow other texts too."""
    texts = [each for kind, each in alternatives if kind != "null"]
    if len(texts) != 1 or not isinstance(texts[0].get("enum"), list):
        return None
    return tuple(symbol for symbol in texts[0]["enum"] if isinstance(symbol, str))


def _personal(schema: Schema, *, root: Schema, seen: set[int]) -> Iterator[str]:
    """The personal data inside objects, arrays and what they refer to; each schema is entered once."""
    if id(schema) in seen:
        return
    seen.add(id(schema))
    inner = [field for _, field in _properties(schema)]
    inner += [part for name in ("items", "additionalProperties") if isinstance(part := schema.get(name), dict)]
    for part in (*inner, *_parts(schema, root=root)):
        if pii := word(part.get("pii")):
            yield pii
        yield from _personal(part, root=root, seen=seen)
