"""The registry's memory: schemas, subjects and versions in Postgres, where constraints keep ids unique."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NewType

import psycopg

from headrace.database import Database
from headrace.feed import SchemaType

SchemaId = NewType("SchemaId", int)
Version = NewType("Version", int)

# Ids come from a sequence and content is unique by its digest: no two servers can give one id to two schemas, nor two
# ids to one.
TABLES = """
create table if not exists schemas (
    id integer generated always as identity primary key,
    type text not null,
    text text not null,
    digest bytea not null unique
);
create table if not exists versions (
    subject text not null,
    version integer not null,
    schema_id integer not null references schemas (id),
    registered_at timestamptz not null default now(),
    primary key (subject, version),
    unique (subject, schema_id)
);
"""


@dataclass(frozen=True)
class Registered:
    """One version of a subject."""

    subject: str
    version: Version
    id: SchemaId


@dataclass(frozen=True)
class Store:
    """The registry's tables in one database."""

    database: Database

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection]:
        with psycopg.connect(self.database.url()) as connection, connection.transaction():
            yield connection

    def prepare(self) -> None:
        """Make the tables; two servers may do so at once."""
        with self._transaction() as connection:
            connection.execute("select pg_advisory_xact_lock(hashtext('headrace.registry'))")
            connection.execute(TABLES)

    def register(self, subject: str, schema_type: SchemaType, *, text: str) -> Registered:
        """The subject's version of this schema, a new one if it has none."""
        with self._transaction() as connection:
            # One registration per subject at a time, so that versions count up without a gap.
            connection.execute("select pg_advisory_xact_lock(hashtext(%s))", [subject])
            id_ = _schema_id(connection, schema_type, text=text)
            row = connection.execute(
                "select version from versions where subject = %s and schema_id = %s", [subject, id_]
            ).fetchone()
            return Registered(subject, row[0] if row else _add_version(connection, subject, id_=id_), id_)

    def writers(self, subject: str) -> Mapping[int, str]:
        """Every schema that a record of this subject may have been written with, by id."""
        with self._transaction() as connection:
            rows = connection.execute(
                "select id, text from schemas join versions on id = schema_id where subject = %s order by id", [subject]
            )
            return dict(rows.fetchall())


def _schema_id(connection: psycopg.Connection, schema_type: SchemaType, *, text: str) -> SchemaId:
    digest = hashlib.sha256(f"{schema_type}\n{text}".encode()).digest()
    query = "select id from schemas where digest = %s"
    if row := connection.execute(query, [digest]).fetchone():
        return SchemaId(row[0])
    connection.execute(
        "insert into schemas (type, text, digest) values (%s, %s, %s) on conflict (digest) do nothing",
        [schema_type, text, digest],
    )
    row = connection.execute(query, [digest]).fetchone()
    assert row is not None, "the schema was inserted, by us or by another server, in this very transaction's view"
    return SchemaId(row[0])


def _add_version(connection: psycopg.Connection, subject: str, *, id_: SchemaId) -> Version:
    row = connection.execute(
        "insert into versions (subject, version, schema_id) "
        "select %(subject)s, coalesce(max(version), 0) + 1, %(id)s from versions where subject = %(subject)s "
        "returning version",
        {"subject": subject, "id": id_},
    ).fetchone()
    assert row is not None, "an insert that returns gives a row"
    return Version(row[0])
