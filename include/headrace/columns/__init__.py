"""The columns of a feed: its schema's fields as Iceberg types, the hub that every other type system is derived from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.types import IcebergType

from headrace.columns import avro, json_schema
from headrace.columns.field_type import FieldType, Whole
from headrace.columns.texts import JsonText, TimeText
from headrace.columns.unfit import Unfit
from headrace.errors import FeedError
from headrace.fault import Fault
from headrace.feed import ATTRIBUTES, Feed, SchemaType

__all__ = ["Column", "JsonText", "TimeText", "Whole", "columns", "field_types"]


@dataclass(frozen=True)
class Column:
    """One field of a feed as a column of its clean table."""

    name: str
    type: IcebergType
    required: bool
    doc: str | None = None
    pii: str | None = None
    aliases: tuple[str, ...] = ()
    """The names that it had in earlier versions."""


def columns(feed: Feed) -> list[Column]:
    """The columns of the feed's clean table, in the order of its schema; raises with every field that cannot be one."""
    found, unfit = _read(feed.schema_type, feed.schema)
    if faults := [*(_fault(feed, each) for each in unfit), *_coarse(feed, found)]:
        raise FeedError.of(faults)
    notes = {note.name: note for note in feed.fields}
    return [Column(field.name, field.type, field.required, *_noted(notes.get(field.name))) for field in found]


def field_types(schema_type: SchemaType, schema: Mapping[str, Any]) -> dict[str, IcebergType]:
    """The types of a schema's fields by name, for a schema that is known to be good: one that is registered."""
    found, unfit = _read(schema_type, schema)
    if unfit:
        raise FeedError("\n".join(f"{each.path} {each.message} {each.fix}" for each in unfit))
    return {field.name: field.type for field in found}


def _read(schema_type: SchemaType, schema: Mapping[str, Any]) -> tuple[list[FieldType], list[Unfit]]:
    unfit: list[Unfit] = []
    return (avro if schema_type == "AVRO" else json_schema).fields(schema, unfit), unfit


def _noted(note: Any) -> tuple[str | None, str | None, tuple[str, ...]]:
    return (note.doc, note.pii, note.aliases) if note else (None, None, ())


def _fault(feed: Feed, unfit: Unfit) -> Fault:
    return Fault(feed.file, unfit.path, unfit.message, unfit.fix, unfit.value)


def _coarse(feed: Feed, found: list[FieldType]) -> Iterator[Fault]:
    """Keys and orders that would lose digits: two versions that differ only there would no longer be told apart."""
    declared = feed.declaration
    for field in found:
        for place, names in (("key", declared.key), ("order", declared.order)):
            if field.cut and field.name in names:
                yield _fault(
                    feed,
                    Unfit(
                        f"{ATTRIBUTES[feed.schema_type]}.{place}",
                        f'names "{field.name}", of which the clean table keeps microseconds, not nanoseconds.',
                        "Declare it as a plain long, or use a sequence or revision.",
                        field.name,
                    ),
                )
