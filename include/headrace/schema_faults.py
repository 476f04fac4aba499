"""The faults of a feed's schema: what its own language refuses, and the fields that cannot be columns, all at once."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace import change, rules
from headrace.avro_fields import defines
from headrace.column_kind import column_kind
from headrace.columns import Column, columns
from headrace.errors import FeedError
from headrace.fault import Fault, nearest, show
from headrace.feed import Feed
from headrace.registry.languages import LANGUAGES
from headrace.registry.schema import InvalidSchema, Parsed
from headrace.share import name_faults, share

PLACED = re.compile(r"#?(?P<path>/\S*?):? (?P<message>.*)", re.DOTALL)
"""How a schema's parser says where it stopped."""
JSON_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


def parsed(feed: Feed) -> Parsed:
    """The feed's schema in its own language; raises when it is none."""
    return LANGUAGES[feed.schema_type].new(json.dumps(feed.schema), {})


def schema_faults(feed: Feed) -> list[Fault]:
    """Every fault: a parser stops at its first, so each field that it stops at is taken out and the rest is parsed."""
    faults: list[Fault] = []
    rest: Feed | None = feed
    while rest:
        try:
            parsed(rest)
        except InvalidSchema as error:
            faults.append(_refused(feed, str(error)))
            rest = _without(rest, faults[-1].path)
        else:
            return [*faults, *_column_faults(rest, whole=not faults)]
    return faults


def _refused(feed: Feed, told: str) -> Fault:
    """A parser's refusal as a fault; a misspelt type of a JSON Schema with the nearest that there is."""
    placed = PLACED.fullmatch(told)
    path, message = (change.dotted(placed["path"]), placed["message"]) if placed else ("", told)
    if feed.schema_type == "JSON" and path.endswith(".type"):
        value = _value(feed.schema, path)
        if isinstance(value, str) and value not in JSON_TYPES:
            return Fault(
                "", path, f"is {show(value)}, which is no type of JSON Schema.", nearest(value, JSON_TYPES), value
            )
    return Fault("", path, message if message.endswith((".", "?")) else f"{message}.")


def _value(schema: Any, path: str) -> Any:
    for part in path.split("."):
        schema = schema.get(part) if isinstance(schema, Mapping) else None
    return schema


def _without(feed: Feed, path: str) -> Feed | None:
    """The feed with a harmless field in place of the one at a path; None if that tells nothing about the others."""
    match (feed.schema_type, path.split(".")):
        case "AVRO", ["fields", number, *_]:
            fields = list(feed.schema["fields"])
            if defines(fields[int(number)]) or fields[int(number)] == _harmless(number):
                # What the field defines may be what others refer to.
                return None
            fields[int(number)] = _harmless(number)
            return replace(feed, schema={**feed.schema, "fields": fields})
        case "JSON", ["properties", name, *_] if feed.schema["properties"].get(name):
            return replace(feed, schema={**feed.schema, "properties": {**feed.schema["properties"], name: {}}})
    return None


def _harmless(number: str) -> Mapping[str, Any]:
    return {"name": f"taken_out_{number}", "type": "string"}


def _column_faults(feed: Feed, *, whole: bool) -> list[Fault]:
    """The fields that cannot be columns; of a schema that is whole, also those that are not the columns asked for."""
    try:
        found = columns(feed)
    except FeedError as error:
        return [_column_fault(fault, feed) for fault in error.faults]
    return [*_kind_faults(feed, found), *_flattening_faults(feed)] if whole else []


def _column_fault(fault: Fault, feed: Feed) -> Fault:
    """A column's fault where the file has its field: columns go by names, and name what is inside them too."""
    inside = fault.path.rstrip(":")
    name = re.split(r"\W", inside)[0]
    found = [field.path for field in feed.fields if field.name == name]
    return replace(fault, path=found[0], message=f'the field "{inside}" {fault.message}') if found else fault


def _kind_faults(feed: Feed, found: Sequence[Column]) -> Iterator[Fault]:
    """What the rules find when they know each column, for fields whose kind the text alone did not tell."""
    kinds = {column.name: column_kind(column.type) for column in found}
    told = {field.name: field for field in feed.fields}
    known = {name: replace(field, kind=kinds.get(name, field.kind)) for name, field in told.items()}
    before = list(rules.faults(feed.declaration, told))
    for fault in rules.faults(feed.declaration, known):
        if fault not in before:
            yield replace(fault, path=f"{feed.attribute}.{fault.path}")


def _flattening_faults(feed: Feed) -> Iterator[Fault]:
    """What the rules cannot know of flattened records, since it takes their members."""
    fields = {field.name for field in feed.fields}
    for warehouse, declared in feed.declaration.warehouses.items():
        if not declared.flatten:
            continue
        shared = share(feed, warehouse)
        yield from (replace(fault, file="") for fault in name_faults(feed, shared))
        named = {name: "index" for index in declared.index for name in index}
        named |= {declared.distribute: "distribute"} if declared.distribute else {}
        for name, attribute in named.items():
            if name not in fields and name not in shared.names:
                path = f"{feed.attribute}.warehouses.{warehouse}.{attribute}"
                message = f'names "{name}", which is no column there.'
                yield Fault("", path, message, nearest(name, shared.names), name)
