"""A subject that is already registered as a starter: its schema as it is, with a declaration added."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.errors import FeedError
from headrace.feed import ATTRIBUTES, FIELDS, SchemaType
from headrace.field import Field
from headrace.starter import guessing, personal
from headrace.starter.draft import Guess, Said, Starter, declaration, of_schema, remarks

IDENTITIES = ("string", "integer", "uuid")


def starter(name: str, subject: str, *, text: str, schema_type: SchemaType, said: Said) -> Starter:
    """The subject's newest schema as a feed file; what it already declares is kept."""
    schema = json.loads(text)
    if not isinstance(schema, dict):
        raise FeedError(f"subject {subject}: its schema is {json.dumps(schema)}; a feed's records have named fields.")
    fields = FIELDS[schema_type](schema)
    if declared := schema.get(ATTRIBUTES[schema_type]):
        return of_schema(name, schema, schema_type=schema_type, declaration=_followed(declared, name, subject=subject))
    names = [field.name for field in fields]
    order = guessing.known(said.order, names, option="--order") or _order(fields)
    key = guessing.known(said.key, names, option="--key") or _key(name, fields)
    if not key:
        raise guessing.keyless(name, names)
    guessed = {kind.name: found for kind in fields if not kind.pii and (found := _personal(kind))}
    noted = [*(field.name for field in fields if field.pii), *guessed]
    guesses = [
        *([] if said.key else [Guess("key", f"{key[0]}: it is named like an id")]),
        *([] if said.order or not order else [Guess("order", f"{order[0]}: it is named like a count of versions")]),
        *remarks(said, order=order, personal=noted),
    ]
    return of_schema(
        name,
        _noted(schema, guessed, schema_type=schema_type),
        schema_type=schema_type,
        declaration=_followed(declaration(said, key=key, order=order), name, subject=subject),
        guesses=guesses,
    )


def _followed(declared: Mapping[str, Any], name: str, *, subject: str) -> dict[str, Any]:
    """The declaration with the subject's own topic, where that is not called like the feed."""
    topic = subject.removesuffix("-value")
    if topic == name or "name" in declared.get("topic", {}):
        return dict(declared)
    return {**declared, "topic": {"name": topic, **declared.get("topic", {})}}


def _order(fields: Sequence[Field]) -> list[str]:
    found = guessing.order(field.name for field in fields if field.kind == "integer" and not field.nullable)
    return [found] if found else []


def _key(feed: str, fields: Sequence[Field]) -> list[str]:
    fit = [field.name for field in fields if field.kind in IDENTITIES and not field.nullable]
    found = guessing.key(fit, feed=feed)
    return [found] if found else []


def _personal(field: Field) -> str | None:
    return None if field.kind in ("boolean", "struct") else personal.kind(field.name)


def _noted(schema: Mapping[str, Any], guessed: Mapping[str, str], *, schema_type: SchemaType) -> dict[str, Any]:
    """The schema with what was guessed to be personal noted at its fields, unless they say something themselves."""
    if schema_type == "AVRO":
        fields = [
            {**field, "pii": guessed[field["name"]]} if field["name"] in guessed and "pii" not in field else field
            for field in schema["fields"]
        ]
        return {**schema, "fields": fields}
    properties = {
        name: {**each, "pii": guessed[name]}
        if name in guessed and isinstance(each, dict) and "pii" not in each
        else each
        for name, each in schema["properties"].items()
    }
    return {**schema, "properties": properties}
