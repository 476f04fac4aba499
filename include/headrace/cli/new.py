"""`headrace new`: a feed file to begin with, plain or derived from what is already there."""

import contextlib
import json
import sys
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from headrace import feed as feeds
from headrace import layout
from headrace.cli.register import answering
from headrace.errors import FeedError, RegistryError
from headrace.fault import nearest
from headrace.feed import SUFFIXES, Feed, SchemaType
from headrace.settings import Settings
from headrace.starter import breaking, draft, example, samples, subject, table
from headrace.starter.draft import Said, Starter

WIDEST = 24
"""Of what is guessed about; a longer name stands out, and only it."""
SOURCES = ("--from-records", "--from-table", "--from-subject", "--breaks")


class Format(StrEnum):
    """The language of the feed file."""

    AVRO = "avro"
    JSON = "json"

    @property
    def schema_type(self) -> SchemaType:
        return "AVRO" if self is Format.AVRO else "JSON"


def new(  # noqa: PLR0917 - typer calls it by names
    name: Annotated[
        str | None, typer.Argument(help="The feed's name, which names its file; not needed to break.")
    ] = None,
    format_: Annotated[
        Format | None, typer.Option("--format", help="avro (if not given) or json, for JSON Schema (for records).")
    ] = None,
    from_records: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Derive it from JSON records, one per line or a list; - reads what is piped."
        ),
    ] = None,
    from_table: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="DATABASE TABLE", help="Derive it from a Postgres table; an Airflow connection or a URL."),
    ] = None,
    from_subject: Annotated[
        str | None, typer.Option(metavar="SUBJECT", help="Take a schema that is already registered.")
    ] = None,
    breaks: Annotated[
        str | None, typer.Option(metavar="FEED", help="Break with a feed: a new one that drains the old topic first.")
    ] = None,
    key: Annotated[list[str] | None, typer.Option(help="A field that identifies a row; again for several.")] = None,
    order: Annotated[list[str] | None, typer.Option(help="A field that counts a row's versions.")] = None,
    owner: Annotated[str | None, typer.Option(help="The team that answers for the feed.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it is there.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Write a feed file to begin with, and say what was guessed in it.

    Guesses about personal data err on the safe side. The file passes headrace lint, and nothing is registered yet.
    Exit code 0: written. 1: it could not be. 2: the options do not fit together.

    \b
    plain:     headrace new orders --owner shop-team
    records:   headrace new clicks --from-records clicks.jsonl
    a topic:   kcat -Cet clicks | headrace new clicks --from-records -
    a table:   headrace new orders --from-table shop_db public.orders
    a subject: headrace new orders --from-subject orders-value
    breaking:  headrace new --breaks orders
    """
    given = [
        option for option, value in zip(SOURCES, (from_records, from_table, from_subject, breaks), strict=True) if value
    ]
    if len(given) > 1:
        raise typer.BadParameter(f"{' and '.join(given)} exclude each other; choose one.")
    folder, said = Settings().schemas, Said(key or (), order or (), owner)
    if breaks is not None:
        if format_ or key or order or owner:
            raise typer.BadParameter(
                "--breaks takes everything from the feed that it breaks with; change the file after."
            )
        old = _feed(breaks, folder)
        made = breaking.starter(old, name or breaking.next_name(old.name))
    elif name is None:
        raise typer.BadParameter("give the feed's name, such as: headrace new orders", param_hint="NAME")
    elif not layout.NAME.fullmatch(name):
        wanted = "lower-case letters, digits and _, at most 48, the first a letter"
        raise FeedError(f"{name!r} is no name of a feed, which has {wanted}. Choose another name.")
    elif from_records is not None:
        found = samples.records(_text(from_records).removeprefix(feeds.BYTE_ORDER_MARK))
        made = draft.starter(samples.draft(name, found, said), (format_ or Format.JSON).schema_type)
    elif from_table is not None:
        made = draft.starter(table.draft(name, _table(*from_table), said), (format_ or Format.AVRO).schema_type)
    elif from_subject is not None:
        if format_:
            raise typer.BadParameter("--format is the registered schema's own with --from-subject.")
        made = _registered(name, from_subject, said)
    else:
        made = draft.starter(example.draft(name, said), (format_ or Format.AVRO).schema_type)
    _refuse_faulty(made)
    path = write(made, folder, force=force)
    if json_:
        told = {"feed": made.feed.name, "file": str(path), "topic": made.feed.topic}
        print(json.dumps({**told, "guesses": [asdict(guess) for guess in made.guesses]}, ensure_ascii=False, indent=2))
    else:
        _show(made, path)


def _refuse_faulty(made: Starter) -> None:
    """What is written passes lint, or is not written."""
    # What reads columns is slow to import, and wrong options are told without.
    from headrace import lint

    found = lint.check(feeds.read(made.file, made.text))
    if faults := [fault for fault in found if fault.severity == "error"]:
        raise FeedError.of(replace(fault, file=made.file) for fault in faults)


def write(made: Starter, folder: Path, *, force: bool) -> Path:
    """Put the file into the folder; one that is there, in whichever language, stays unless forced."""
    path = folder / made.file
    for suffix in SUFFIXES:
        other = path.with_suffix(suffix)
        if other.exists() and other != path:
            raise FeedError(
                f"{other}: it declares the feed {made.feed.name} already. Remove it, or choose another name."
            )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(made.text)
    except FileExistsError as error:
        raise FeedError(f"{path}: it is there already. Overwrite it with --force, or choose another name.") from error
    return path


def _text(source: str) -> str:
    try:
        return sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise FeedError(f"{source}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise FeedError(f"{source}: byte {error.start} is not UTF-8: {error.reason}.") from error


def _feed(name: str, folder: Path) -> Feed:
    """A feed by its name, or by the path of its file."""
    if Path(name).suffix in SUFFIXES:
        return feeds.load(Path(name))
    paths = {path.stem: path for path in feeds.files(folder)} if folder.is_dir() else {}
    if name not in paths:
        raise FeedError(f"{folder} has no feed {name}. {nearest(name, list(paths))}")
    return feeds.load(paths[name])


def _table(database: str, name: str) -> table.Table:
    if database.startswith(("postgresql://", "postgres://")):
        return table.read(database, name)
    if "://" in database:
        raise typer.BadParameter(
            "a database is an Airflow connection or a postgresql:// URL.", param_hint="--from-table"
        )
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import connections

        url = connections.database(database).url()
    return table.read(url, name)


def _registered(name: str, wanted: str, said: Said) -> Starter:
    with contextlib.redirect_stdout(sys.stderr), answering():
        from headrace.airflow import connections

        latest = {version.subject: version for version in connections.registry().latest()}
    if wanted not in latest:
        raise RegistryError(f"the registry has no subject {wanted}. {nearest(wanted, list(latest))}")
    found = latest[wanted]
    if found.schema.references:
        raise FeedError(f"subject {wanted}: it refers to other subjects; a feed file holds its whole schema.")
    return subject.starter(name, wanted, text=found.text, schema_type=found.type, said=said)


def _show(made: Starter, path: Path) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"[bold]{escape(str(path))}[/bold] written: topic {escape(made.feed.topic)}, {_fields(made.feed)}.")
    if made.guesses:
        console.print("\nLook at:")
        width = min(WIDEST, max(len(guess.path) for guess in made.guesses))
        for guess in made.guesses:
            # Padded before it is escaped: what escapes a bracket is not shown.
            console.print(f"  [yellow]{escape(f'{guess.path:<{width}}')}[/yellow]  {escape(guess.message)}")
    console.print(f"\nThen: headrace lint {escape(str(path))}")
    console.print(f"      headrace register {escape(str(path))}")
    if drains := made.feed.declaration.topic.drains:
        console.print(
            f"      Move the producers to the topic {escape(made.feed.topic)}. When nothing writes to "
            f"{escape(drains.topic)} any more, remove the old feed's file; keep topic.drains in the new one."
        )


def _fields(feed: Feed) -> str:
    personal = f", {len(feed.personal)} of them personal" if feed.personal else ""
    count = "1 field" if len(feed.fields) == 1 else f"{len(feed.fields)} fields"
    return f"{count}{personal}, key {escape(', '.join(feed.declaration.key))}"
