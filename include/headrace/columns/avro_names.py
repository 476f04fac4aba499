"""Avro's names: a schema with every reference replaced by what it stands for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.columns.unfit import Unfit

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
RECORDS = ("record", "error")
NAMED = (*RECORDS, "enum", "fixed")
NOTHING: Mapping[str, Any] = {"type": "null"}
"""What stands in the place of a type that is unfit."""


@dataclass(frozen=True)
class Place:
    """Where a type stands: its path, the namespace around it and the records it is inside of."""

    path: str = ""
    namespace: str = ""
    inside: tuple[str, ...] = ()
    known: dict[str, Any] = field(default_factory=dict)
    """The types named so far, by full name; Avro defines a name where it is first used."""

    def at(self, path: str) -> "Place":
        return replace(self, path=path)


def resolved(schema: Any, unfit: list[Unfit]) -> Any:
    """A schema whose types are all objects, none of them a reference; what cannot be resolved is added to `unfit`."""
    return _resolve(schema, Place(), unfit)


def _resolve(type_: Any, place: Place, unfit: list[Unfit]) -> Any:
    if isinstance(type_, list):
        return [_resolve(member, place, unfit) for member in type_]
    if isinstance(type_, str):
        return {"type": type_} if type_ in PRIMITIVES else _reference(type_, place, unfit)
    kind = type_.get("type") if isinstance(type_, dict) else None
    match kind:
        case "array":
            return {**type_, "items": _resolve(type_.get("items"), place.at(f"{place.path}[]"), unfit)}
        case "map":
            return {**type_, "values": _resolve(type_.get("values"), place.at(f"{place.path}{{}}"), unfit)}
        case str() if kind in NAMED:
            return _named(type_, place, unfit)
        case str() if kind in PRIMITIVES:
            return type_
        case None:
            unfit.append(Unfit(place.path, f"is {type_!r}, which is no Avro type.", "Name one.", type_))
            return NOTHING
    return _resolve(kind, place, unfit)


def _reference(name: str, place: Place, unfit: list[Unfit]) -> Any:
    full = next((each for each in _candidates(name, place.namespace) if each in (*place.known, *place.inside)), None)
    if full in place.inside:
        message = f'refers to "{name}", the record that it is in; a table has no type without end.'
        unfit.append(
            Unfit(place.path, message, "Refer to the other row by its key, or hold it as a JSON string.", name)
        )
        return NOTHING
    if full is None:
        message = f'is "{name}", which is neither an Avro type nor a name defined before it.'
        unfit.append(Unfit(place.path, message, "Define it where it is first used.", name))
        return NOTHING
    return place.known[full]


def _candidates(name: str, namespace: str) -> tuple[str, ...]:
    return (name,) if "." in name or not namespace else (f"{namespace}.{name}", name)


def _named(type_: Mapping[str, Any], place: Place, unfit: list[Unfit]) -> Any:
    before, _, short = str(type_.get("name", "")).rpartition(".")
    namespace = before or type_.get("namespace", place.namespace) or ""
    full = f"{namespace}.{short}" if namespace else short
    # A reference may stand where another namespace rules.
    whole = {**type_, "name": short, "namespace": namespace}
    if type_["type"] not in RECORDS:
        place.known[full] = whole
        return whole
    within = replace(place, namespace=namespace, inside=(*place.inside, full))
    dot = f"{place.path}." if place.path else ""
    fields = [
        {**each, "type": _resolve(each.get("type"), within.at(f"{dot}{each['name']}"), unfit)}
        for each in type_.get("fields", ())
    ]
    place.known[full] = {**whole, "fields": fields}
    return place.known[full]


def separate(type_: Any, numbers: Iterator[int]) -> Any:
    """A resolved type as a schema that stands alone: each definition is in a namespace of its own, so none clashes."""
    if isinstance(type_, list):
        return [separate(member, numbers) for member in type_]
    apart = dict(type_)
    for part in ("items", "values"):
        if part in apart:
            apart[part] = separate(apart[part], numbers)
    if "fields" in apart:
        apart["fields"] = [{**each, "type": separate(each["type"], numbers)} for each in apart["fields"]]
    if apart["type"] in NAMED:
        apart |= {"name": apart["name"].rpartition(".")[2], "namespace": f"part{next(numbers)}", "aliases": []}
    return apart
