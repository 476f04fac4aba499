"""JSON Schema: what each of its constructs becomes as a column; what has no column type of its own is JSON text."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.types import (
    BooleanType,
    DateType,
    DoubleType,
    IcebergType,
    LongType,
    StringType,
    TimestamptzType,
    UUIDType,
)

from headrace.columns.field_type import FieldType, alike, list_of, map_of, struct
from headrace.columns.json_references import Place, Schema, merged
from headrace.columns.texts import JsonText
from headrace.columns.unfit import Unfit
from headrace.feed import FIELD

PRIMITIVES: Mapping[str, IcebergType] = {
    "boolean": BooleanType(),
    "integer": LongType(),
    "number": DoubleType(),
    "string": StringType(),
}
# A time has an offset from UTC, which no warehouse's time keeps, so it stays a text, as every other format does.
FORMATS: Mapping[str, IcebergType] = {"date-time": TimestamptzType(), "date": DateType(), "uuid": UUIDType()}

# A schema without a type that uses one of these words is about values of this type.
TELLING: Mapping[str, Sequence[str]] = {
    "object": ("properties", "additionalProperties", "patternProperties", "required", "propertyNames"),
    "array": ("items", "prefixItems", "contains", "uniqueItems", "minItems", "maxItems"),
    "string": ("format", "pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
Typed = tuple[IcebergType, bool]
"""A type, and whether null is allowed besides its values."""


def fields(schema: Schema, unfit: list[Unfit]) -> list[FieldType]:
    """The properties of an object; what cannot be a column is added to `unfit`."""
    whole, place = merged(schema, Place(schema, unfit))
    found = _fields(whole, place)
    for name in alike(field.name for field in found):
        unfit.append(Unfit(name, "differs from another property only in capitals.", "Rename one.", name))
    return found


def _fields(schema: Schema, place: Place) -> list[FieldType]:
    required = schema.get("required", ())
    found = []
    for name, each in schema.get("properties", {}).items():
        type_, nullable = _typed(each, place.at(f".{name}"))
        doc = each.get("description") if isinstance(each, dict) else None
        found.append(FieldType(name, type_, required=name in required and not nullable, doc=doc))
    return found


def _typed(schema: Any, outer: Place) -> Typed:
    """The type of a schema and whether it allows null."""
    whole, place = merged(schema, outer)
    for word in ("anyOf", "oneOf"):
        # Beside properties, alternatives usually say which of them are required together.
        if isinstance(whole.get(word), list) and "properties" not in whole:
            return _alternatives(word, whole, place)
    kinds = _kinds(whole)
    others = [kind for kind in kinds if kind != "null"]
    if set(others) == {"integer", "number"}:
        others = ["number"]
    if kinds == ["null"]:
        return StringType(), True  # a column needs some type; this one is never filled
    type_ = _single(others[0], whole, place) if len(others) == 1 else JsonText()
    return type_, len(others) < len(kinds) or not kinds


def _alternatives(word: str, schema: Schema, place: Place) -> Typed:
    """The one type of all that are let through, null aside; JSON text where they are of several."""
    around = {key: value for key, value in schema.items() if key != word}
    every = [_typed({"allOf": [around, each]}, place) for each in schema[word] if not _is_null(each)]
    nullable = any(_is_null(each) for each in schema[word]) or any(null for _, null in every)
    types = {repr(type_): type_ for type_, _ in every}
    if set(types) == {repr(LongType()), repr(DoubleType())}:
        return DoubleType(), nullable
    return next(iter(types.values())) if len(types) == 1 else JsonText(), nullable


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and (schema.get("type") in ("null", ["null"]) or schema.get("const", ...) is None)


def _kinds(schema: Schema) -> list[str]:
    """The types that a schema lets through: those it names, those of its values, or what its words are about."""
    declared = schema.get("type")
    if declared is not None:
        return [declared] if isinstance(declared, str) else list(declared)
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    if values:
        return list(dict.fromkeys(_kind(value) for value in values))
    return [kind for kind, words in TELLING.items() if any(word in schema for word in words)]


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _single(kind: str, schema: Schema, place: Place) -> IcebergType:
    match kind:
        case "object":
            return _object(schema, place)
        case "array":
            return _array(schema, place)
        case "string":
            return FORMATS.get(str(schema.get("format")), StringType())
        case _ if kind in PRIMITIVES:
            return PRIMITIVES[kind]
    place.refuse(f'is of type "{kind}", which JSON Schema does not know.', "Name one that it knows.", kind)
    return JsonText()


def _object(schema: Schema, place: Place) -> IcebergType:
    """Named members make a struct, members of one type a map; anything else is JSON text."""
    names = list(schema.get("properties", {}))
    if names:
        nameable = all(FIELD.fullmatch(name) for name in names) and not alike(names)
        return struct(_fields(schema, place)) if nameable else JsonText()
    values = schema.get("additionalProperties")
    if not isinstance(values, dict) or "patternProperties" in schema:
        return JsonText()
    type_ = _typed(values, place.at("{}"))[0]
    return JsonText() if isinstance(type_, JsonText) else map_of(type_)


def _array(schema: Schema, place: Place) -> IcebergType:
    """Items of one type make a list; a tuple, or items of any kind, is JSON text."""
    items = schema.get("items")
    if not isinstance(items, dict) or "prefixItems" in schema:
        return JsonText()
    type_ = _typed(items, place.at("[]"))[0]
    return JsonText() if isinstance(type_, JsonText) else list_of(type_)
