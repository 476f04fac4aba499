"""`headrace losses`: what a feed's archive is known to lack, and who accepted it."""

import contextlib
import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from headrace import feed as feeds
from headrace.settings import Settings


def losses(
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show the losses of a feed that somebody has accepted, the oldest first.

    A loss that nobody has accepted yet stops the feed: its extract says so, and
    headrace accept-loss FEED shows it.

    \b
    Exit code 0: told, also when there is none. 1: a server does not answer.
    2: a wrong option.
    Example: headrace losses orders
    """
    declared = feeds.named(feed, Settings().schemas)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import connections
        from headrace.stages import loss

        known = loss.known(declared, lake=connections.lake(Settings()))
    if json_:
        origins = (
            dict(zip(("topic", "partition"), loss.origin(declared, each.partition), strict=True)) for each in known
        )
        print(json.dumps([{**asdict(each), **origin} for each, origin in zip(known, origins, strict=True)]))
        return
    table = Table("topic", "partition", "first", "last", "count, at most", "accepted", "by", "why", box=None)
    for each in known:
        topic, partition = loss.origin(declared, each.partition)
        spans = (str(each.first), str(each.next - 1), str(each.count))
        if each.between:  # a stream tells a time, and no number
            first, _, last = each.between.partition(" to ")
            spans = (first, last, "unknown")
        table.add_row(topic, str(partition), *spans, each.at, each.by, each.why)
    Console(soft_wrap=True, highlight=False).print(table if known else f"feed {declared.name}: no loss was accepted")
