"""`headrace register`: feed files into the schema registry, and their topics onto the broker."""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headrace import feed
from headrace.errors import RegistryError
from headrace.feed import Feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.airflow.registration import Registration


def register(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Feed files; all of the schemas folder if none.", exists=True, dir_okay=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be registered or refused.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Register feed files: a version in the schema registry, and the topic if the broker has none.

    Each file is on its own: one that is wrong, or not compatible with what is
    registered, keeps no other back. Doing so again changes nothing.

    \b
    Exit code 0: all are registered. 1: a file was refused, or a server does not
    answer. 2: a wrong option, or a file that is not there.
    Example: headrace register schemas/orders.avsc
    """
    feeds, faulty = _read(files or _folder(Settings().schemas))
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr), answering():
        done = _register(feeds, dry_run=dry_run)
    if json_:
        print(json.dumps([*map(_as_json, done), *({"feed": name, "reasons": [why]} for name, why in faulty.items())]))
    else:
        _show(done, faulty, dry_run=dry_run)
    if faulty or not all(each.is_good for each in done):
        sys.exit(1)


def _folder(schemas: Path) -> list[Path]:
    if not schemas.is_dir():
        raise typer.BadParameter(f"{schemas} is no folder. Name files, or set HEADRACE_SCHEMAS.")
    return feed.files(schemas)


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Around what asks the registry's database: that it does not answer is an error like others."""
    from psycopg import OperationalError

    try:
        yield
    except OperationalError as error:
        raise RegistryError(f"the registry's database does not answer: {error}") from error


def _read(paths: Sequence[Path]) -> tuple[list[Feed], dict[str, str]]:
    """The feeds that lint finds no error in, and what is wrong with the others, by name."""
    from headrace import lint

    errors = [fault for fault in lint.lint(paths) if fault.severity == "error"]
    faulty: dict[str, str] = {}
    for path in paths:
        if told := [str(fault) for fault in errors if fault.file == str(path)]:
            faulty[path.stem] = "\n".join(told)
    return [feed.load(path) for path in paths if path.stem not in faulty], faulty


def _register(feeds: Sequence[Feed], *, dry_run: bool) -> "list[Registration]":
    from headrace.airflow import connections, registration, variables

    store = connections.registry()
    if dry_run:
        store.prepare()
        return registration.compare(feeds, store=store)
    kafka = registration.brokers(feeds, connections.kafka)
    done = registration.register(feeds, store=store, kafka=kafka)
    variables.sync(store)
    return done


def _as_json(registration: "Registration") -> dict[str, object]:
    return {**asdict(registration), "drifts": [str(drift) for drift in registration.drifts]}


def _show(done: "Sequence[Registration]", faulty: dict[str, str], *, dry_run: bool) -> None:
    """A table of all feeds, then what is wrong and where the broker differs, one line each."""
    table = Table("feed", "outcome", "subject", "version", "id", "topic", box=None)
    for each in done:
        numbers = (str(number or "") for number in (each.version, each.id))
        table.add_row(each.feed, _outcome(each, dry_run=dry_run), each.subject, *numbers, each.topic)
    for name in faulty:
        table.add_row(name, Text("wrong", "bold red"))
    console = Console(soft_wrap=True, highlight=False)
    console.print(table)
    for each in done:
        for line in (*each.reasons, *([each.silence] if each.silence else []), *map(str, each.drifts)):
            console.print(line, markup=False)
    for why in faulty.values():
        console.print(why, markup=False)


def _outcome(registration: "Registration", *, dry_run: bool) -> Text:
    if registration.silence:
        return Text("no answer", "yellow")
    if registration.reasons:
        return Text("refused", "bold red")
    if not registration.is_new:
        return Text("unchanged", "dim")
    return Text("would be new" if dry_run else "registered", "green")
