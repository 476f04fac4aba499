"""A Postgres table or query as a source: one snapshot, counted and read, never sorted there, no faster than asked."""

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import adbc_driver_manager
import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from psycopg import sql

from headrace.database import Database
from headrace.errors import HistoryError, SourceSilent
from headrace.history.source import BATCH_ROWS, Reading, Rows, SourceColumn
from headrace.kafka.pace import Pace, Rate

# A lock that somebody waits for is waited for shortly: behind us, others would queue. One core of the source is enough.
GENTLE = (
    "set transaction isolation level repeatable read, read only",
    "set local lock_timeout = '10s'",
    "set local max_parallel_workers_per_gather = 0",
    "set local application_name = 'headrace import'",
)
NAME = re.compile(r'(?:"(?:[^"]|"")+"|[^".]+)(?:\.(?:"(?:[^"]|"")+"|[^".]+))?')
PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')


@dataclass(frozen=True)
class PostgresSource:
    """A table by its name, or whatever a query gives."""

    connection: str
    """The Airflow connection's name: it stands for the database in what is told."""
    database: Callable[[], Database] = field(repr=False)
    """Looked up when it is read: what is staged already, or given up, does not need it."""
    table: str | None = None
    query: str | None = None
    rate: float | None = None
    """Rows per second at most."""
    time_limit_s: int = 6 * 3600
    """How long the snapshot may be held open: a database cannot clean up behind it."""

    @property
    def told(self) -> str:
        """A query is told by its hash: it may hold what is personal."""
        if self.query is None:
            return f"postgres:{self.connection}/{self.table}"
        return f"postgres:{self.connection} query {hashlib.sha256(self.query.encode()).hexdigest()[:12]}"

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        with _answering(self), closing(adbc.connect(self.database().url())) as connection:
            for statement in (*GENTLE, f"set local statement_timeout = '{self.time_limit_s}s'"):
                _execute(connection, sql.SQL(statement))
            yield PostgresReading(self, connection)


@dataclass(frozen=True)
class PostgresReading:
    """The source inside one read transaction."""

    source: PostgresSource
    connection: Any
    is_open: bool = False

    @property
    def _origin(self) -> sql.Composable:
        if self.source.query is not None:
            # On a line of its own: a query may end in a comment.
            return sql.SQL("({}\n) as history").format(sql.SQL(self.source.query))
        return identifier(self.source.table or "")

    @cached_property
    def _schema(self) -> pa.Schema:
        select = sql.SQL("select * from {} limit 0").format(self._origin)
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(select.as_string())
            found = cursor.fetch_record_batch().schema
        if twice := [name for name, count in Counter(found.names).items() if count > 1]:
            told = ", ".join(f'"{name}"' for name in twice)
            raise HistoryError(f"{self.source.told}: it gives {told} more than once. Name each column once, with `as`.")
        return found

    @property
    def columns(self) -> Sequence[SourceColumn]:
        given = [(field, _exact(field)) for field in self._schema]
        return [SourceColumn(field.name, field.type if form == "{}" else pa.string()) for field, form in given]

    @property
    def total(self) -> int | None:
        """Of a table only: a query would be computed twice."""
        if self.source.query is not None:
            return None
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(sql.SQL("select count(*) from {}").format(self._origin).as_string())
            return int(cursor.fetchone()[0])

    def rows(self, names: Sequence[str]) -> Iterator[Rows]:
        named = [(sql.Identifier(name), sql.SQL(_exact(self._schema.field(name)))) for name in names]
        columns = sql.SQL(", ").join(sql.SQL("{} as {}").format(form.format(name), name) for name, form in named)
        select = sql.SQL("select {} from {}").format(columns, self._origin)
        pace, first, step = Pace(Rate(self.source.rate)), 1, _step(self.source.rate)
        began = time.monotonic()
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(select.as_string())
            for batch in _unbroken(cursor.fetch_record_batch(), self.source, began=began):
                for start in range(0, batch.num_rows, step):
                    part = batch.slice(start, step)
                    pace.wait(part.num_rows, 0)
                    numbers = range(first, first + part.num_rows)
                    yield Rows("", numbers, dict(zip(names, part.columns, strict=True)))
                    first += part.num_rows


