"""`headrace compare`: what a run's branch would change for readers of the clean table."""

import contextlib
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from headrace import feed as feeds
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.feed import Feed
    from headrace.stages.compare import Difference


def compare(
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    branch: Annotated[
        str, typer.Argument(help="The branch, as a failed check names it; a run's id will do too.", metavar="BRANCH")
    ],
    keys: Annotated[int, typer.Option(help="How many keys of each kind to show.", min=0, max=1000)] = 5,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show what a run's branch would change: rows added, removed and changed.

    A run whose checks failed leaves its rows on a branch of the clean table, and
    readers with the rows before it. This holds the branch against them, by key: how
    many rows it would add, remove and change, in which columns, and the first keys of
    each kind. Only files that differ are read. Values are never shown, and keys not
    where one of their fields is personal. Nothing is changed.

    \b
    Exit code 0: told, also when nothing differs. 1: no such branch, or a server does
    not answer. 2: a wrong option.
    Example: headrace compare orders run_scheduled_2026_01_01t00_00_00_00_00
    """
    declared = feeds.named(feed, Settings().schemas)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        found = _compare(declared, branch, keys)
    print(json.dumps(asdict(found))) if json_ else _show(found, declared)


def _compare(feed: "Feed", branch: str, listed: int) -> "Difference":
    from headrace import layout
    from headrace.airflow import connections
    from headrace.stages import compare

    named = branch if branch.startswith(layout.RUN_BRANCH) else layout.branch(branch)
    return compare.compare(feed, named, lake=connections.lake(Settings()), listed=listed)


def _show(found: "Difference", feed: "Feed") -> None:
    console = Console(soft_wrap=True, highlight=False)
    hidden = "not shown: personal" if feed.personal & set(feed.declaration.key) else ""
    table = Table("rows", "count", "first keys", box=None)
    for kind, count in found.counts.items():
        table.add_row(kind, f"{count:,}", ", ".join(found.keys[kind]) or (hidden if count else ""))
    console.print(table)
    if found.columns:
        columns = Table("changed column", "rows", box=None)
        for name, count in found.columns.items():
            columns.add_row(name, f"{count:,}")
        console.print(columns)
    console.print(f"feed {found.feed}: branch {found.branch} beside main, {found.files} files read", markup=False)
