"""Whereabouts: which feeds, tables, columns and warehouses hold a field, or a kind of personal data."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.table import Table
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from headrace import away, clean, layout, personal
from headrace.columns import columns
from headrace.declaration import Sharing
from headrace.feed import Feed
from headrace.field import Field
from headrace.lake import Lake
from headrace.layout import Identifier
from headrace.share import retired
from headrace.warehouse import Warehouse

AS_IT_IS = "as it is"
IN_RECORDS = "in bytes"
NO_FILE = "of a feed that has no good file"
LEFT = "perhaps: in a table of before, which is loaded no more"


@dataclass(frozen=True)
class Former:
    """A column of a clean table that its feed has no more."""

    name: str
    kind: str | None
    """Of personal data."""
    warehouses: tuple[str, ...]
    """Those that still see it."""


NONE: Mapping[str, Sequence[Former]] = {}


@dataclass(frozen=True)
class Place:
    """A store that holds it, and how."""

    feed: str
    field: str
    kind: str
    """Of personal data, or empty."""
    store: str
    """The topic, a table of the lake or a warehouse."""
    place: str
    how: str


def find(
    word: str,
    feeds: Iterable[Feed],
    warehouses: Mapping[str, Warehouse],
    *,
    former: Mapping[str, Sequence[Former]] = NONE,
) -> Iterator[Place]:
    """Everywhere that a field of this name is, or one inside it, or a field that holds this kind of personal data.

    `former` are the columns of clean tables that their feeds have no more.
    """
    for feed in feeds:
        inside = {column.name: set(_names(column.type)) for column in columns(feed)}
        for field in feed.fields:
            if word in (field.name, *field.aliases, *field.kinds, *inside[field.name]):
                yield from _places(feed, field, warehouses)
        for column in former.get(feed.name, ()):
            if word in (column.name, column.kind):
                yield from _former(feed, column, warehouses)


@away.tells
def former_columns(feeds: Iterable[Feed], *, lake: Lake) -> dict[str, list[Former]]:
    """By feed, the columns of its clean table that it has no more."""
    tables = {feed.name: (feed, lake.find(layout.clean_table(feed.name))) for feed in feeds}
    return {name: _gone(feed, table) for name, (feed, table) in tables.items() if table}


@away.tells
def without_file(known: Collection[str], *, lake: Lake) -> dict[str, Table]:
    """The clean tables, by feed, of feeds whose files are gone or at fault."""
    names = [each[-1] for each in lake.catalog.list_tables(layout.CLEAN) if each[-1] not in known]
    found = {name: lake.find(layout.clean_table(name)) for name in sorted(names)}
    return {name: table for name, table in found.items() if table}


def told_by(word: str, tables: Mapping[str, Table]) -> Iterator[Place]:
    """Where feeds hold it of which there is only the clean table to ask."""
    for feed, table in tables.items():
        yield from _told_by(word, feed, table)


def _told_by(word: str, feed: str, table: Table) -> Iterator[Place]:
    for field, kind in _own_columns(table):
        stores = (
            ("archive", _name(layout.archive_table(feed)), IN_RECORDS),
            ("quarantine", _name(layout.quarantine_table(feed)), f"{IN_RECORDS}, if rejected"),
            ("clean", f"{_name(layout.clean_table(feed))}.{field.name}", AS_IT_IS),
        )
        for store, place, how in stores if word in (field.name, kind, *_names(field.field_type)) else ():
            yield Place(feed, field.name, kind or "", store, place, f"{how}, {NO_FILE}")


def words(tables: Mapping[str, Table]) -> set[str]:
    """What could be asked for of feeds of which there is only the clean table to ask."""
    return {
        word for table in tables.values() for field, kind in _own_columns(table) for word in (field.name, kind or "")
    }


def _own_columns(table: Table) -> Iterator[tuple[NestedField, str | None]]:
    """The columns that a feed gave its table, with the kind of personal data in each."""
    fields = [field for field in table.schema().fields if not field.name.startswith("_")]
    kinds = personal.kinds((each.name for each in fields), feed=None, noted=table.properties.get(personal.PROPERTY))
    return ((field, kinds[field.name]) for field in fields)


def left(
    places: Iterable[Place], tables: Mapping[str, Collection[str]], warehouses: Mapping[str, Warehouse]
) -> list[Place]:
    """What may be in tables that warehouses have of feeds which do not name them; who knows which columns."""
    found = dict.fromkeys((place.feed, place.field, place.kind) for place in places)
    return [
        Place(feed, field, kind, name, f"{_schema(warehouses, name)}.{feed}", LEFT)
        for name, held in tables.items()
        for feed, field, kind in found
        if feed in held
    ]


def _gone(feed: Feed, table: Table) -> list[Former]:
    now = {name for field in feed.fields for name in (field.name, *field.aliases)}
    left = [field.name for field in clean.shown(feed, table.schema()).fields if field.name not in now]
    kinds = personal.kinds(left, feed=None, noted=table.properties.get(personal.PROPERTY))
    seen = {name: {column.name for column in retired(feed, name, table)} for name in feed.declaration.warehouses}
    return [Former(name, kinds[name], tuple(each for each in seen if name in seen[each])) for name in left]


def _names(type_: IcebergType) -> Iterator[str]:
    """The names of the fields inside a type, however deep they lie."""
    match type_:
        case StructType(fields=fields):
            for field in fields:
                yield field.name
                yield from _names(field.field_type)
        case ListType():
            yield from _names(type_.element_type)
        case MapType():
            yield from _names(type_.value_type)


def _places(feed: Feed, field: Field, warehouses: Mapping[str, Warehouse]) -> Iterator[Place]:
    def at(store: str, place: str, how: str) -> Place:
        return Place(feed.name, field.name, ", ".join(field.kinds), store, place, how)

    for store, place, how in _records(feed):
        yield at(store, place, how)
    yield at("clean", f"{_name(layout.clean_table(feed.name))}.{field.name}", AS_IT_IS)
    for name, share in feed.declaration.warehouses.items():
        if shared := _shared(field, share):
            yield at(name, f"{_schema(warehouses, name)}.{feed.name}.{field.name}", shared)
    if field.name in feed.declaration.key:
        yield at("hold list", _name(layout.forgotten_table(feed.name)), "hashed, of forgotten keys")
        if not feed.personal & set(feed.declaration.key):
            yield at("checks", f"checks/{feed.name}", "keys of rows that failed")
            yield at("reconciled", _name(layout.reconciled_table(feed.name)), "keys of rows that differed")


def _records(feed: Feed) -> Iterator[tuple[str, str, str]]:
    """The stores of whole records."""
    drains = feed.declaration.topic.drains
    yield "stream" if feed.declaration.kinesis else "topic", feed.topic, IN_RECORDS
    if drains:
        yield "topic", drains.topic, f"{IN_RECORDS}, of the drained topic"
    yield "archive", _name(layout.archive_table(feed.name)), IN_RECORDS
    yield "quarantine", _name(layout.quarantine_table(feed.name)), f"{IN_RECORDS}, if rejected"


def _former(feed: Feed, column: Former, warehouses: Mapping[str, Warehouse]) -> Iterator[Place]:
    """Where a field is still that the feed has dropped."""

    def at(store: str, place: str, how: str) -> Place:
        return Place(feed.name, column.name, column.kind or "", store, place, f"{how}, of former versions")

    for store, place, how in _records(feed):
        yield at(store, place, how)
    yield at("clean", f"{_name(layout.clean_table(feed.name))}.{column.name}", AS_IT_IS)
    for warehouse in column.warehouses:
        yield at(warehouse, f"{_schema(warehouses, warehouse)}.{feed.name}.{column.name}", AS_IT_IS)


def _name(table: Identifier) -> str:
    return ".".join(table)


def _schema(warehouses: Mapping[str, Warehouse], name: str) -> str:
    return warehouses[name].schema_name if name in warehouses else "?"


def _shared(field: Field, share: Sharing) -> str | None:
    """How a warehouse gets a field; None where it does not."""
    if mask := share.mask.get(field.name):
        return f"masked: {mask}"
    if field.name in share.drop or (field.pii and field.name not in share.keep):
        return None
    return f"{AS_IT_IS}, a column for each field inside it" if field.name in share.flatten else AS_IT_IS
