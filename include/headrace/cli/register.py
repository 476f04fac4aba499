"""`headrace register`: feed files into the schema registry, and their topics onto the broker."""

import contextlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headrace import feed
from headrace.feed import Feed
from headrace.settings import Settings


@dataclass(frozen=True)
class Registration:
    """A feed file as the registry and the broker now know it."""

    feed: str
    subject: str
    version: int
    id: int
    topic: str


def register(
    files: Annotated[list[Path] | None, typer.Argument(help="Feed files; all of the schemas folder if none.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Register feed files: a version in the schema registry, and the topic if the broker has none.

    Doing so again changes nothing. Example: headrace register schemas/orders.avsc
    """
    feeds = [feed.load(path) for path in files or feed.files(Settings().schemas)]
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        registrations = _register(feeds)
    if json_:
        print(json.dumps([asdict(registration) for registration in registrations]))
    else:
        _show(registrations)


def _register(feeds: list[Feed]) -> list[Registration]:
    from headrace.airflow import connections
    from headrace.kafka import topic

    store, kafka, done = connections.registry(), connections.kafka(), []
    store.prepare()
    for each in feeds:
        wanted = each.declaration.topic
        registered = store.register(each.subject, each.schema_type, text=json.dumps(each.schema))
        topic.create(kafka, each.topic, partitions=wanted.partitions, replication=wanted.replication)
        done.append(Registration(each.name, each.subject, registered.version, registered.id, each.topic))
    return done


def _show(registrations: list[Registration]) -> None:
    table = Table("feed", "subject", "version", "id", "topic", box=None)
    for each in registrations:
        table.add_row(each.feed, each.subject, str(each.version), str(each.id), each.topic)
    Console().print(table)
