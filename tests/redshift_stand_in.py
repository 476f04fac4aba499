"""A stand-in for Redshift: a Postgres database that is asked what Redshift would be, and the real S3.

What both share runs as it is, at the isolation that Redshift has: tables, deletes, MERGE, locks, comments, grants, the
log. COPY and UNLOAD are done here, from and to the very objects on S3 that they name. What is told to Redshift alone,
its keys and its types' names, is left out or has a namesake in Postgres. Every statement is held against the grammar.
"""

import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import IsolationLevel, sql
from redshift_connector.error import InterfaceError, ProgrammingError
from redshift_grammar import TEXT, form, unquoted

from headrace.objects import place

NAMESAKES = (
    "create domain super as jsonb",
    "create function json_parse(text) returns super language sql immutable as 'select $1::jsonb::super'",
    # As Redshift documents it, of a null too; and without blanks, so that nothing rests on how JSON is spaced.
    r"""create function "json_serialize"(super) returns text language sql immutable
    as $$ select coalesce(replace(replace($1::jsonb::text, '": ', '":'), '", "', '","'), 'null') $$""",
    "create function getdate() returns timestamp language sql stable as 'select now()::timestamp'",
)
OF_REDSHIFT_ALONE = (
    (re.compile(r" diststyle (?:auto|key distkey \([^)]*\))(?: sortkey \([^)]*\))?"), ""),
    (re.compile(r"\b(to|from) role\b"), r"\1"),
    (re.compile(r"\bjson_serialize\("), '"json_serialize"('),  # Postgres 17 and later have one of their own
)
CASE = "set enable_case_sensitive_identifier to true"
NAME_OR_TEXT = re.compile(rf"""{TEXT}|"(?:[^"]|"")+\"""")
VARBYTE = re.compile(r"\bvarbyte\((\d+)\)")


@dataclass
class StandIn:
    """A database of its own on a real Postgres, and the bucket that it reads and writes."""

    url: str
    s3: Any
    said: list[str] = field(default_factory=list)
    """Every statement that it was asked."""
    before: Callable[[str], None] = lambda statement: None
    """Is told each statement first: a test may have it fail there."""

    def connect(self, *, within: int | None = None) -> "Connection":
        connection = psycopg.connect(self.url, autocommit=False)
        connection.isolation_level = IsolationLevel.SERIALIZABLE
        return Connection(self, connection)

    def asked(self, statement: str) -> list[tuple[Any, ...]]:
        """As an analyst does."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            done = connection.execute(statement)  # type: ignore[arg-type]
            return done.fetchall() if done.description else []


@contextmanager
def stand_in(superuser: psycopg.Connection[Any], url_of: Callable[[str], str], s3: Any) -> Iterator[StandIn]:
    """Make the database, and drop it in the end."""
    name = f"redshift_{uuid.uuid4().hex[:8]}"
    superuser.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    try:
        with psycopg.connect(url_of(name), autocommit=True) as connection:
            for statement in NAMESAKES:
                connection.execute(statement)  # type: ignore[arg-type]
        yield StandIn(url_of(name), s3)
    finally:
        superuser.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@dataclass
class Connection:
    """What redshift_connector gives, of what we use of it."""

    stand_in: StandIn
    real: psycopg.Connection[Any]
    keeps_case: bool = False
    """Whether capitals in names are kept, as this session has asked for."""

    def cursor(self) -> "Cursor":
        return Cursor(self, self.real.cursor())

    def commit(self) -> None:
        with _as_redshift():
            self.real.commit()

    def rollback(self) -> None:
        self.real.rollback()

    def close(self) -> None:
        self.real.close()


@dataclass
class Cursor:
    connection: Connection
    real: psycopg.Cursor[Any]

    def execute(self, statement: str, parameters: Sequence[Any] | None = None) -> None:
        kind = form(statement)
        self.connection.stand_in.said.append(statement)
        self.connection.stand_in.before(statement)
        with _as_redshift():
            if statement == CASE:
                self.connection.keeps_case = True
            elif kind == "copy":
                self._copy(self._folded(statement))
            elif kind == "unload":
                self._unload(statement)
            else:
                self.real.execute(self._for_postgres(statement), parameters)  # type: ignore[arg-type]

    def fetchall(self) -> list[Any]:
        told = re.compile(r"^varbyte_(\d+)$")
        return [
            tuple(told.sub(r"binary varying(\1)", each) if isinstance(each, str) else each for each in row)
            for row in self.real.fetchall()
        ]

    def close(self) -> None:
        self.real.close()

    def _folded(self, statement: str) -> str:
        """Quoted names in small letters, as Redshift takes them where it was not told otherwise."""
        if self.connection.keeps_case:
            return statement
        return NAME_OR_TEXT.sub(lambda found: found[0].lower() if found[0][0] == '"' else found[0], statement)

    def _for_postgres(self, statement: str) -> str:
        statement = self._folded(statement)
        for pattern, instead in OF_REDSHIFT_ALONE:
            statement = pattern.sub(instead, statement)
        for length in set(VARBYTE.findall(statement)):
            there = self.connection.stand_in.asked(f"select 1 from pg_type where typname = 'varbyte_{length}'")
            if not there:
                self.connection.stand_in.asked(f"create domain varbyte_{length} as bytea")
        return VARBYTE.sub(r"varbyte_\1", statement)

    def _copy(self, statement: str) -> None:
        """Load what the manifest names: every file has to be there, of the length that is told."""
        found = re.match(rf"copy (\S+) from ({TEXT})", statement)
        assert found is not None
        manifest = json.loads(self._object(unquoted(found[2])))
        for entry in manifest["entries"]:
            body = self._object(entry["url"])
            assert (entry["mandatory"], entry["meta"]["content_length"]) == (True, len(body))
            rows = pq.ParquetFile(pa.BufferReader(body), coerce_int96_timestamp_unit="us").read()
            with self.real.copy(f"copy {found[1]} from stdin") as copying:  # type: ignore[arg-type]
                for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                    copying.write_row(row)

    def _unload(self, statement: str) -> None:
        """Write what the query gives, in two files, as several nodes would."""
        found = re.match(rf"unload \(({TEXT})\) to ({TEXT})", statement)
        assert found is not None
        self.real.execute(self._for_postgres(unquoted(found[1])))  # type: ignore[arg-type]
        names = [each.name for each in self.real.description or ()]
        rows = self.real.fetchall()
        half = len(rows) // 2
        for number, part in enumerate((rows[:half], rows[half:])):
            values = list(zip(*part, strict=True)) or [()] * len(names)
            table = pa.table({name: pa.array(column) for name, column in zip(names, values, strict=True)})
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, use_deprecated_int96_timestamps=True, store_schema=False)
            bucket, prefix = place(unquoted(found[2]))
            key = f"{prefix}/{number:04d}_part_00.parquet"
            self.connection.stand_in.s3.put_object(Bucket=bucket, Key=key, Body=sink.getvalue().to_pybytes())

    def _object(self, url: str) -> bytes:
        bucket, key = place(url)
        body: bytes = self.connection.stand_in.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body


@contextmanager
def _as_redshift() -> Iterator[None]:
    """Errors as redshift_connector raises them."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate is None:
            raise InterfaceError(str(error)) from error
        told = {"C": error.sqlstate, "M": error.diag.message_primary or "", "D": error.diag.message_detail or ""}
        raise ProgrammingError(told) from error


def until(done: Callable[[], bool], *, seconds: float = 30) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not come to pass"
        with suppress(InterruptedError):
            time.sleep(0.02)
