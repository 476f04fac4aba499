"""`headrace forget`: a person's rows leave every store of a feed, and it is proven."""

import contextlib
import getpass
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from headrace import feed as feeds
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.airflow.forgetting import Report

STANDARD_INPUT = "-"


def forget(  # noqa: PLR0917 - typer calls it by names
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    keys: Annotated[
        list[str] | None,
        typer.Argument(help="Keys of rows: a text, or a JSON object where a key has several fields.", metavar="[KEY]…"),
    ] = None,
    file: Annotated[
        str | None, typer.Option(help="A file with a key in each line; - for the standard input.", metavar="PATH")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be rewritten.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Forget people: their rows leave every store of a feed, for good.

    Their rows go from the clean table, its history, quarantine and every warehouse. In
    the archive their records keep coordinates and timestamps, and lose key, value and
    headers. A hold list of keyed hashes keeps what came before from coming back by
    replay, import or rebuild; what comes later lives. Then everything is read again,
    every object of the lake byte by byte, to prove that nothing is left.

    Keys may be personal: they are printed and logged nowhere. Your shell remembers what
    you type, so --file may be better. Killed, or with a warehouse down, run it again.

    \b
    Exit code 0: done and proven. 1: something is left, as told. 2: a wrong option.
    Examples:
      headrace forget customers 4711
      headrace forget orders --file gone.txt --dry-run
      headrace forget visits '{"site": "shop", "visitor": "4711"}' --yes
    """
    declared = feeds.named(feed, Settings().schemas)
    named = [*(keys or ()), *_lines(file)]
    if not named:
        raise typer.BadParameter("name a key, or a file of them (--file)", param_hint="KEY")
    if not (yes or dry_run):
        what = f"{len(named)} {'key' if len(named) == 1 else 'keys'}"
        typer.confirm(f"Forget {what} of feed {declared.name} in every store, for good?", abort=True)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import forgetting

        report = forgetting.forget(declared, named, by=getpass.getuser(), dry_run=dry_run)
    console = Console(soft_wrap=True, highlight=False)
    if json_:
        print(json.dumps(forgetting.told(report) if report else None))
    elif report is None:
        console.print(f"feed {declared.name}: nothing is archived yet, so there is nothing to forget")
    else:
        _show(report, console)
    if report is not None and not report.is_whole:
        sys.exit(1)


def _lines(file: str | None) -> list[str]:
    if file is None:
        return []
    try:
        text = sys.stdin.read() if file == STANDARD_INPUT else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"it cannot be read: {error.strerror}", param_hint="--file") from error
    return [line for line in text.splitlines() if line.strip()]


def _show(report: "Report", console: Console) -> None:
    done = report.done
    records = "would change" if report.dry_run else "records"
    table = Table("store", records, "files", "bytes", "snapshots", "removed objects", box=None)
    for store in done.stores:
        figures = (store.records, store.files, store.bytes, store.purged.snapshots, store.purged.objects)
        table.add_row(store.store, *(f"{each:,}" for each in figures))
    for each in report.warehouses:
        told = f"{each.deleted:,}" if not each.fault else "[bold red]open[/]"
        table.add_row(each.name, told, "", "", "", "")
    console.print(table)
    for line in _lines_of(report):
        console.print(line, markup=False)


def _lines_of(report: "Report") -> list[str]:
    done, proof = report.done, report.absence
    said = []
    if not done.located.archive and not done.located.clean:
        said.append("No record of these keys was found, or they are forgotten already.")
    if done.undecoded:
        said.append(f"{done.undecoded:,} records that do not decode were told by their Kafka key or their bytes.")
    if branches := [f"{store.store} {name}" for store in done.stores for name in store.purged.branches]:
        said.append(f"branches and tags that went with the history: {', '.join(branches)}")
    for each in report.topics:
        # Once they are blanked, the archive no longer tells which they were.
        some = f"still holds {each.records:,} of the records" if done.located.archive else "may still hold some"
        said.append(f"topic {each.topic} {some}: {each.until}.")
    if report.later:
        said.append(f"{report.later:,} records of the topic are not archived yet: they came later, and live.")
    said += [f"feed {name} is computed from this one: forget there too." for name in report.downstream]
    said += [
        f"warehouse {each.name}: {each.fault or f'{each.left} rows are left'}"
        for each in report.warehouses
        if each.fault or each.left
    ]
    if proof:
        said.append(
            f"proof: {proof.objects:,} objects, {proof.bytes:,} bytes read for {proof.needles:,} keys and values "
            f"({done.located.shared:,} more are others' too): found in {len({each.object for each in proof.found})}; "
            f"records and rows of the keys: {report.rows_left:,}"
        )
        said += [f"{each.object}: {each.where}" for each in proof.found]
    state = (
        "would be forgotten"
        if report.dry_run
        else "forgotten"
        if report.is_whole
        else "NOT WHOLLY FORGOTTEN: run it again"
    )
    said.append(f"feed {done.feed}: {done.keys:,} {'key' if done.keys == 1 else 'keys'} {state}")
    return said