def _step(rate: float | None) -> int:
    """How many rows come at once: never more than a second may have."""
    return BATCH_ROWS if rate is None else max(1, min(BATCH_ROWS, int(rate)))


def identifier(name: str) -> sql.Identifier:
    """A table's name as written in SQL: `orders`, `shop.orders` or `shop."Orders"`."""
    if not NAME.fullmatch(name):
        raise HistoryError(f"{name!r} is no name of a table. Write schema.table, such as public.orders.")
    parts = [quoted.replace('""', '"') if quoted else plain.lower() for quoted, plain in PART.findall(name)]
    return sql.Identifier(*parts)


MENDED = {"money": "{}::numeric::text", "oid": "{}::text"}
"""Types that ADBC alters: money comes as cents, a high oid below zero."""


def _exact(field: pa.Field) -> str:
    """How a column is asked for so that it comes exactly.

    ADBC gives bytes of Postgres' own form for types that it does not know, and flattens arrays of several dimensions.
    """
    named = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    if named in MENDED:
        return MENDED[named]
    if pa.types.is_list(field.type):
        return "to_jsonb({})::text"
    opaque = isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name == "arrow.opaque"
    unknown = opaque and pa.types.is_binary(field.type.storage_type)
    return "{}::text" if unknown or pa.types.is_interval(field.type) or pa.types.is_string(field.type) else "{}"


def _execute(connection: Any, statement: sql.Composable) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement.as_string())


def _unbroken(batches: Iterator[pa.RecordBatch], source: PostgresSource, *, began: float) -> Iterator[pa.RecordBatch]:
    """The batches; what ends them is told by Arrow, as an error of its own kind and without an SQL state."""
    while True:
        try:
            batch = next(batches, None)
        except (OSError, pa.ArrowException) as error:
            # By our clock, which need not go as the database's does.
            if time.monotonic() - began >= 0.99 * source.time_limit_s:
                raise _cancelled(source, error) from None
            raise SourceSilent(f"{source.told}: the reading broke off: {_told(error)}. Run it again.") from None
        if batch is None:
            return
        yield batch


CANCELLED = "57014"
"""The SQL state of a statement that took longer than it may, or that an administrator ended."""
# Nobody answers, shuts down, starts up, or holds a lock for long: later it may do.
PASSING = ("08", "55P03", "57P01", "57P02", "57P03")


@contextmanager
def _answering(source: PostgresSource) -> Iterator[None]:
    """Around what asks the source: its refusals are told without what was in a row."""
    try:
        yield
    except adbc_driver_manager.Error as error:
        if error.sqlstate == CANCELLED:
            raise _cancelled(source, error) from None
        silent = isinstance(error, adbc_driver_manager.OperationalError)
        if silent or (error.sqlstate or "").startswith(PASSING):
            raise SourceSilent(f"{source.told}: the database does not answer: {_told(error)}") from None
        raise HistoryError(f"{source.told}: the database refuses it: {_told(error)}") from None


def _cancelled(source: PostgresSource, error: Exception) -> HistoryError:
    hours = source.time_limit_s / 3600
    return HistoryError(
        f"{source.told}: the database ended the reading, which may take {hours:.3g} hours: {_told(error)}. Nothing was "
        f"staged. Import it in parts, each with a --query of its own, or with a higher --source-rate."
    )


DATA = "22"
"""The class of SQL states that are about a value, which Postgres then quotes."""
QUOTED = re.compile(r'"(?:.*"|.*)', re.DOTALL)


def _told(error: Exception) -> str:
    """What Postgres says first, without the value that it stumbled over."""
    said = str(error).split("\nQuery", maxsplit=1)[0]
    if not isinstance(error, adbc_driver_manager.Error) or (error.sqlstate or "").startswith(DATA):
        said = QUOTED.sub("…", said)
    return said.split("\n", maxsplit=1)[0].removesuffix(": …").rstrip(".")
