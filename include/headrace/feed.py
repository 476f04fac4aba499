"""A feed: what one schema file declares, read and checked."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from headrace import avro_fields, json_fields, layout, reading, rules
from headrace.declaration import Declaration
from headrace.errors import FeedError
from headrace.fault import Fault, show
from headrace.field import PII, Field, Note, Schema

FIELD = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
NAMED = "letters (a to z), digits and _, at most 63, the first a letter"
"""The same in words."""
SYSTEM_COLUMNS = {"cmax", "cmin", "ctid", "deletexid", "insertxid", "oid", "tableoid", "xmax", "xmin"}
"""What Postgres and Redshift call columns of their own, and let nobody else."""
BYTE_ORDER_MARK = "\ufeff"
SchemaType = Literal["AVRO", "JSON"]
SUFFIXES: Mapping[str, SchemaType] = {".avsc": "AVRO", ".json": "JSON"}
ENDINGS: Mapping[SchemaType, str] = {schema_type: ending for ending, schema_type in SUFFIXES.items()}
ATTRIBUTES: Mapping[SchemaType, str] = {"AVRO": "feed", "JSON": "x-feed"}
FIELDS: Mapping[SchemaType, Callable[[Schema], tuple[Field, ...]]] = {
    "AVRO": avro_fields.fields,
    "JSON": json_fields.fields,
}
WHOLE_RECORD: Mapping[SchemaType, Callable[[Schema], Iterator[Note]]] = {
    "AVRO": avro_fields.whole_record,
    "JSON": json_fields.whole_record,
}
ROOTS: Mapping[SchemaType, str] = {"AVRO": "record", "JSON": "object"}
"""What a record's schema calls itself at its root."""


@dataclass(frozen=True)
class Feed:
    """One schema file and what follows from it."""

    name: str
    schema_type: SchemaType
    schema: Mapping[str, Any]
    declaration: Declaration

    @property
    def file(self) -> str:
        """What its file is called."""
        return self.name + ENDINGS[self.schema_type]

    @property
    def topic(self) -> str:
        """The topic's name, or the stream's: what the subject, the archive's files and its claims are called by."""
        kinesis = self.declaration.kinesis
        return (kinesis.stream if kinesis else self.declaration.topic.name) or self.name

    @property
    def source(self) -> str:
        """Where the declaration names what the feed reads from."""
        return "kinesis.stream" if self.declaration.kinesis else "topic.name"

    @property
    def subject(self) -> str:
        return layout.subject(self.topic)

    @property
    def ordered(self) -> bool:
        """Whether the place of a record in its topic decides nothing, so that the topic may grow partitions."""
        return bool(self.declaration.order) or self.declaration.merge == "append"

    @property
    def attribute(self) -> str:
        """Where the schema holds the declaration."""
        return ATTRIBUTES[self.schema_type]

    @property
    def doc(self) -> str:
        """What the feed holds, in the words of its declaration, else of its schema."""
        own = self.schema.get("doc") if self.schema_type == "AVRO" else self.schema.get("description")
        return str(self.declaration.description or own or "")

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return FIELDS[self.schema_type](self.schema)

    @property
    def personal(self) -> frozenset[str]:
        """The fields that hold personal data, themselves or in a field inside them."""
        return frozenset(field.name for field in self.fields if field.pii)

    def written(self, field: Field) -> Mapping[str, Any]:
        """A field as it stands in the file."""
        if self.schema_type == "JSON":
            return json_fields.written(self.schema)[field.name]
        found: Mapping[str, Any] = self.schema["fields"][int(field.path.rpartition(".")[2])]
        return found


@dataclass(frozen=True)
class Read:
    """What one file is, as far as it can be told, and everything that is wrong with it."""

    feed: Feed | None
    faults: tuple[Fault, ...]


def files(folder: Path) -> list[Path]:
    """The feed files of a folder, by name; hidden ones are not feeds."""
    named = (path for path in folder.iterdir() if path.suffix in SUFFIXES and not path.name.startswith("."))
    return sorted(path for path in named if path.is_file())


def load(path: Path) -> Feed:
    """Read one feed file; every fault of it is told at once."""
    return _good(read_file(path))


