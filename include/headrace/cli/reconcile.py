"""`headrace reconcile`: proof that a feed's warehouses hold exactly its clean rows."""

import contextlib
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from headrace import feed as feeds
from headrace.errors import SettingsError
from headrace.fault import nearest
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.reconciliation import Reconciliation

LISTED = 100


def reconcile(
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    warehouse: Annotated[
        list[str] | None, typer.Option(help="Only this warehouse; may be given more than once.", metavar="NAME")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Compare every row, not only those that changed.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare a feed's warehouses with its clean table, row by row.

    Rows are counted, the columns under `correctness` summed to the last digit, and every
    row hashed, on both sides by the same engine; masks and dropped columns are applied to
    the clean side first. Without --full, only rows that changed since the two were last
    seen to agree. What differs is narrowed to partitions, columns and keys; keys that are
    personal are not shown. The result is kept in the lake, in reconciled.FEED.

    \b
    Exit code 0: all agree. 1: some do not, or a server does not answer. 2: a wrong option.
    Example: headrace reconcile orders --full
    """
    declared = feeds.named(feed, Settings().schemas)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import feed_file, reconciling

        shared = feed_file.sharing(declared)
        known = list(shared.declaration.warehouses)
        for name in warehouse or ():
            if name not in known:
                raise SettingsError(f"feed {feed} does not go to a warehouse {name}. {nearest(name, known)}")
        done = [reconciling.warehouse(shared, name, run="command", full=full)[1] for name in warehouse or known]
    if json_:
        print(json.dumps([each.model_dump(mode="json") for each in done]))
    else:
        _show(done)
    if not all(each.agrees for each in done):
        sys.exit(1)


def _show(done: "Sequence[Reconciliation]") -> None:
    console = Console(soft_wrap=True, highlight=False)
    table = Table("stores", "scope", "rows", "of", "sums", "", "seconds", box=None)
    for each in done:
        sums = ", ".join(f"{name} {'=' if one == other else '≠'}" for name, (one, other) in each.sums.items())
        told = "[green]agree[/]" if each.agrees else "[bold red]differ[/]"
        rows = f"{each.found_rows:,}", f"{each.expected_rows:,}"
        table.add_row(each.pair, each.scope, *rows, sums, told, f"{each.seconds:.1f}")
    console.print(table if done else "the feed goes to no warehouse")
    for each in done:
        for kind, keys in each.differences.get("keys", {}).items():
            listed = f": {', '.join(keys['keys'][:LISTED])}" if keys["keys"] else ""
            console.print(f"{each.pair}: {kind} {keys['count']:,}{listed}", markup=False)
        for what in ("partitions", "columns"):
            if found := each.differences.get(what):
                console.print(f"{each.pair}: in {what} {', '.join(list(found)[:LISTED])}", markup=False)
