"""`headrace where`: which stores hold a field, or a kind of personal data."""

import contextlib
import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from headrace import feed as feeds
from headrace import warehouse, whereabouts
from headrace.errors import FeedError
from headrace.fault import nearest
from headrace.settings import Settings

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
    warehouses' files, and from the catalog, which knows columns that feeds have dropped.
    What copies people made for themselves is not known here.

    \b
    Exit code 0: told. 1: no feed has it. 2: a wrong option.
    Examples: headrace where email
              headrace where customer_id --json
    """
    found = [feeds.read_file(path) for path in feeds.files(Settings().schemas)]
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import connections, feed_file

        known = [feed_file.sharing(each.feed) for each in found if each.feed and not each.faults]
        former = whereabouts.former_columns(known, lake=connections.lake(Settings()))
    places = list(whereabouts.find(word, known, warehouse.declared(Settings().warehouses)[0], former=former))
    if not places:
        words = {name for feed in known for field in feed.fields for name in (field.name, *field.kinds)}
        words |= {column.name for columns in former.values() for column in columns}
        raise FeedError(f'no feed has a field "{word}", or personal data of that kind. {nearest(word, sorted(words))}')
    if json_:
        print(json.dumps([asdict(place) for place in places]))
        return
    table = Table(*(Column(title, no_wrap=True) for title in TITLES), box=None)
    for place in places:
        table.add_row(*asdict(place).values())
    Console(highlight=False, width=max(Console().width, WIDTH)).print(table)
