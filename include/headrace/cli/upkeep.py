"""`headrace upkeep`: a feed's tables kept small and quick, and nothing left over in their folders."""

import contextlib
import json
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from headrace import duration
from headrace import feed as feeds
from headrace.feed import Feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.stages.upkeep import Upkeep


def upkeep(
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    older_than: Annotated[
        str | None, typer.Option(help="Spare orphans that are younger, such as 7d; more than the longest run takes.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Keep a feed's tables: compact, expire, and remove what belongs to nothing.

    Small files of clean and quarantine become few, small manifests too.
    Snapshots expire by the feed's retention, branches of dead runs are dropped,
    and so are archived and quarantined records past a retention that the feed
    declares. Orphans are files that no snapshot names and no run can commit any
    more: they are older than all tries of a run together, by S3's own clock.
    It takes turns with the feed's runs: what it cannot do now is told, and left
    for the next time. Running it again is safe.

    \b
    Exit code 0: done. 1: a server does not answer, or refuses. 2: a wrong option.
    Example: headrace upkeep orders --dry-run
    """
    declared = feeds.named(feed, Settings().schemas)
    age = _age(declared, older_than)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import upkeep

        done = upkeep.keep(declared, older_than=age, dry_run=dry_run)
    print(json.dumps({**upkeep.told(done), "dry_run": dry_run})) if json_ else _show(done, dry_run=dry_run)


def _age(feed: Feed, older_than: str | None) -> timedelta | None:
    """The age asked for, which may only lengthen what the feed's runs need."""
    from headrace.stages.upkeep import allowed_age

    if older_than is None:
        return None
    try:
        age = duration.parse(older_than)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--older-than") from error
    if age < (least := allowed_age(feed)):
        raise typer.BadParameter(
            f"runs of {feed.name} may take {least} with all their tries and a margin, and no file younger than that is "
            f"surely an orphan",
            param_hint="--older-than",
        )
    return age


def _show(done: "Upkeep", *, dry_run: bool) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for kept in done.tables:
        console.print(str(kept), markup=False)
    orphans = Table("orphans", "would be removed" if dry_run else "removed", "bytes", "too young", "not ours", box=None)
    every = [(f"{kept.table}: ", each) for kept in done.tables for each in kept.swept]
    for where, each in (*every, ("", done.imports), ("", done.staged)):
        figures = (each.removed, each.bytes, each.young, each.unknown)
        if any(figures):
            orphans.add_row(where + each.kind, *map(_number, figures))
    if orphans.rows:
        console.print(orphans)
    for key in (key for each in done.swept for key in each.first):
        console.print(key, markup=False)
    verb = "would remove" if dry_run else "removed"
    console.print(
        f"feed {done.feed}: {verb} {done.removed} objects, {done.bytes:,} bytes, older than {done.older_than}",
        markup=False,
    )


def _number(value: int) -> str:
    return f"{value:,}"
