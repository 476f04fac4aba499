"""JSON Schema's references: a schema with what it refers to, and all that must hold at once, merged into it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace import json_fields
from headrace.columns.unfit import Unfit

Schema = Mapping[str, Any]
AT_ONCE = ("$ref", "allOf")
STORES = ("$defs", "definitions")


@dataclass(frozen=True)
class Place:
    """Where a schema stands: the file around it, its path in a record, and the references that led there."""

    root: Schema
    unfit: list[Unfit]
    path: str = ""
    led_by: tuple[str, ...] = ("#",)

    def at(self, step: str) -> "Place":
        return replace(self, path=f"{self.path}{step}".removeprefix("."))

    def refuse(self, message: str, fix: str, value: Any) -> None:
        self.unfit.append(Unfit(self.path, message, fix, value))


def merged(schema: Any, place: Place) -> tuple[Schema, Place]:
    """The schema with its `$ref` and `allOf` merged into it, the outermost word winning, and where that leads.

    A schema that refers to one that it is in gives the empty schema there: anything.
    """
    whole: dict[str, Any] = {}
    led_by = list(place.led_by)
    for part in _parts(schema, place, led_by):
        if part is None:
            return {}, place
        whole = _joined(whole, part)
    return whole, replace(place, led_by=tuple(led_by))


def _parts(schema: Any, place: Place, led_by: list[str]) -> Iterator[Schema | None]:
    """The schema and all that hold at once with it; None for one that was met on the way here."""
    if not isinstance(schema, dict):
        return
    yield {word: value for word, value in schema.items() if word not in (*AT_ONCE, *STORES)}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference in place.led_by:
        yield None
    elif isinstance(reference, str) and reference not in led_by:
        led_by.append(reference)
        found = json_fields.target(reference, place.root)
        if found is None:
            message = f'refers to "{reference}", which is not in this file.'
            place.refuse(message, "Copy the definition under $defs, and refer to it there.", reference)
        yield from _parts(found, place, led_by)
    every = schema.get("allOf")
    for each in every if isinstance(every, list) else ():
        yield from _parts(each, place, led_by)


def _joined(one: Mapping[str, Any], other: Schema) -> dict[str, Any]:
    """Both schemas at once, as far as types go: members of both, required by either, the types that both allow."""
    whole = {**other, **one}
    if "properties" in one and "properties" in other:
        both = {name: _both(one["properties"], other["properties"], name) for name in other["properties"]}
        whole["properties"] = {**both, **{name: each for name, each in one["properties"].items() if name not in both}}
    if "required" in one and "required" in other:
        whole["required"] = [*one["required"], *other["required"]]
    if "type" in one and "type" in other:
        whole["type"] = _common(_listed(one["type"]), _listed(other["type"]))
    return whole


def _both(one: Schema, other: Schema, name: str) -> Any:
    return {"allOf": [one[name], other[name]]} if name in one else other[name]


def _listed(type_: Any) -> list[str]:
    return [type_] if isinstance(type_, str) else list(type_)


def _common(one: list[str], other: list[str]) -> list[str]:
    """The types that both allow; every integer is a number."""
    narrowed = [kind if kind in other else "integer" for kind in one if kind in other or _narrows(kind, other)]
    return list(dict.fromkeys(narrowed))


def _narrows(kind: str, other: list[str]) -> bool:
    return (kind == "number" and "integer" in other) or (kind == "integer" and "number" in other)
