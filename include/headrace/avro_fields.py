"""The fields of an Avro record, read from its text without asking whether the whole of it is Avro."""

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.field import Field, Kind, Schema, kinds, word

NAMED = ("record", "error", "enum", "fixed")
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
    named = dict(_named(schema, ""))
    return tuple(_field(each, f"fields.{place}", named=named) for place, each in _written(schema))


def _written(schema: Schema) -> Iterator[tuple[int, Schema]]:
    fields = schema.get("fields")
    for place, field in enumerate(fields if isinstance(fields, list) else ()):
        if isinstance(field, dict) and isinstance(field.get("name"), str):
            yield place, field


def defines(field: Any) -> bool:
    """Whether a field defines a type that others may refer to by its name."""
    return isinstance(field, dict) and any(True for _ in _named(field.get("type"), ""))


def _named(type_: Any, namespace: str) -> Iterator[tuple[str, Schema]]:
    """Every type that has a name, by its short and by its full one."""
    for member in _members(type_):
        if not isinstance(member, dict):
            continue
        inner = namespace
        if member.get("type") in NAMED and (name := word(member.get("name"))):
            before, _, short = name.rpartition(".")
            inner = before or word(member.get("namespace")) or namespace
            yield from ((short, member), (f"{inner}.{short}", member))
        for part in (member.get("type"), member.get("items"), member.get("values")):
            yield from _named(part, inner)
        for _, field in _written(member):
            yield from _named(field.get("type"), inner)


def _field(field: Schema, path: str, *, named: Mapping[str, Schema]) -> Field:
    members = _types(field.get("type"), named)
    others = [member for member in members if member.get("type") != "null"]
    alone = others[0] if len(others) == 1 else None
    return Field(
        field["name"],
        path,
        "union" if len(others) > 1 else _kind(alone or {}),
        nullable=len(others) < len(members),
        doc=word(field.get("doc")),
        kinds=kinds(field.get("pii"), _personal(others, named=named, seen=set())),
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


def _personal(types: list[Schema], *, named: Mapping[str, Schema], seen: set[int]) -> Iterator[str]:
    """The personal data inside records, arrays and maps; each type is entered once, for it may contain itself."""
    for type_ in types:
        if id(type_) in seen:
            continue
        seen.add(id(type_))
        inner = [type_.get("items"), type_.get("values")]
        for _, field in _written(type_):
            if pii := word(field.get("pii")):
                yield pii
            inner.append(field.get("type"))
        below = [each for part in inner if part is not None for each in _types(part, named)]
        yield from _personal(below, named=named, seen=seen)
