"""The normal form of an Avro schema: one for all that differ only in attributes' order or a default's spelling."""

import struct
from dataclasses import replace
from typing import Any

from headrace.registry.avro.defaults import misfit
from headrace.registry.avro.logical import logical
from headrace.registry.avro.types import (
    Array,
    ByName,
    Default,
    Field,
    Kind,
    Map,
    Named,
    Primitive,
    Props,
    Record,
    Schema,
    Type,
    Union,
)


def normalize(schema: Schema) -> Schema:
    """The schema with everything sorted whose order says nothing, as Confluent's `normalize=true` has it."""
    return Schema(_type(schema.root), {name: _named(schema, named) for name, named in schema.named.items()})


def _type(type_: Type) -> Type:
    match type_:
        case Primitive(kind):
            return Primitive(kind, _props(type_))
        case Array(items):
            return Array(_type(items), _props(type_))
        case Map(values):
            return Map(_type(values), _props(type_))
        case Union(branches):
            return Union(tuple(map(_type, branches)))
        case ByName():
            return type_


def _named(schema: Schema, named: Named) -> Named:
    described: dict[str, Any] = {
        "doc": named.doc or None,
        "aliases": tuple(sorted(named.aliases)),
        "props": _props(named),
    }
    if isinstance(named, Record):
        # An error is a record that a protocol throws; a schema by itself throws nothing.
        described |= {"fields": tuple(_field(schema, field) for field in named.fields), "error": False}
    return replace(named, **described)


def _field(schema: Schema, field: Field) -> Field:
    default = field.default and Default(_value(schema, field.type, value=field.default.value))
    return replace(
        field,
        type=_type(field.type),
        default=default,
        aliases=tuple(sorted(field.aliases)),
        props=_sorted(field.props),
    )


def _props(definition: Primitive | Array | Map | Named) -> Props:
    """Sorted, after those that make the logical type."""
    props = _sorted(definition.props)
    found = logical(definition)
    first = [] if found is None else ["logicalType", *(["precision", "scale"] if found.name == "decimal" else [])]
    # A scale of zero says what no scale says, and so is no part of the logical type.
    ahead = [key for key in first if key in props and not (key == "scale" and props[key] == 0)]
    return {key: props[key] for key in dict.fromkeys([*ahead, *props])}


def _sorted(value: Any) -> Any:
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case list():
            return [_sorted(inner) for inner in value]
        case _:
            return value


def _value(schema: Schema, type_: Type, *, value: Any) -> Any:
    """A default in one spelling: a floating number with a point, an object sorted."""
    definition = schema.definition(type_)
    match definition, value:
        case Union(branches), _:
            fitting = (branch for branch in branches if misfit(schema, branch, value=value) is None)
            branch = next(fitting, None)
            return value if branch is None else _value(schema, branch, value=value)
        case Array(items), list():
            return [_value(schema, items, value=inner) for inner in value]
        case Map(values), dict():
            return {key: _value(schema, values, value=value[key]) for key in sorted(value)}
        case Record(fields=fields), dict():
            types = {field.name: field.type for field in fields}
            return {key: _value(schema, types[key], value=value[key]) for key in sorted(value.keys() & types.keys())}
        case _ if type(value) in (int, float) and definition.kind in (Kind.FLOAT, Kind.DOUBLE):
            return _single(float(value)) if definition.kind is Kind.FLOAT else float(value)
        case _:
            return value


def _single(value: float) -> float:
    """The shortest number that is the same in single precision."""
    try:
        packed = struct.pack("f", value)
    except OverflowError:
        return value
    return next(
        (short for digits in range(6, 10) if struct.pack("f", short := float(f"{value:.{digits}g}")) == packed), value
    )
