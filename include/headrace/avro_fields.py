"""The fields of an Avro record, read from its text without asking whether the whole of it is Avro."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.field import Field, Kind, Note, Schema, notes, word

NAMED = ("record", "error", "enum", "fixed")
INSIDE = ("type", "items", "values")
"""Where a type or a field names its types."""
Part = tuple[str, Schema]
"""A type or a field, and its path in the file."""
KINDS: Mapping[str, Kind] = {
    "boolean": "boolean",
    "int": "integer",
    "long": "integer",
    "float": "float",
    "double": "float",
    "string": "string",
    "bytes": "bytes",
    "enum": "string",
    "fixed": "bytes",
    "array": "array",
    "map": "map",
    "record": "struct",
    "error": "struct",
}
# A logical type over another type than its own is ignored, as the Avro specification says.
LOGICALS: Mapping[tuple[str, str], Kind] = {
    ("bytes", "decimal"): "decimal",
    ("fixed", "decimal"): "decimal",
    ("string", "uuid"): "uuid",
    ("fixed", "uuid"): "uuid",
    ("int", "date"): "date",
    ("int", "time-millis"): "time",
    ("long", "time-micros"): "time",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "timestamp-nanos"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp",
    ("long", "local-timestamp-micros"): "timestamp",
    ("long", "local-timestamp-nanos"): "timestamp",
}


def fields(schema: Schema) -> tuple[Field, ...]:
    """What is written as a field; the rest is the schema parser's to refuse."""
    defined: dict[str, list[Part]] = defaultdict(list)
    for name, part in _named(("", schema), ""):
        defined[name].append(part)
    named = {name: parts[-1][1] for name, parts in defined.items()}
    return tuple(_field(each, f"fields.{place}", named=named, defined=defined) for place, each in _written(schema))


def whole_record(schema: Schema) -> Iterator[Note]:
    """What is noted of the record as a whole."""
    return notes("", schema)


def _written(schema: Schema) -> Iterator[tuple[int, Schema]]:
    fields = schema.get("fields")
    for place, field in enumerate(fields if isinstance(fields, list) else ()):
        if isinstance(field, dict) and isinstance(field.get("name"), str):
            yield place, field


def defines(field: Any) -> bool:
    """Whether a field defines a type that others may refer to by its name."""
    return isinstance(field, dict) and any(True for _ in _named(("", field), ""))


def _named(part: Part, namespace: str) -> Iterator[tuple[str, Part]]:
    """Every type that has a name, by its short and by its full one."""
    path, type_ = part
    inner = namespace
    if type_.get("type") in NAMED and (name := word(type_.get("name"))):
        before, _, short = name.rpartition(".")
        inner = before or word(type_.get("namespace")) or namespace
        yield from ((short, part), (f"{inner}.{short}", part))
    for there, each in _within(path, type_):
        yield from _named((there, each), inner) if isinstance(each, dict) else ()


def _within(path: str, type_: Schema) -> Iterator[tuple[str, Any]]:
    """What stands inside a type, or a field, with its path: types, names of types, and fields."""
    for inner in INSIDE:
        for place, each in enumerate(_members(type_.get(inner))):
            steps = (path, inner, str(place) if isinstance(type_.get(inner), list) else "")
            yield ".".join(filter(None, steps)), each
    for place, field in _written(type_):
        yield ".".join(filter(None, (path, f"fields.{place}"))), field


def _field(field: Schema, path: str, *, named: Mapping[str, Schema], defined: Mapping[str, list[Part]]) -> Field:
    members = _types(field.get("type"), named)
    others = [member for member in members if member.get("type") != "null"]
    alone = others[0] if len(others) == 1 else None
    return Field(
        field["name"],
        path,
        "union" if len(others) > 1 else _kind(alone or {}),
        nullable=len(others) < len(members),
        doc=word(field.get("doc")),
        notes=tuple(_notes((path, field), defined=defined, seen=set())),
        symbols=_symbols(alone or {}),
        aliases=tuple(alias for alias in _members(field.get("aliases") or []) if isinstance(alias, str)),
    )


def _members(type_: Any) -> list[Any]:
    return type_ if isinstance(type_, list) else [type_]


def _types(type_: Any, named: Mapping[str, Schema]) -> list[Schema]:
    """A type's members as objects, whichever way they were written: alone, by name or as `{"type": {…}}`."""
    found: list[Schema] = []
    for member in _members(type_):
        if isinstance(member, str):
            found.append(named.get(member, {"type": member}))
        elif isinstance(member, dict) and isinstance(member.get("type"), dict | list):
            found += _types(member["type"], named)
        elif isinstance(member, dict):
            found.append(member if member.get("type") not in named else named[member["type"]])
        else:
            found.append({})
    return found


def _kind(type_: Schema) -> Kind:
    name = str(type_.get("type"))
    return LOGICALS.get((name, str(type_.get("logicalType"))), KINDS.get(name, "unknown"))


def _symbols(type_: Schema) -> tuple[str, ...] | None:
    symbols = type_.get("symbols") if type_.get("type") == "enum" else None
    return tuple(str(symbol) for symbol in symbols) if isinstance(symbols, list) else None


def _notes(part: Part, *, defined: Mapping[str, list[Part]], seen: set[int]) -> Iterator[Note]:
    """What is noted of a field, or of a type, and of all inside it; each is entered once, for it may contain itself."""
    path, type_ = part
    if id(type_) in seen:
        return
    seen.add(id(type_))
    yield from notes(path, type_)
    for there, each in _within(path, type_):
        known = [(there, each)] if isinstance(each, dict) else defined.get(each, []) if isinstance(each, str) else []
        for below in known:
            yield from _notes(below, defined=defined, seen=seen)
