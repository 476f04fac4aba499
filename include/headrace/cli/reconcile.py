"""`headrace reconcile`: proof that each store of a feed holds exactly what the one before it says."""

import contextlib
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from headrace import feed as feeds
from headrace.errors import HeadraceError, SettingsError
from headrace.fault import nearest
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.reconciliation import Reconciliation

LISTED = 100
BEHIND = 3
"""The exit code where nothing disagrees, but not everything could be compared."""
STATES = {True: "[green]agree[/]", False: "[bold red]differ[/]", None: "[yellow]behind[/]"}


def reconcile(
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    store: Annotated[
        list[str] | None,
        typer.Option(help="Only this one: archive, clean or a warehouse; may be given more than once.", metavar="NAME"),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Compare everything, not only what changed.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare each store of a feed with the one before it.

    The archive with its topic, record by record; the clean table with what Spark makes
    of the archive once more; each warehouse with the clean table, masked as it is.
    Rows are counted, the columns under `correctness` summed to the last digit, and every
    row hashed, on both sides by the same engine. Without --full, only what changed since
    they were last compared, and the clean table by its runs' accounts. What differs is
    narrowed to partitions, columns and keys; keys that are personal are not shown. The
    result is kept in the lake, in reconciled.FEED. A warehouse that was not loaded since its
    columns or masks changed is behind, and told as that.

    \b
    Exit code 0: all agree. 1: some do not, or a server does not answer. 2: a wrong option.
    3: none disagrees, but one is behind.
    Example: headrace reconcile orders --full
    """
    declared = feeds.named(feed, Settings().schemas)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import feed_file, reconciling
        from headrace.reconciliation import BY_HAND

        shared = feed_file.sharing(declared)
        known = reconciling.stores(shared)
        for name in store or ():
            if name not in known:
                raise SettingsError(f"feed {feed} has no store {name} to reconcile. {nearest(name, known)}")
        done, failed = [], []
        for name in store or known:
            try:
                if compared := reconciling.compare(shared, name, run=BY_HAND, full=full):
                    done.append(compared)
            except HeadraceError as error:
                failed.append(f"{name}: {error}")
    if json_:
        print(json.dumps([each.model_dump(mode="json") for each in done]))
    elif done or not failed:
        _show(done)
    for told in failed:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"headrace: {told}", markup=False)
    if failed or any(each.agrees is False for each in done):
        sys.exit(1)
    if any(each.behind for each in done):
        sys.exit(BEHIND)


def _show(done: "Sequence[Reconciliation]") -> None:
    console = Console(soft_wrap=True, highlight=False)
    table = Table("stores", "scope", "rows", "of", "sums", "", "seconds", box=None)
    for each in done:
        sums = ", ".join(f"{name} {'=' if one == other else '≠'}" for name, (one, other) in each.sums.items())
        rows = f"{each.found_rows:,}", f"{each.expected_rows:,}"
        table.add_row(each.pair, each.scope, *rows, sums, STATES[each.agrees], f"{each.seconds:.1f}")
    console.print(table if done else "there is nothing to compare yet")
    for each in done:
        if each.behind:
            console.print(f"{each.pair}: {each.behind}", markup=False)
        for kind, keys in each.differences.get("keys", {}).items():
            listed = f": {', '.join(keys['keys'][:LISTED])}" if keys["keys"] else ""
            console.print(f"{each.pair}: {kind} {keys['count']:,}{listed}", markup=False)
        for about, (expected, found) in each.differences.get("accounts", {}).items():
            console.print(f"{each.pair}: {about} {found:,} of {expected:,}", markup=False)
        for what in ("partitions", "columns"):
            if found := each.differences.get(what):
                console.print(f"{each.pair}: in {what} {', '.join(list(found)[:LISTED])}", markup=False)
