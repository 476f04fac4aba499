"""`headrace read`: a feed's clean rows on a terminal or in a file."""

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import headrace

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from headrace.readers import CleanRows

SHOWN = 20
"""How many rows a table has unless more are asked for."""


class Format(StrEnum):
    """How rows are written."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def read(  # noqa: PLR0917 - typer calls it by names
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    columns: Annotated[str | None, typer.Option(metavar="A,B,…", help="Columns, in this order.")] = None,
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Which rows: \"created_at >= '2026-01-31'\".")
    ] = None,
    as_of: Annotated[str | None, typer.Option(metavar="TIME", help="As readers saw them then, UTC.")] = None,
    snapshot: Annotated[int | None, typer.Option(metavar="ID", help="At one of --snapshots.")] = None,
    personal: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Personal columns to show besides; * for all.")
    ] = None,
    as_warehouse: Annotated[str | None, typer.Option(metavar="NAME", help="As that warehouse gets them.")] = None,
    limit: Annotated[int | None, typer.Option(help=f"At most so many rows; a table has {SHOWN}.", min=0)] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to write them.")] = Format.table,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; standard output if none.")] = None,
    describe: Annotated[bool, typer.Option("--describe", help="Tell of the columns instead.")] = False,
    snapshots: Annotated[bool, typer.Option("--snapshots", help="Tell what was published instead.")] = False,
) -> None:
    """Show the clean rows of a feed, as everybody reads them.

    Deleted rows and the platform's own columns never show. Personal columns show
    only if they are named, by --columns or --personal, and where the variable
    HEADRACE_PERSONAL allows their kind.

    \b
    Exit code 0: told. 1: there is no such feed, column or snapshot, a personal
    column may not be read, or a server does not answer. 2: a wrong option.
    \b
    the columns: headrace read orders --describe
    some rows:   headrace read orders --where "status = 'paid'" --limit 5
    yesterday:   headrace read orders --as-of 2026-11-17 --format csv -o old.csv
    """
    if format_ is Format.parquet and output is None:
        raise typer.BadParameter("parquet needs a file: -o FILE", param_hint="--format")
    rows = headrace.read(
        feed,
        columns=_names(columns),
        where=where,
        as_of=as_of,
        snapshot=snapshot,
        personal="*" if personal == "*" else _names(personal) or (),
        as_warehouse=as_warehouse,
    )
    if describe or snapshots:
        _show_frame(rows.describe() if describe else rows.snapshots())
        return
    if format_ is Format.table:
        batches = _first(rows, SHOWN if limit is None else limit)
        Console(soft_wrap=True, highlight=False).print(_table(rows.names, _records(batches)))
    elif output is None:
        _write(rows, limit, format_=format_, file=sys.stdout.buffer)
    else:
        with output.open("wb") as file:
            _write(rows, limit, format_=format_, file=file)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _first(rows: "CleanRows", limit: int | None) -> Iterator["pa.RecordBatch"]:
    """The rows up to a limit; files beyond it are not opened."""
    left = limit
    for batch in rows.batches() if limit != 0 else ():
        yield batch if left is None else batch.slice(0, left)
        left = None if left is None else left - batch.num_rows
        if left is not None and left <= 0:
            return


def _records(batches: Iterator["pa.RecordBatch"]) -> Iterator[dict[str, Any]]:
    return (record for batch in batches for record in batch.to_pylist())


def _write(rows: "CleanRows", limit: int | None, *, format_: Format, file: IO[bytes]) -> None:
    batches = _first(rows, limit)
    if format_ is Format.json:
        for record in _records(batches):
            file.write(json.dumps(record, ensure_ascii=False, default=str).encode() + b"\n")
        return
    import pyarrow as pa
    from pyarrow import csv, parquet

    if format_ is Format.parquet:
        with parquet.ParquetWriter(file, rows.schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_batch(batch)
        return
    flat = _flat(rows.schema.empty_table())
    with csv.CSVWriter(file, flat.schema) as lines:
        for batch in batches:
            lines.write_table(_flat(pa.Table.from_batches([batch])))


def _flat(table: "pa.Table") -> "pa.Table":
    """What CSV has no form for, as JSON."""
    import pyarrow as pa

    for position, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            values = table.column(position).to_pylist()
            texts = [None if value is None else json.dumps(value, ensure_ascii=False, default=str) for value in values]
            table = table.set_column(position, field.name, pa.array(texts, pa.string()))
    return table


def _show_frame(frame: "pd.DataFrame") -> None:
    names = [str(name) for name in frame.columns]
    records = frame.astype(object).where(frame.notna(), None).to_dict("records")
    Console(soft_wrap=True, highlight=False).print(_table(names, iter(records)))


def _table(names: list[str], records: Iterator[dict[str, Any]]) -> Table:
    table = Table(*names, box=None)
    for record in records:
        # As text: what stands in a row is no markup.
        table.add_row(*(Text("" if record[name] is None else str(record[name])) for name in names))
    return table
