"""A feed as the registry knows it: served as `/feeds`, held by Airflow Variables, read by hooks; one form for all."""

import contextlib
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from headrace import feed as feeds
from headrace import fixed, layout
from headrace.declaration import Correctness, Merge, Partition, Sharing
from headrace.errors import FeedError
from headrace.fault import Fault
from headrace.feed import ATTRIBUTES, ENDINGS, Feed, SchemaType
from headrace.registry.metadata import properties
from headrace.registry.registered import Registered
from headrace.registry.schema import SchemaText
from headrace.registry.subject import names_context

NAME_PROPERTY = "headrace.feed"
"""The property, in a schema's metadata, that names a feed which is not named like its topic."""


class Tables(BaseModel):
    """The feed's tables in the lake's catalog."""

    model_config = ConfigDict(frozen=True)

    archive: str
    clean: str
    quarantine: str


class Place(Sharing):
    """What one warehouse gets, and where it lies."""

    table: str
    connection: str
    """The Airflow connection that loads it."""


class FeedMetadata(BaseModel):
    """What somebody who works with a feed wants to know of it."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str
    owner: str
    topic: str
    subject: str
    type: SchemaType
    version: int
    id: int
    key: list[str]
    order: list[str]
    merge: Merge
    partition: Partition | None
    schedule: str
    aggregates: Correctness
    personal: list[str]
    tables: Tables
    warehouses: dict[str, Place]

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self.model_dump(mode="json")


def known(declaring: Iterable[Registered]) -> dict[str, FeedMetadata]:
    """The feeds that versions declare, by name; what declares none after all, or wrongly, is no feed."""
    found: dict[str, FeedMetadata] = {}
    for registered in declaring:
        with contextlib.suppress(FeedError):
            if feed := feed_of(registered.subject, registered.schema):
                found.setdefault(feed.name, metadata(feed, version=registered.version, id_=registered.id))
    return found


def metadata(feed: Feed, *, version: int, id_: int) -> FeedMetadata:
    """All of it, from the feed and the version of it that is registered."""
    declared = feed.declaration
    return FeedMetadata(
        name=feed.name,
        description=declared.description or feed.doc,
        owner=declared.owner,
        topic=feed.topic,
        subject=feed.subject,
        type=feed.schema_type,
        version=version,
        id=id_,
        key=declared.key,
        order=declared.order,
        merge=declared.merge,
        partition=declared.partition,
        schedule=declared.schedule,
        aggregates=declared.correctness,
        personal=sorted(feed.personal),
        tables=Tables(
            archive=".".join(layout.archive_table(feed.name)),
            clean=".".join(layout.clean_table(feed.name)),
            quarantine=".".join(layout.quarantine_table(feed.name)),
        ),
        warehouses={name: _place(feed, name) for name in declared.warehouses},
    )


def _place(feed: Feed, warehouse: str) -> Place:
    share = feed.declaration.warehouses[warehouse]
    return Place(**share.model_dump(), table=feed.name, connection=layout.warehouse_connection(warehouse))


def feed_of(subject: str, schema: SchemaText) -> Feed | None:
    """The feed that a subject's schema declares; None if it declares none, a FeedError if what it declares is wrong."""
    if not (is_of_values(subject) and _declares(schema)):
        return None
    name = properties(schema.metadata).get(NAME_PROPERTY) or subject.removesuffix(layout.subject(""))
    file = name + ENDINGS[schema.type]
    if schema.references:
        # Columns and personal data are read from the text, which does not show what stands in other subjects.
        fix = f"Write out {', '.join(each.name for each in schema.references)}."
        raise FeedError.of([Fault(file, "references", "are not for a feed's schema, which stands alone.", fix)])
    return _parsed(file, schema.text)


def check(subject: str, schema: SchemaText, before: SchemaText | None) -> None:
    """Refuse a version whose feed is wrong, or changes what must stay as the version before it declares."""
    feed = feed_of(subject, schema)
    earlier = feed_of(subject, before) if before else None
    if feed and earlier:
        faults = fixed.changes(feed, earlier, origin="the version before")
        if told := [replace(fault, file=feed.file) for fault in faults]:
            raise FeedError.of(told)


@lru_cache(maxsize=4096)
def _parsed(file: str, text: str) -> Feed:
    """Versions never change, and all of them are looked through after each change of the registry."""
    return feeds.parse(file, text)


def is_of_values(subject: str) -> bool:
    """Whether a subject is of a topic's values; neither keys nor other contexts, which hold copies, declare feeds."""
    return subject.endswith(layout.subject("")) and not names_context(subject)


def _declares(schema: SchemaText) -> bool:
    try:
        parsed = json.loads(schema.text)
    except json.JSONDecodeError:
        return False
    return isinstance(parsed, dict) and ATTRIBUTES[schema.type] in parsed
