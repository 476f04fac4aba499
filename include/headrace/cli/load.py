"""`headrace load`: a warehouse's table brought to what is published, or made anew."""

import contextlib
import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from headrace import feed as feeds
from headrace.errors import SettingsError
from headrace.fault import nearest
from headrace.settings import Settings


def load(
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    warehouse: Annotated[str, typer.Argument(help="The warehouse's name.", metavar="WAREHOUSE")],
    anew: Annotated[
        bool, typer.Option("--anew", help="Fill a new table and switch to it, whatever the old one is.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a sentence.")] = False,
) -> None:
    """Load a feed's published rows into a warehouse, as its runs do by themselves.

    Only what has changed since the last load is brought there. With --anew the table is
    made anew from all clean rows and switched to in one step: that is how a column gets
    a type in which old values would not fit, and how a table that somebody else made
    gives way. Views on the table live on; one that cannot is named, and nothing is done.

    \b
    Exit code 0: loaded, or nothing to load. 1: refused, or a server does not answer. 2: a wrong option.
    Example: headrace load orders finance --anew
    """
    declared = feeds.named(feed, Settings().schemas)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import connections, feed_file
        from headrace.stages import load as stage

        shared = feed_file.sharing(declared)
        names = list(shared.declaration.warehouses)
        if warehouse not in names:
            raise SettingsError(f"feed {feed} does not go to a warehouse {warehouse}. {nearest(warehouse, names)}")
        done = stage.load(
            shared,
            lake=connections.lake(Settings()),
            warehouse=connections.warehouse(warehouse),
            mask_key=connections.mask_key(),
            anew=anew,
        )
    if json_:
        print(json.dumps({"snapshot": done.snapshot, "way": done.way, **asdict(done.counts)}))
        return
    counts = ", ".join(f"{count:,} {name}" for name, count in asdict(done.counts).items())
    told = f"loaded {done.way}: {counts}" if done.way else "nothing to load"
    Console(soft_wrap=True, highlight=False).print(f"{warehouse}.{feed}: {told}")
