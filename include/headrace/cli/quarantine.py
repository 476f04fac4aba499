"""`headrace quarantine`: what was rejected and why, and its release once the cause is mended."""

import contextlib
import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from headrace import feed as feeds
from headrace.feed import Feed
from headrace.quarantine import Reason
from headrace.settings import Settings


def quarantine(  # noqa: PLR0917 - typer calls it by names
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    places: Annotated[
        list[str] | None, typer.Argument(help="Records by partition/offset, such as 0/1742.", metavar="[RECORD]…")
    ] = None,
    reason: Annotated[Reason | None, typer.Option(help="Only those rejected for this.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the records one by one.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Show one record with its key and value.")] = False,
    release: Annotated[bool, typer.Option("--release", help="Have them judged again by the next run.")] = False,
    limit: Annotated[int, typer.Option(help="List at most so many.", min=1)] = 100,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show what lies in a feed's quarantine, and release it after the cause was mended.

    Without an option, it counts the records by reason. Keys and values may be personal:
    only --show prints them, of one record that you name.

    Releasing asks the feed's next run to judge records again, by the schema and the
    checks of then. What is good now is merged where it belongs and leaves quarantine
    when that run is published; what is still bad stays. Releasing twice changes nothing.

    \b
    Exit code 0: told, or released. 1: a server does not answer, or no such record.
    2: a wrong option.
    Examples:
      headrace quarantine orders
      headrace quarantine orders --list --reason unknown_id
      headrace quarantine orders 0/1742 --show
      headrace quarantine orders --reason unknown_id --release
    """
    if show and len(places or ()) != 1:
        raise typer.BadParameter("name the one record to show, such as 0/1742", param_hint="--show")
    declared = feeds.named(feed, Settings().schemas)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import connections
        from headrace.stages import release as stage

        lake = connections.lake(Settings())
        choice = stage.Choice(reason, [stage.Place.parse(each) for each in places or ()])
        if release:
            count = stage.release(declared, lake=lake, choice=choice)
        elif show:
            record = stage.record(declared, lake=lake, place=choice.places[0])
        elif list_ or places:
            records = stage.records(declared, lake=lake, choice=choice, limit=limit)
        else:
            groups = [vars(each) for each in stage.groups(declared, lake=lake) if reason in (None, each.reason)]
    if release:
        _tell({"released": count}, _released(declared, count), as_json=json_)
    elif show:
        _tell(_printable(record), _table([_printable(record)], upright=True), as_json=json_)
    elif list_ or places:
        _tell(records, _table(records, nothing=f"feed {declared.name}: none such lie in quarantine"), as_json=json_)
    else:
        _tell(groups, _table(groups, nothing=f"feed {declared.name}: nothing lies in quarantine"), as_json=json_)


def _released(feed: Feed, count: int) -> str:
    if not count:
        return f"feed {feed.name}: nothing to release; what was meant is released already, or not in quarantine"
    return f"feed {feed.name}: released {count} records; its next run judges them again"


def _tell(content: Any, told: Table | str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(content, default=str))
    else:
        Console(soft_wrap=True, highlight=False).print(told)


def _printable(record: dict[str, Any]) -> dict[str, Any]:
    """Bytes as text where they are one, else in hex."""
    return {name: _text(value) if isinstance(value, bytes) else value for name, value in record.items()}


def _text(value: bytes) -> str:
    text = value.decode(errors="replace")
    return text if text.isprintable() and "\ufffd" not in text else f"hex:{value.hex()}"


def _table(rows: list[dict[str, Any]], *, nothing: str = "", upright: bool = False) -> Table | str:
    if not rows:
        return nothing
    if upright:
        table = Table("", "", box=None, show_header=False)
        for name, value in rows[0].items():
            table.add_row(name, "" if value is None else str(value))
        return table
    table = Table(*(name.replace("_", " ") for name in rows[0]), box=None)
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    return table
