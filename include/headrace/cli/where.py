"""`headrace where`: which stores hold a field, or a kind of personal data."""

import contextlib
import json
import sys
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from headrace import feed as feeds
from headrace import whereabouts
from headrace.columns import columns
from headrace.errors import FeedError
from headrace.fault import Fault, nearest
from headrace.settings import Settings
from headrace.whereabouts import Place

TITLES = ("feed", "field", "personal", "store", "place", "how")
WIDTH = 160
"""A name that is cut is of no use, so a narrow terminal folds lines instead."""


def where(
    word: Annotated[str, typer.Argument(help="A field's name, or a kind of personal data.", metavar="FIELD|KIND")],
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Tell which feeds, tables, columns and warehouses hold something.

    FIELD is a field's name, as it is or as it was called before, or that of a field inside
    it; KIND is what fields say under `pii`, such as email. Told from the feed files and the
    warehouses' files, from the catalog, which knows columns that feeds have dropped and feeds
    without a file, and from the warehouses, which may have tables of before. What could not be
    looked at is told too; what copies people made for themselves is not known here.

    \b
    Exit code 0: told. 1: no feed has it, or not everything could be looked at. 2: a wrong option.
    Examples: headrace where email
              headrace where customer_id --json
    """
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        looked = _look(word)
    for each in looked.unseen:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"headrace: not looked at: {each}", markup=False)
    if not looked.places:
        hint = nearest(word, sorted(looked.words))
        raise FeedError(f'no feed has a field "{word}", or personal data of that kind. {hint}')
    _show(looked.places, json_=json_)
    if looked.unseen:
        sys.exit(1)


@dataclass(frozen=True)
class Looked:
    """Where it is, every word that could have been asked for, and what could not be looked at."""

    places: list[Place]
    words: set[str]
    unseen: list[str]


def _look(word: str) -> Looked:
    from headrace.airflow import connections, feed_file, warehouses

    read = [feeds.read_file(path) for path in feeds.files(Settings().schemas)]
    feeds_ = [feed_file.sharing(each.feed) for each in read if each.feed and not _faults(each)]
    names = {feed.name for feed in feeds_}
    lake, every = connections.lake(Settings()), warehouses.every()
    former = whereabouts.former_columns(feeds_, lake=lake)
    orphans = whereabouts.without_file(names, lake=lake)
    declared = {each.name: each.declared for each in every if each.declared}
    places = [*whereabouts.find(word, feeds_, declared, former=former), *whereabouts.told_by(word, orphans)]
    named = {(name, feed.name) for feed in feeds_ for name in feed.declaration.warehouses}
    left = {each.name: {held.table for held in each.held if (each.name, held.table) not in named} for each in every}
    places += whereabouts.left(places, left, declared)
    words = {name for feed in feeds_ for field in feed.fields for name in (field.name, *field.kinds)}
    words |= {column.name for gone in former.values() for column in gone} | whereabouts.words(orphans)
    unseen = [str(fault) for each in read for fault in _faults(each)]
    unseen += [f"warehouse {each.name}: {each.fault}" for each in every if each.fault]
    unseen += [
        f"warehouse {name}: its table {table}, for it is of a feed that has no good file and no clean table."
        for name, tables in left.items()
        for table in sorted(tables - names - set(orphans))
    ]
    return Looked(places, words, unseen)


def _faults(read: feeds.Read) -> tuple[Fault, ...]:
    """Why a feed's columns are not known."""
    if read.faults or read.feed is None:
        return read.faults
    try:
        columns(read.feed)
    except FeedError as error:
        return error.faults
    return ()


def _show(places: list[Place], *, json_: bool) -> None:
    if json_:
        print(json.dumps([asdict(place) for place in places]))
        return
    table = Table(*(Column(title, no_wrap=True) for title in TITLES), box=None)
    for place in places:
        table.add_row(*asdict(place).values())
    Console(highlight=False, width=max(Console().width, WIDTH)).print(table)
