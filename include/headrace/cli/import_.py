"""`headrace import`: history from a database or from files into a feed's topic."""

import contextlib
import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from headrace import feed as feeds
from headrace.airflow import history
from headrace.airflow.history import SOURCE_RATE, Request, told_type
from headrace.cli.register import answering
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.history.preparation import Preview, Progress
    from headrace.history.staging import Report

WORDS = {"read": "reading", "stage": "staging", "publish": "publishing", "count": "counting"}


class Format(StrEnum):
    """What files hold, where their names do not tell."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"
    AVRO = "avro"


class Partitioner(StrEnum):
    """How a key's partition is chosen."""

    MURMUR2 = "murmur2_random"
    CONSISTENT = "consistent_random"
    FNV1A = "fnv1a_random"


def import_(  # noqa: PLR0917 - typer calls it by names
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SOURCE",
            help="postgres:CONNECTION/schema.table, postgres:CONNECTION with --query, s3://bucket/*.avro, or a path.",
        ),
    ],
    query: Annotated[str | None, typer.Option(help="What to ask the database, in SQL.")] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="FIELD=COLUMN", help="A field whose column has another name; again for several."),
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The records' Kafka timestamp; else the time of publishing.")
    ] = None,
    format_: Annotated[Format | None, typer.Option("--format", help="If the files' names do not tell.")] = None,
    delimiter: Annotated[str, typer.Option(help="Between the values of a CSV file.")] = ",",
    null: Annotated[
        list[str] | None, typer.Option(help="A text, not in quotes, that means null in CSV; nothing, if not given.")
    ] = None,
    header: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The columns of CSV files whose first line does not name them.")
    ] = None,
    aws_connection: Annotated[
        str | None, typer.Option(metavar="CONNECTION", help="For files on S3, if not where the lake is.")
    ] = None,
    source_rate: Annotated[
        float, typer.Option(metavar="ROWS", help="Rows per second that the source is asked for at most; 0: no limit.")
    ] = SOURCE_RATE,
    rate: Annotated[
        float | None, typer.Option(metavar="RECORDS", help="Records per second published at most; else no limit.")
    ] = None,
    partitioner: Annotated[
        Partitioner, typer.Option(help="As your producers choose a partition: Java's, or librdkafka's own default.")
    ] = Partitioner.MURMUR2,
    scratch: Annotated[
        Path | None, typer.Option(help="A folder with room to sort in.", exists=True, file_okay=False)
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first row that is no record.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Import once more what was imported already.")] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Give up what was begun and not finished: remove what is staged.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be done, and what is wrong in the first rows.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Import history into a feed's topic, each row exactly once.

    The source is read once, in one snapshot and no faster than asked; its rows
    are encoded by the feed's schema, sorted by key and staged on S3, then
    published in transactions. Stopped anywhere, the same command goes on.
    Imported records rank below live ones. Rows that are no records are left
    out, counted, and listed beside what is staged. In the end the counts match.

    \b
    Exit code 0: all rows are in the topic. 1: rows were rejected, or it failed.
    2: a wrong option.
    \b
    a table:  headrace import orders --from postgres:shop_db/public.orders
    a query:  headrace import orders --from postgres:shop_db --query "select …"
    files:    headrace import orders --from 's3://old/orders/*.parquet'
    CSV:      headrace import orders --from 'old/*.csv' --null NULL --map id=nr
    """
    renames = dict(_pair(each) for each in map_ or ())
    request = Request(
        feed=feeds.named(feed, Settings().schemas),
        source=from_,
        query=query,
        renames=renames,
        timestamp=timestamp,
        format=format_.value if format_ else None,
        delimiter=delimiter,
        nulls=tuple(null) if null else ("",),
        header=tuple(header.split(",")) if header else (),
        aws_connection=aws_connection,
        source_rate=source_rate or None,
        rate=rate,
        partitioner=partitioner.value,
        strict=strict,
        again=again,
        scratch=scratch,
    )
    # Airflow logs to standard output, which belongs to our own answer.
    if discard:
        with contextlib.redirect_stdout(sys.stderr), answering():
            removed = history.discard(request)
        print(json.dumps({"removed": removed})) if json_ else _show_discarded(feed, removed)
        return
    if dry_run:
        with contextlib.redirect_stdout(sys.stderr), answering():
            seen = history.preview(request)
        print(json.dumps(history.told(seen))) if json_ else _show_preview(seen)
        sys.exit(1 if seen.problems else 0)
    with contextlib.redirect_stdout(sys.stderr), answering(), _progress(feed) as progress:
        done = history.run(request, progress=progress)
    print(done.model_dump_json()) if json_ else _show(done)
    sys.exit(1 if done.rejected else 0)


def _pair(text: str) -> tuple[str, str]:
    field, equals, column = text.partition("=")
    if not (field and equals and column):
        raise typer.BadParameter(f"{text!r}: write FIELD=COLUMN, the feed's name first.", param_hint="--map")
    return field, column


@contextlib.contextmanager
def _progress(feed: str) -> "Iterator[Progress]":
    """A bar for each part of the work on a terminal; a line for each elsewhere."""
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        tasks = {}

        def progress(phase: str, done: int, total: int | None) -> None:
            if phase not in tasks:
                tasks[phase] = bar.add_task(f"{feed}: {WORDS[phase]}", total=total)
                if not console.is_terminal:
                    console.print(f"{feed}: {WORDS[phase]}")
            bar.update(tasks[phase], completed=done, total=total)

        yield progress


def _show_discarded(feed: str, removed: int) -> None:
    told = f"given up, {removed} objects were removed. What was published stays." if removed else "nothing to give up."
    Console(soft_wrap=True, highlight=False).print(f"{feed}: {told}", markup=False)


def _show(done: "Report") -> None:
    console = Console(soft_wrap=True, highlight=False)
    rejected = sum(done.rejected.values())
    counted = "counted in the topic" if done.proof == "topic" else "acknowledged by the broker"
    console.print(
        f"{done.feed}: {done.total:,} rows, {done.published:,} published ({counted}), {rejected:,} rejected. "
        f"Import {done.import_id}, finished {done.finished_at}.",
        markup=False,
    )
    for fault, count in sorted(done.rejected.items()):
        console.print(f"  {fault}: {count:,}", markup=False)
    if done.rejected_at:
        console.print(f"Rejected rows, where each is and why: {done.rejected_at}", markup=False)


def _show_preview(seen: "Preview") -> None:
    console = Console(soft_wrap=True, highlight=False)
    table = Table("field", "type", "column", "of type", "personal", box=None)
    for each in seen.mapping.filled:
        table.add_row(
            each.target.name, each.target.told, each.column.name, told_type(each.column), each.target.pii or ""
        )
    for target in seen.mapping.unfilled:
        table.add_row(target.name, target.told, "none: its default, or null", "", target.pii or "")
    console.print(table)
    if seen.mapping.left_out:
        console.print(f"Columns that fill no field: {', '.join(seen.mapping.left_out)}", markup=False)
    total = "an unknown number of" if seen.total is None else f"{seen.total:,}"
    console.print(f"The source has {total} rows; the first {seen.read:,} were read.", markup=False)
    for (fault, field, why), count in sorted(seen.problems.items(), key=lambda each: -each[1]):
        console.print(f"  {count:,} rows would be rejected: {field}: {why} ({fault})", markup=False)
    if not seen.problems:
        console.print("All of them are records of the feed.", markup=False)
