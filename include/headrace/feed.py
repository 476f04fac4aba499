"""A feed: what one schema file declares, read and checked."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from headrace import layout
from headrace.declaration import Declaration
from headrace.errors import FeedError

FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
SchemaType = Literal["AVRO", "JSON"]
SUFFIXES: Mapping[str, SchemaType] = {".avsc": "AVRO", ".json": "JSON"}
ATTRIBUTES: Mapping[SchemaType, str] = {"AVRO": "feed", "JSON": "x-feed"}


@dataclass(frozen=True)
class FieldNote:
    """What a feed file says about a field besides its type."""

    name: str
    doc: str | None
    pii: str | None


@dataclass(frozen=True)
class Feed:
    """One schema file and what follows from it."""

    name: str
    schema_type: SchemaType
    schema: Mapping[str, Any]
    declaration: Declaration

    @property
    def topic(self) -> str:
        return self.declaration.topic.name or self.name

    @property
    def subject(self) -> str:
        return layout.subject(self.topic)

    @property
    def doc(self) -> str:
        return str(self.schema.get("doc") or self.schema.get("description") or "")

    @property
    def fields(self) -> tuple[FieldNote, ...]:
        return tuple(_notes(self.schema, self.schema_type))

    @property
    def personal(self) -> frozenset[str]:
        return frozenset(note.name for note in self.fields if note.pii)


def files(folder: Path) -> list[Path]:
    """The feed files of a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)


def load(path: Path) -> Feed:
    """Read one feed file; every fault of it is named at once."""
    if path.suffix not in SUFFIXES:
        raise FeedError(f"{path.name}: a feed file ends in {' or '.join(SUFFIXES)}, not {path.suffix!r}.")
    return parse(path.name, path.read_text(encoding="utf-8"))


def parse(file: str, text: str) -> Feed:
    """A feed from a file's name and text."""
    name, schema_type = Path(file).stem, SUFFIXES[Path(file).suffix]
    if not layout.NAME.fullmatch(name):
        raise FeedError(
            f"{file}: a feed is named by its file, in lower-case letters, digits and _ (at most 48, first a letter); "
            f"got {name!r}. Rename the file."
        )
    schema = _schema(file, text)
    feed = Feed(name, schema_type, schema, _declaration(file, schema, attribute=ATTRIBUTES[schema_type]))
    if faults := list(_faults(feed)):
        raise FeedError("\n".join(f"{file}: {fault}" for fault in faults))
    return feed


def _schema(file: str, text: str) -> Mapping[str, Any]:
    try:
        schema = json.loads(text)
    except json.JSONDecodeError as error:
        raise FeedError(f"{file}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}.") from error
    if not isinstance(schema, dict):
        raise FeedError(f"{file}: a schema is a JSON object; got {type(schema).__name__}.")
    return schema


def _declaration(file: str, schema: Mapping[str, Any], *, attribute: str) -> Declaration:
    if attribute not in schema:
        raise FeedError(
            f'{file}: {attribute} is missing. The least that makes it a feed: "{attribute}": {{"key": […]}}.'
        )
    try:
        return Declaration.model_validate(schema[attribute])
    except ValidationError as error:
        faults = [_explain(fault, attribute=attribute) for fault in error.errors()]
        raise FeedError("\n".join(f"{file}: {fault}" for fault in faults)) from error


def _explain(fault: Mapping[str, Any], *, attribute: str) -> str:
    where = ".".join(str(part) for part in (attribute, *fault["loc"]))
    if fault["type"] == "extra_forbidden":
        return f"{where} is not an attribute.{_nearest(str(fault['loc'][-1]), _known(fault['loc'][:-1]))}"
    return f"{where}: {fault['msg']}; got {fault['input']!r}."


def _known(path: Sequence[int | str]) -> list[str]:
    """The attributes known at a place in the declaration."""
    model: Any = Declaration
    for part in path:
        if isinstance(model, type) and issubclass(model, BaseModel) and part in model.model_fields:
            model = model.model_fields[str(part)].annotation
        found = [kind for kind in (model, *getattr(model, "__args__", ())) if isinstance(kind, type)]
        model = next((kind for kind in found if issubclass(kind, BaseModel)), model)
    return list(getattr(model, "model_fields", ()))


def _nearest(word: str, known: Sequence[str]) -> str:
    match = get_close_matches(word, known, n=1)
    return f' Did you mean "{match[0]}"?' if match else f" Known: {', '.join(known)}."


def _notes(schema: Mapping[str, Any], schema_type: SchemaType) -> Iterator[FieldNote]:
    if schema_type == "AVRO":
        for field in schema.get("fields", ()):
            yield FieldNote(field["name"], field.get("doc"), field.get("pii"))
    else:
        for name, field in schema.get("properties", {}).items():
            yield FieldNote(name, field.get("description"), field.get("pii"))


def _faults(feed: Feed) -> Iterator[str]:
    """What the declaration says about fields that do not exist, or cannot be so."""
    known, declared, attribute = [note.name for note in feed.fields], feed.declaration, ATTRIBUTES[feed.schema_type]
    for where, name in _named_fields(declared):
        if name not in known:
            yield f'{attribute}.{where} names "{name}", which is not a field.{_nearest(name, known)}'
    for name in known:
        if not FIELD.fullmatch(name):
            yield f'the field "{name}": a name has letters, digits and _, the first a letter, to be a column anywhere.'
    for warehouse, share in declared.warehouses.items():
        for name in set(share.drop) & {*share.mask, *share.keep}:
            yield f'{attribute}.warehouses.{warehouse}: "{name}" is both dropped and kept or masked; choose one.'
        for name in {*share.drop, *share.mask} & set(declared.key):
            yield f'{attribute}.warehouses.{warehouse}: "{name}" is part of the key, which every warehouse needs.'
        for name in set(declared.key) & feed.personal - set(share.keep):
            yield f'{attribute}.warehouses.{warehouse}: the key field "{name}" is personal: name it in keep.'
    if declared.merge == "append" and declared.order:
        yield f"{attribute}.order: an append feed keeps the first record of a key; leave order out."


def _named_fields(declared: Declaration) -> Iterator[tuple[str, str]]:
    yield from (("key", name) for name in declared.key)
    yield from (("order", name) for name in declared.order)
    yield from (("correctness.sum", name) for name in declared.correctness.sum)
    if declared.partition:
        yield "partition.field", declared.partition.field
    for number, check in enumerate(declared.checks):
        if check.column:
            yield f"checks.{number}.column", check.column
    for warehouse, share in declared.warehouses.items():
        for attribute, names in (("keep", share.keep), ("drop", share.drop), ("mask", share.mask)):
            yield from ((f"warehouses.{warehouse}.{attribute}", name) for name in names)
