"""`headrace upkeep`: what lies in an archive's folders and belongs to nothing."""

import contextlib
import json
import sys
from dataclasses import asdict
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be removed.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Remove a feed's orphans: files of extracts and imports that were killed or came second.

    An orphan is named by no snapshot, was there before a fence (an empty commit,
    after which no earlier plan can land) and is older than all tries of a run
    together, by S3's own clock. An extract that runs meanwhile starts over, and
    only if there is something to remove. What an import staged and no manifest
    names goes after seven days. Running it again is safe.

    \b
    Exit code 0: done. 1: a server does not answer, or refuses. 2: a wrong option.
    Example: headrace upkeep orders --dry-run
    """
    declared = feeds.named(feed, Settings().schemas)
    age = _age(declared, older_than)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import connections
        from headrace.stages import upkeep

        done = upkeep.upkeep(declared, lake=connections.lake(Settings()), older_than=age, dry_run=dry_run)
    print(json.dumps(_as_json(done, dry_run=dry_run))) if json_ else _show(done, dry_run=dry_run)


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


def _as_json(done: "Upkeep", *, dry_run: bool) -> dict[str, object]:
    return {**asdict(done), "older_than": done.older_than.total_seconds(), "dry_run": dry_run}


def _show(done: "Upkeep", *, dry_run: bool) -> None:
    console = Console(soft_wrap=True, highlight=False)
    table = Table("", "would be removed" if dry_run else "removed", "bytes", "too young", "not ours", box=None)
    for each in done.swept:
        table.add_row(each.kind, str(each.removed), f"{each.bytes:,}", str(each.young), str(each.unknown))
    if done.swept:
        console.print(table)
    for key in (key for each in done.swept for key in each.first):
        console.print(key, markup=False)
    verb = "would remove" if dry_run else "removed"
    console.print(
        f"feed {done.feed}: {verb} {done.removed} objects, {done.bytes:,} bytes, older than {done.older_than}",
        markup=False,
    )
