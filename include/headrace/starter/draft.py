"""A draft: what is to become a feed file, and what of it was guessed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace import feed as feeds
from headrace.feed import ATTRIBUTES, ENDINGS, Feed, SchemaType
from headrace.starter import avro, json_schema, text
from headrace.starter.types import ListOf, Member, Struct

NOBODY = "data"
RENDERERS = {"AVRO": avro.schema, "JSON": json_schema.schema}


@dataclass(frozen=True)
class Guess:
    """Something that was chosen for the author, who should look at it."""

    path: str
    """The field or attribute that it is about."""
    message: str


@dataclass(frozen=True)
class Said:
    """What the author said already, so that nobody has to guess it."""

    key: Sequence[str] = ()
    order: Sequence[str] = ()
    owner: str | None = None


@dataclass(frozen=True)
class Draft:
    """A feed before it is a file: its fields and its declaration."""

    name: str
    doc: str
    fields: Sequence[Member]
    declaration: Mapping[str, Any]
    guesses: Sequence[Guess] = ()
    is_whole: bool = True
    """Whether records have no other fields; only then can a later version of a JSON Schema add one."""


@dataclass(frozen=True)
class Starter:
    """A feed file's text, known to be good, and what was guessed in it."""

    file: str
    text: str
    feed: Feed
    guesses: Sequence[Guess] = ()


def declaration(
    said: Said, *, key: Sequence[str], order: Sequence[str], partition: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The attributes that a newcomer should see, in the order in which they matter."""
    return {
        "owner": said.owner or NOBODY,
        "key": list(key),
        **({"order": list(order)} if order else {}),
        "merge": "latest",
        **({"partition": dict(partition)} if partition else {}),
        "topic": {"partitions": 3},
        "warehouses": {},
    }


def remarks(said: Said, *, order: Sequence[str], personal: Sequence[str]) -> Iterator[Guess]:
    """What to look at in any file that was derived."""
    if said.owner is None:
        yield Guess("owner", f'nobody yet ("{NOBODY}"): name the team that answers for the feed')
    if not order:
        yield Guess("order", "none: the last record of a key wins, by its offset; name a field that counts versions")
    if personal:
        told = ", ".join(personal)
        yield Guess("pii", f"{told}: they sound personal; correct the kinds, and say false where one is not")
    yield Guess("warehouses", "none yet: say who gets the clean table, and which personal fields are kept or masked")


def personal_paths(fields: Sequence[Member], path: str = "") -> Iterator[str]:
    """The fields that are noted as personal, those inside others too."""
    for field in fields:
        if field.pii:
            yield f"{path}{field.name}"
        inner = field.type.items if isinstance(field.type, ListOf) else field.type
        if isinstance(inner, Struct):
            yield from personal_paths(inner.fields, f"{path}{field.name}.")


def starter(draft: Draft, schema_type: SchemaType) -> Starter:
    """The draft as a feed file."""
    schema = RENDERERS[schema_type](draft.name, draft.doc, fields=draft.fields)
    if schema_type == "JSON" and draft.is_whole:
        schema["additionalProperties"] = False
    return of_schema(draft.name, schema, schema_type=schema_type, declaration=draft.declaration, guesses=draft.guesses)


def of_schema(
    name: str,
    schema: Mapping[str, Any],
    *,
    schema_type: SchemaType,
    declaration: Mapping[str, Any],
    guesses: Sequence[Guess] = (),
) -> Starter:
    """A schema with its declaration in front of its fields, where a reader looks first."""
    attribute = ATTRIBUTES[schema_type]
    last = "fields" if schema_type == "AVRO" else "properties"
    head = {key: value for key, value in schema.items() if key not in (last, attribute)}
    rest = {last: schema[last]} if last in schema else {}
    written = text.pretty({**head, attribute: dict(declaration), **rest})
    file = name + ENDINGS[schema_type]
    return Starter(file, written, feeds.parse(file, written), guesses)
