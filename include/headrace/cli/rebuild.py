"""`headrace rebuild`: a feed's clean table made anew from its archive, compared, then switched to."""

import contextlib
import json
import sys
import uuid
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headrace import feed as feeds
from headrace import layout
from headrace.settings import Settings


def rebuild(
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Stop before the switch: the new rows stay on their branch.")
    ] = False,
    without_dropped: Annotated[
        bool, typer.Option("--without-dropped", help="Go on although the archive has dropped records (retention).")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Make a feed's clean table anew from its archive.

    After a change of key, order, merge or partition the rows that stand were made by
    other rules, and the feed's runs stop and say so. This makes all rows from the
    archived records by the rules of now, on a branch; checks them; tells how they
    differ from what readers see; and switches in one step. Readers are never without
    a table, and each warehouse follows with its next load. The feed's runs wait
    meanwhile. Running it again is safe. Where the archive has dropped records past
    their retention, rows that only those made would be missing, and it stops unless
    told --without-dropped.

    \b
    Exit code 0: done. 1: a check failed, or a server does not answer. 2: a wrong option.
    Example: headrace rebuild orders --dry-run
    """
    declared = feeds.named(feed, Settings().schemas)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import rebuild

        run = layout.rebuild_run(uuid.uuid4().hex[:12])
        done = rebuild.rebuild(declared, run=run, publish=not dry_run, without_dropped=without_dropped)
    console = Console(soft_wrap=True, highlight=False)
    if json_:
        print(json.dumps(rebuild.told(done) if done else None))
    elif done is None:
        console.print(f"feed {declared.name}: nothing is archived yet, so there is nothing to rebuild")
    else:
        table = Table("rows", "count", box=None)
        for kind, count in done.difference.counts.items():
            table.add_row(kind, f"{count:,}")
        console.print(table)
        for each in done.checked.warned:
            console.print(f"a check warns: {each}", markup=False)
        state = "published" if done.published else f"not published: headrace compare {feed} {done.branch} tells more"
        console.print(f"feed {feed}: {done.accounts['read']:,} records made anew; {state}", markup=False)
