"""Whereabouts: which feeds, tables, columns and warehouses hold a field, or a kind of personal data."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from headrace import layout
from headrace.declaration import Sharing
from headrace.feed import Feed
from headrace.field import Field
from headrace.warehouse import Warehouse

AS_IT_IS = "as it is"
IN_RECORDS = "in bytes"


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


def find(word: str, feeds: Iterable[Feed], warehouses: Mapping[str, Warehouse]) -> Iterator[Place]:
    """Everywhere that a field of this name is, or a field that holds this kind of personal data."""
    for feed in feeds:
        for field in feed.fields:
            if word in (field.name, *field.aliases, *field.kinds):
                yield from _places(feed, field, warehouses)


def _places(feed: Feed, field: Field, warehouses: Mapping[str, Warehouse]) -> Iterator[Place]:
    def at(store: str, place: str, how: str) -> Place:
        return Place(feed.name, field.name, ", ".join(field.kinds), store, place, how)

    yield at("stream" if feed.declaration.kinesis else "topic", feed.topic, IN_RECORDS)
    yield at("archive", ".".join(layout.archive_table(feed.name)), IN_RECORDS)
    yield at("clean", f"{'.'.join(layout.clean_table(feed.name))}.{field.name}", AS_IT_IS)
    yield at("quarantine", ".".join(layout.quarantine_table(feed.name)), "in bytes, if rejected")
    for name, share in feed.declaration.warehouses.items():
        if how := _shared(field, share):
            schema = warehouses[name].schema_name if name in warehouses else "?"
            yield at(name, f"{schema}.{feed.name}.{field.name}", how)


def _shared(field: Field, share: Sharing) -> str | None:
    """How a warehouse gets a field; None where it does not."""
    if mask := share.mask.get(field.name):
        return f"masked: {mask}"
    if field.name in share.drop or (field.pii and field.name not in share.keep):
        return None
    return f"{AS_IT_IS}, a column for each field inside it" if field.name in share.flatten else AS_IT_IS
