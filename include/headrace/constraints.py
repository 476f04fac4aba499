"""Constraints: what a schema says of a field's values beyond their type: symbols, bounds, lengths and patterns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.columns.json_references import Place, merged
from headrace.feed import Feed
from headrace.java_pattern import java_pattern

Schema = Mapping[str, Any]
ALTERNATIVES = ("anyOf", "oneOf")


@dataclass(frozen=True)
class Bound:
    """A smallest or a largest value, itself allowed or not."""

    value: float
    strict: bool = False


@dataclass(frozen=True)
class Constraint:
    """What one field's values must meet; null always may, as far as these go."""

    symbols: tuple[Any, ...] | None = None
    low: Bound | None = None
    high: Bound | None = None
    shortest: int | None = None
    longest: int | None = None
    pattern: str | None = None
    """As Java reads it, searched for anywhere in the text."""


def constraints(feed: Feed) -> dict[str, Constraint]:
    """By field; fields without any are left out."""
    found = _of_json(feed.schema) if feed.schema_type == "JSON" else _of_avro(feed.schema)
    return {name: constraint for name, constraint in found if constraint != Constraint()}


def _of_avro(schema: Schema) -> Iterator[tuple[str, Constraint]]:
    """Avro knows enums, also as a member of a union; a decimal's precision and a fixed's size are its type."""
    named = {each["name"]: each for each in _enums(schema)}
    for field in schema["fields"]:
        members = field["type"] if isinstance(field["type"], list) else [field["type"]]
        enums = [_enum(member, named) for member in members if member != "null"]
        if len(enums) == 1 and enums[0]:
            yield field["name"], Constraint(symbols=tuple(enums[0]["symbols"]))


def _enum(type_: Any, named: Mapping[str, Schema]) -> Schema | None:
    if isinstance(type_, dict) and type_.get("type") == "enum":
        return type_
    return named.get(type_) if isinstance(type_, str) else None


def _enums(schema: Any) -> Iterator[Schema]:
    """Every enum that is defined anywhere: a later field may call it by its name."""
    if isinstance(schema, list):
        for each in schema:
            yield from _enums(each)
    elif isinstance(schema, dict):
        if schema.get("type") == "enum" and isinstance(schema.get("name"), str):
            yield schema
        for each in (schema.get("type"), schema.get("fields"), schema.get("items"), schema.get("values")):
            yield from _enums(each)


def _of_json(schema: Schema) -> Iterator[tuple[str, Constraint]]:
    whole, place = merged(schema, Place(schema, []))
    for name, each in whole.get("properties", {}).items():
        yield name, _constraint(_single(each, place.at(f".{name}")))


def _single(schema: Any, outer: Place) -> Schema:
    """A schema with all that holds with it: references, and the one alternative besides null."""
    whole, place = merged(schema, outer)
    for word in ALTERNATIVES:
        others = [each for each in whole.get(word, ()) if isinstance(each, dict) and each.get("type") != "null"]
        if word in whole and len(others) == 1:
            around = {key: value for key, value in whole.items() if key != word}
            return _single({"allOf": [around, others[0]]}, place)
    return whole


def _constraint(schema: Schema) -> Constraint:
    values = (
        schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else None
    )
    symbols = tuple(value for value in values if value is not None) if values else None
    pattern = schema.get("pattern")
    return Constraint(
        symbols=symbols or None,
        low=_bound(schema, "minimum", "exclusiveMinimum", tighter=max),
        high=_bound(schema, "maximum", "exclusiveMaximum", tighter=min),
        shortest=_length(schema.get("minLength")) or None,
        longest=_length(schema.get("maxLength")),
        pattern=java_pattern(pattern) if isinstance(pattern, str) else None,
    )


def _bound(schema: Schema, word: str, exclusive: str, *, tighter: Any) -> Bound | None:
    """Draft 4 says by a boolean that the bound itself is left out, later ones give it there."""
    plain, strict = schema.get(word), schema.get(exclusive)
    if isinstance(strict, bool):
        return Bound(plain, strict) if _is_number(plain) else None  # type: ignore[arg-type]
    both = [Bound(value, is_strict) for value, is_strict in ((strict, True), (plain, False)) if _is_number(value)]  # type: ignore[arg-type]
    return tighter(both, key=lambda bound: bound.value) if both else None


def _is_number(value: Any) -> bool:
    """Whether it is one that Spark can compare with; what is beyond 64 bits bounds no column of ours."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63


def _length(value: Any) -> int | None:
    return int(value) if _is_number(value) else None
