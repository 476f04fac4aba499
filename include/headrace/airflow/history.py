"""An import as a command or a form asks for it, with what Airflow's connections say.

Heavy imports wait inside the functions: a DAG's file is read often.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import HistoryError
from headrace.feed import Feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.history.preparation import Preview, Progress
    from headrace.history.source import Source, SourceColumn
    from headrace.history.staging import Report
    from headrace.stages.history import Import

SOURCE_RATE = 50_000
"""Rows per second that a source is asked for, unless somebody knows that it bears more."""


@dataclass(frozen=True)
class Request:
    """What somebody wants to be imported."""

    feed: Feed
    source: str
    """`postgres:CONNECTION/schema.table`, `postgres:CONNECTION` with a query, `s3://…` or a path, also as a pattern."""
    query: str | None = None
    renames: Mapping[str, str] = field(default_factory=dict)
    timestamp: str | None = None
    format: str | None = None
    delimiter: str = ","
    nulls: tuple[str, ...] = ("",)
    header: tuple[str, ...] = ()
    aws_connection: str | None = None
    source_rate: float | None = SOURCE_RATE
    rate: float | None = None
    partitioner: str | None = None
    strict: bool = False
    again: bool = False
    scratch: Path | None = None


def run(request: Request, *, progress: "Progress", wish: str | None = None) -> "Report":
    """Import what is asked for; of several tries of one wish to import again, only one does."""
    from headrace.airflow import connections, registration
    from headrace.stages import history

    return history.import_history(
        _asked(request, schema_id=registration.schema_id(request.feed), wish=wish),
        lake=connections.lake(Settings()),
        kafka=connections.kafka(),
        signing=connections.signing_key(),
        progress=progress,
    )


def preview(request: Request) -> "Preview":
    """What an import would do."""
    from headrace.airflow import connections, registration
    from headrace.stages import history

    return history.preview(_asked(request, schema_id=registration.schema_id(request.feed)), kafka=connections.kafka())


def told(seen: "Preview") -> dict[str, Any]:
    """A preview for programs; without a value of any row."""
    mapping = seen.mapping
    return {
        "fields": [
            {
                "field": each.target.name,
                "type": each.target.told,
                "column": each.column.name,
                "from": told_type(each.column),
            }
            for each in mapping.filled
        ],
        "unfilled": [target.name for target in mapping.unfilled],
        "left_out": list(mapping.left_out),
        "rows": seen.total,
        "read": seen.read,
        "problems": [
            {"fault": fault, "field": field, "why": why, "rows": count}
            for (fault, field, why), count in seen.problems.items()
        ],
    }


def told_type(column: "SourceColumn") -> str:
    """What type a column is of, in words."""
    return "as each value tells" if column.type is None else str(getattr(column.type, "type_name", column.type))


def discard(request: Request) -> int:
    """Give up what was begun and not finished, whatever the registry says by now; how many objects were removed."""
    from headrace.airflow import connections
    from headrace.stages import history

    asked = _asked(request, schema_id=0)
    return history.discard(asked, lake=connections.lake(Settings()), kafka=connections.kafka())


def _asked(request: Request, *, schema_id: int, wish: str | None = None) -> "Import":
    from headrace.feed import refuse_stream
    from headrace.history.preparation import Order
    from headrace.kafka.pace import Rate
    from headrace.stages.history import PARTITIONER, Import

    refuse_stream(request.feed, "import")
    return Import(
        request.feed,
        _source(request),
        schema_id=schema_id,
        order=Order(request.renames, request.timestamp, strict=request.strict, scratch=request.scratch),
        rate=Rate(request.rate),
        partitioner=request.partitioner or PARTITIONER,
        again=request.again,
        wish=wish,
    )


def _source(request: Request) -> "Source":
    kind, _, rest = request.source.partition(":")
    if kind in ("postgresql", "jdbc") or (kind == "postgres" and rest.startswith("//")):
        raise HistoryError(
            "a database is named by its Airflow connection, which keeps the password: postgres:CONNECTION/schema.table."
        )
    return _table(request, rest) if kind == "postgres" else _files(request)


def _table(request: Request, named: str) -> "Source":
    from headrace.airflow import connections
    from headrace.history.postgres_source import PostgresSource, identifier

    connection, _, table = named.partition("/")
    if bool(table) == bool(request.query):
        raise HistoryError(
            f"{request.source}: name a table, postgres:{connection}/schema.table, or give a --query; one of them."
        )
    if table:
        identifier(table)
    query = (request.query or "").strip().rstrip(";") or None
    database = partial(connections.database, connection)
    return PostgresSource(connection, database, table=table or None, query=query, rate=request.source_rate)


def _files(request: Request) -> "Source":
    from headrace.history.file_source import READERS, Csv, FileSource
    from headrace.history.folder import Bucket, Disk, Folder

    if request.query:
        raise HistoryError("--query is asked of a database; files have none.")
    if request.format is not None and request.format not in READERS:
        raise HistoryError(f"--format {request.format}: files are of one of {', '.join(READERS)}.")
    folder: Folder = Bucket(partial(_s3, request)) if request.source.startswith("s3://") else Disk()
    pattern = request.source if request.source.startswith("s3://") else str(Path(request.source).absolute())
    csv = Csv(request.delimiter, request.nulls, request.header)
    return FileSource(
        pattern,
        folder,
        format=request.format,  # type: ignore[arg-type]
        csv=csv,
        rate=request.source_rate,
        scratch=request.scratch,
    )


def _s3(request: Request) -> Any:
    from headrace.airflow import aws, connections

    storage = aws.storage(request.aws_connection) if request.aws_connection else connections.storage()
    return storage.client()
