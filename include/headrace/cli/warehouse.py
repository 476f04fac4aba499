"""`headrace warehouse`: a team's own warehouse, made, listed and taken away."""

import contextlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Annotated, Any, get_args

import typer
from rich.console import Console
from rich.table import Table

from headrace.declaration import Mask, Sharing
from headrace.duration import spoken

warehouse = typer.Typer(
    help="Make, list and take away teams' warehouses.", no_args_is_help=True, pretty_exceptions_enable=False
)

SHOWN = ("warehouse", "kind", "schema", "table", "age", "loaded", "until")

Named = Annotated[str, typer.Argument(help="The warehouse's name.", metavar="NAME")]


@warehouse.command()
def add(  # noqa: PLR0917 - typer calls it by names
    name: Named,
    feeds: Annotated[str, typer.Option(help="The feeds it gets, with commas between.", metavar="FEED,…")],
    keep: Annotated[
        list[str] | None, typer.Option(help="A personal field that goes there as it is.", metavar="FEED.FIELD")
    ] = None,
    mask: Annotated[
        list[str] | None,
        typer.Option(help="A field that goes there masked: hash, last4, year or null.", metavar="FEED.FIELD=MASK"),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A field that does not go there.", metavar="FEED.FIELD")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(help="Its last day; then it goes away by itself.", formats=["%Y-%m-%d"])
    ] = None,
    connection: Annotated[
        str | None, typer.Option(help="The Airflow connection of its database; headrace_warehouses if not given.")
    ] = None,
) -> None:
    """Give a team a warehouse of its own, filled from the lake.

    It is a schema of its own in the database, with a table for each feed and a role that
    may read it, NAME_reader. All that was ever published is there when the command ends,
    and from then on it is loaded by the feeds' runs, like any other. No feed's file is
    changed: what it gets stands in NAME.json in the folder of warehouses. Personal fields
    go there only if they are kept or masked by name; a personal key is hashed.

    \b
    Exit code 0: done. 1: a server does not answer, or a field is not there. 2: a wrong option.
    Examples:
      headrace warehouse add growth --feeds orders,customers --until 2027-03-31
      headrace warehouse add audit --feeds orders --keep orders.email --mask orders.card=hash
    """
    shares = _shares(feeds, keep or (), mask or (), drop or ())
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import warehouses

        path = warehouses.declare(name, shares, until=until.date() if until else None, connection=connection)
        console.print(f"warehouse {name}: declared in {path}")
        for feed, load in warehouses.fill(name):
            with console.status(f"{feed}: loading all that was published"):
                done = load()
            console.print(f"{feed}: {done.counts.inserted:,} rows" if done.way else f"{feed}: nothing is published yet")
    console.print(f"Let people read it: grant {name}_reader to SOMEBODY", markup=False)


def _shares(feeds: str, keep: Iterable[str], mask: Iterable[str], drop: Iterable[str]) -> dict[str, Sharing]:
    names = [each.strip() for each in feeds.split(",") if each.strip()]
    said: dict[str, dict[str, Any]] = {feed: defaultdict(list) for feed in names}
    masks: dict[str, dict[str, Mask]] = {feed: {} for feed in names}
    for option, values in (("keep", keep), ("drop", drop)):
        for value in values:
            feed, field = _place(value, names, option=option)
            said[feed][option].append(field)
    for value in mask:
        place, _, chosen = value.partition("=")
        feed, field = _place(place, names, option="mask")
        known: dict[str, Mask] = {mask: mask for mask in get_args(Mask)}
        if chosen not in known:
            raise typer.BadParameter(f"{value!r} ends in none of {', '.join(known)}", param_hint="--mask")
        masks[feed][field] = known[chosen]
    return {feed: Sharing(**said[feed], mask=masks[feed]) for feed in names}


def _place(value: str, feeds: list[str], *, option: str) -> tuple[str, str]:
    feed, _, field = value.partition(".")
    if feed not in feeds or not field:
        raise typer.BadParameter(f"{value!r} is not FEED.FIELD of a feed in --feeds", param_hint=f"--{option}")
    return feed, field


@warehouse.command()
def remove(
    name: Named,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take a warehouse away: its tables, views on them, the schema and roles made for it, and its file.

    A warehouse that feeds' own files name stays until they do no more.

    \b
    Exit code 0: done. 1: feeds name it, or a server does not answer. 2: a wrong option.
    Example: headrace warehouse remove growth
    """
    if not yes:
        typer.confirm(f"Drop all tables of warehouse {name}, and views on them?", abort=True)
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import warehouses

        gone = warehouses.remove(name)
    Console(soft_wrap=True, highlight=False).print(f"warehouse {name}: removed, with {', '.join(gone) or 'no table'}")


@warehouse.command("list")
def list_(json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """List the warehouses: what each holds, how old its rows are, and until when it stays.

    \b
    Exit code 0, whether they answer or not.
    Example: headrace warehouse list
    """
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import warehouses

        every = warehouses.every()
    now = datetime.now(UTC)
    rows = [row for each in every for row in _rows(each, now)]
    if json_:
        print(json.dumps(rows, default=str))
        return
    table = Table(*SHOWN, box=None)
    for row in rows:
        if row["table"] or not row["fault"]:
            told = {"age": row["age"] and spoken(row["age"]), "loaded": row["loaded"] and f"{row['loaded']:%F %T}"}
            cells = ({**row, **told}[name] for name in SHOWN)
            table.add_row(*("" if value is None else str(value) for value in cells))
    console = Console(soft_wrap=True, highlight=False)
    console.print(table if rows else "no warehouse is declared")
    for row in rows:
        if row["fault"]:
            console.print(f"{row['warehouse']}: {row['fault']}", markup=False)


def _rows(listed: Any, now: datetime) -> Iterable[dict[str, Any]]:
    declared = listed.declared
    head = {
        "warehouse": listed.name,
        "kind": declared.kind if declared else None,
        "schema": declared.schema_name if declared else None,
    }
    until: date | None = declared.until if declared else None
    if listed.fault:
        yield {**head, "table": None, "age": None, "loaded": None, "until": until, "fault": listed.fault}
        return
    held = {each.table: each for each in listed.held}
    for feed in listed.feeds:
        there = held.get(feed)
        age, loaded = (now - there.published, there.loaded) if there else (None, None)
        fault = listed.misfits.get(feed, "")
        yield {**head, "table": feed, "age": age, "loaded": loaded, "until": until, "fault": fault}
    if not listed.feeds:
        yield {**head, "table": None, "age": None, "loaded": None, "until": until, "fault": ""}