def named(name: str, folder: Path) -> Feed:
    """The feed of that name in a folder of feed files, as commands ask for it."""
    found = {path.stem: path for path in files(folder)} if folder.is_dir() else {}
    if name in found:
        return load(found[name])
    near = get_close_matches(name, found, n=1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    raise FeedError(
        f"{folder}: it has no file of a feed {show(name)}.{hint} Feeds there: {', '.join(found) or 'none'}."
    )


def refuse_stream(feed: Feed, deed: str) -> None:
    """Refuse what only a Kafka topic can be asked for; `deed` says what was asked, such as "replay"."""
    if feed.declaration.kinesis:
        raise FeedError(f"feed {feed.name}: it reads from the Kinesis stream {feed.topic}, and {deed} needs a topic.")


def parse(file: str, text: str) -> Feed:
    """A feed from a file's name and text."""
    return _good(read(file, text))


def _good(found: Read) -> Feed:
    if found.faults or found.feed is None:
        raise FeedError.of(found.faults)
    return found.feed


def read_file(path: Path) -> Read:
    """A file as far as it can be told, with its faults."""
    try:
        return read(path.name, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Read(None, (Fault(path.name, "", f"is not in {path.parent}."),))
    except OSError as error:
        return Read(None, (Fault(path.name, "", f"cannot be read: {error.strerror}."),))
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8: {error.reason}."
        return Read(None, (Fault(path.name, "", message, "Save the file as UTF-8."),))


def read(file: str, text: str) -> Read:
    """A file's text as far as it can be told, with its faults."""
    try:
        return _read(file, text)
    except RecursionError:
        return Read(None, (Fault(file, "", "is nested too deeply to be read."),))


def _read(file: str, text: str) -> Read:
    name, suffix = Path(file).stem, Path(file).suffix
    if suffix not in SUFFIXES:
        message = f"a feed file ends in {' or '.join(SUFFIXES)}, not {suffix!r}."
        return Read(None, (Fault(file, "", message, "Rename the file.", value=suffix),))
    schema, faults = _json(file, text)
    if schema is None:
        return Read(None, (*_name(file, name), *faults))
    attribute = ATTRIBUTES[SUFFIXES[suffix]]
    if attribute in schema:
        declared = reading.read(file, schema[attribute], attribute=attribute)
    else:
        declared = reading.Reading(Declaration.model_construct(key=[]), (_undeclared(file, schema, attribute),))
    feed = Feed(name, SUFFIXES[suffix], schema, declared.declaration)
    return Read(feed, (*_name(file, name), *faults, *declared.faults, *_faults(file, feed)))


def _name(file: str, name: str) -> Iterator[Fault]:
    if not layout.NAME.fullmatch(name):
        wanted = "in lower-case letters, digits and _ (at most 48, first a letter)"
        message = f"a feed is named by its file, {wanted}; got {name!r}."
        yield Fault(file, "", message, "Rename the file.", value=name)
    elif name in layout.PLATFORM_DAGS:
        message = f"the platform has a DAG of its own called {name}, so a feed cannot be."
        yield Fault(file, "", message, "Rename the file.", value=name)


def _json(file: str, text: str) -> tuple[Mapping[str, Any] | None, list[Fault]]:
    faults: list[Fault] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """An object's attributes; of two by one name, readers would keep only the last."""
        for name in sorted({name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1}):
            faults.append(Fault(file, "", f'"{name}" stands twice in one object.', "Remove one of them.", value=name))
        return dict(pairs)

    def refuse(constant: str) -> None:
        faults.append(Fault(file, "", f"{constant} is not JSON.", "Write a number.", value=constant))

    if text.startswith(BYTE_ORDER_MARK):
        fix = "Save the file as UTF-8 without it."
        return None, [Fault(file, "", "begins with a byte order mark, which is not JSON.", fix, line=1)]
    if not text.strip():
        return None, [Fault(file, "", "is empty.", "headrace new writes a feed file to begin with.", line=1)]
    try:
        schema = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except json.JSONDecodeError as error:
        message = f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}."
        return None, [Fault(file, "", message, line=error.lineno)]
    if not isinstance(schema, dict):
        return None, [*faults, Fault(file, "", f"a schema is a JSON object; got {show(schema)}.")]
    return schema, faults


def _undeclared(file: str, schema: Schema, attribute: str) -> Fault:
    others = [*get_close_matches(attribute, [name for name in schema if name not in ("type", "fields")], n=1)]
    fix = f'The least that makes it a feed: "{attribute}": {{"key": […]}}.'
    if others or (other := next((name for name in ATTRIBUTES.values() if name in schema), None)):
        fix = f'Did you mean "{others[0] if others else other}"? Rename it.'
    return Fault(file, attribute, "is missing.", fix)


def _faults(file: str, feed: Feed) -> Iterator[Fault]:
    """What is wrong between the declaration and the schema's fields."""
    yield from _shape(file, feed)
    yield from _field_names(file, feed)
    yield from _notes(file, feed)
    fields = {field.name: field for field in feed.fields}
    if not fields:
        return
    for fault in rules.faults(feed.declaration, fields):
        yield replace(fault, file=file, path=f"{feed.attribute}.{fault.path}")
    yield from _unframed(file, feed)
    drains = feed.declaration.topic.drains
    if drains and drains.topic == feed.topic:
        path = f"{feed.attribute}.topic.drains.topic"
        yield Fault(file, path, f'is "{drains.topic}", which is this feed\'s own topic.', value=drains.topic)


def _unframed(file: str, feed: Feed) -> Iterator[Fault]:
    """Avro's bytes are read by the very schema that wrote them, and what is the latest is another one tomorrow."""
    drains = feed.declaration.topic.drains
    said = {"unframed": feed.declaration.unframed, "topic.drains.unframed": drains.unframed if drains else None}
    for path, version in said.items():
        if version == "latest" and feed.schema_type == "AVRO":
            message = 'is "latest"; only JSON can be read by a later version than the one that it was written with.'
            yield Fault(file, f"{feed.attribute}.{path}", message, "Name the version, such as 1.", value=version)


def _shape(file: str, feed: Feed) -> Iterator[Fault]:
    root = ROOTS[feed.schema_type]
    # A JSON Schema need not say what its properties already tell.
    kind = feed.schema.get("type", "object")
    if kind != root:
        message = f'is {show(feed.schema.get("type"))}; the schema of a feed\'s records has type "{root}".'
        yield Fault(file, "type", message, value=feed.schema.get("type"))
    elif not feed.fields:
        path = "fields" if feed.schema_type == "AVRO" else "properties"
        yield Fault(file, path, "has no field that could become a column.")


def _field_names(file: str, feed: Feed) -> Iterator[Fault]:
    """What no table could call a column, or could not tell from another: many engines ignore case."""
    first: dict[str, str] = {}
    for field in feed.fields:
        if not FIELD.fullmatch(field.name):
            message = f'the field "{field.name}": a name has {NAMED}.'
            yield Fault(file, field.path, message, "Rename the field: it becomes a column.", value=field.name)
        elif field.name.lower() in SYSTEM_COLUMNS:
            message = f'the field "{field.name}" has the name of a column that Postgres or Redshift gives every table.'
            yield Fault(file, field.path, message, "Rename the field: it becomes a column.", value=field.name)
        other = first.setdefault(field.name.lower(), field.name)
        if other is not field.name:
            message = f'the field "{field.name}" has the name of "{other}", which stands before it.'
            yield Fault(file, field.path, message, "Rename one: to most databases they are the same.", value=field.name)


def _notes(file: str, feed: Feed) -> Iterator[Fault]:
    """What is noted of personal data in a way that nobody reads: it would go everywhere."""
    for note in WHOLE_RECORD[feed.schema_type](feed.schema):
        if note.value is not False:
            message = f'notes "{note.word}" of the whole record, which is not read.'
            yield Fault(file, note.path, message, "Note it of the fields that hold personal data.", value=note.word)
    # Several fields may refer to what one place says: told once, of the first of them.
    noted = {(note.path, note.word): (field, note) for field in reversed(feed.fields) for note in field.notes}
    for field, note in reversed(noted.values()):
        if note.word != PII:
            message = f'the field "{field.name}" notes "{note.word}", which is not read.'
            yield Fault(file, note.path, message, 'Did you mean "pii"?', value=note.word)
        elif note.value is not False and not note.kind:
            message = f"is {show(note.value)}; it is a word for the kind of personal data, or false."
            yield Fault(file, f"{note.path}.pii", message, 'Write "pii": "email", for example.', value=note.value)
