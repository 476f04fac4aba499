"""A Postgres warehouse: a plain table per feed, changed in transactions that record the snapshot they bring."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
from psycopg import sql
from pyiceberg.types import IcebergType, UUIDType

from headrace.arrow import is_json
from headrace.clean import HIDDEN_ROW
from headrace.database import Database
from headrace.json_text import canonical, decoder
from headrace.share import Share
from headrace.warehouses.postgres_types import column_type

STAGING = "headrace_staging"

# What was loaded when and from which snapshot. The contract tells under which columns and masks: another contract
# means that every row has to be compared again.
PLATFORM = """
create schema if not exists headrace;
create table if not exists headrace.loads (
    table_name text primary key,
    snapshot_id bigint,
    contract text,
    loaded_at timestamptz
);
"""

USAGE = sql.SQL("grant usage on schema {schema} to {reader}")
LOADED = "select snapshot_id, contract from headrace.loads where table_name = %s"


@dataclass(frozen=True)
class Load:
    """What the warehouse records about a table."""

    snapshot: int | None
    contract: str | None


@dataclass(frozen=True)
class PostgresWarehouse:
    """One team's database, and the schema and reading role in it."""

    name: str
    database: Database
    reader: str
    schema: str = "public"

    @contextmanager
    def transaction(self) -> Iterator["Session"]:
        """One transaction over one connection: all of it happens, or nothing."""
        with closing(adbc.connect(self.database.url())) as connection:
            yield Session(self, connection)
            connection.commit()

    @contextmanager
    def reading(self) -> Iterator["Session"]:
        """One read transaction: every statement in it sees the same moment."""
        with closing(adbc.connect(self.database.url())) as connection:
            session = Session(self, connection)
            session.execute(sql.SQL("set transaction isolation level repeatable read, read only"))
            yield session

    def holds(self, table: str) -> Load:
        """What was loaded last; nothing, when the warehouse is new or does not answer: its own task will tell why."""
        try:
            with psycopg.connect(self.database.url(), connect_timeout=3) as connection:
                row = connection.execute(LOADED, [table]).fetchone()
        except (psycopg.OperationalError, psycopg.errors.UndefinedTable):
            return Load(None, None)
        return Load(*row) if row else Load(None, None)

    def prepare(self) -> None:
        """Make the platform's own tables, and let the team's analysts in; two loads may do so at once."""
        with psycopg.connect(self.database.url()) as connection:
            connection.execute("select pg_advisory_xact_lock(hashtext('headrace.loads'))")
            connection.execute(PLATFORM)
            for schema in (self.schema, "headrace"):
                connection.execute(USAGE.format(schema=sql.Identifier(schema), reader=sql.Identifier(self.reader)))


@dataclass(frozen=True)
class Session:
    """Statements inside one transaction of a warehouse."""

    warehouse: PostgresWarehouse
    connection: adbc.Connection

    def execute(self, statement: sql.Composable, parameters: Sequence[Any] = ()) -> None:
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement.as_string(), parameters or None)

    def query(self, statement: sql.Composable, parameters: Sequence[Any] = ()) -> pa.Table:
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement.as_string(), parameters or None)
            found: pa.Table = cursor.fetch_arrow_table()
            return found

    def table(self, name: str) -> sql.Identifier:
        return sql.Identifier(self.warehouse.schema, name)

    def locked(self, table: str) -> Load:
        """What was loaded last, under a row lock that makes loads of this table take turns."""
        self.execute(sql.SQL("insert into headrace.loads (table_name) values ($1) on conflict do nothing"), [table])
        return self.loaded(table, suffix=sql.SQL(" for update"))

    def loaded(self, table: str, *, suffix: sql.SQL = sql.SQL("")) -> Load:
        query = sql.SQL("select snapshot_id, contract from headrace.loads where table_name = $1") + suffix
        found = self.query(query, [table]).to_pylist()
        return Load(found[0]["snapshot_id"], found[0]["contract"]) if found else Load(None, None)

    def record(self, table: str, load: Load) -> None:
        update = "update headrace.loads set snapshot_id = $2, contract = $3, loaded_at = now() where table_name = $1"
        self.execute(sql.SQL(update), [table, load.snapshot, load.contract])

    def define(self, share: Share) -> None:
        """Make the share's table, or add the columns it lacks, with comments from the feed file."""
        table = self.table(share.feed)
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(column_type(type_)))
            for name, type_ in share.types.items()
        ]
        key = _names(share.key)
        create = sql.SQL("create table if not exists {} ({}, primary key ({}))")
        self.execute(create.format(table, sql.SQL(", ").join(columns), key))
        add = [sql.SQL("add column if not exists ") + column for column in columns]
        self.execute(sql.SQL("alter table {} ").format(table) + sql.SQL(", ").join(add))
        self._empty_unshared(share)
        self.execute(sql.SQL("comment on table {} is {}").format(table, sql.Literal(share.doc)))
        for column in share.columns:
            comment = sql.SQL("comment on column {}.{} is {}")
            self.execute(comment.format(table, sql.Identifier(column.name), sql.Literal(column.doc or "")))
        reader = sql.Identifier(self.warehouse.reader)
        self.execute(sql.SQL("grant select on {} to {}").format(table, reader))

    def _empty_unshared(self, share: Share) -> None:
        """Empty the columns that the team may no longer see; they stay, so that views on the table live on."""
        query = "select column_name from information_schema.columns where table_schema = $1 and table_name = $2"
        found = self.query(sql.SQL(query), [self.warehouse.schema, share.feed]).column(0).to_pylist()
        for name in sorted(set(found) - set(share.names)):
            update = sql.SQL("update {0} set {1} = null where {1} is not null")
            self.execute(update.format(self.table(share.feed), sql.Identifier(name)))

    def stage(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
        """Stream rows into a table that only this connection sees and that goes away with it."""
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        with closing(self.connection.cursor()) as cursor:
            staged: int = cursor.adbc_ingest(STAGING, reader, mode="create", temporary=True)
        self.execute(sql.SQL("analyze {}").format(sql.Identifier(STAGING)))
        return staged

    def merge(self, share: Share) -> None:
        """Apply the staged rows by key: hidden ones delete, others insert or update what differs."""
        self.execute(delete_statement(self.table(share.feed), share))
        self.execute(upsert_statement(self.table(share.feed), share))

    def remove_unstaged(self, share: Share) -> None:
        """Delete the rows whose key was not staged: for a full compare, where everything was."""
        self.execute(remove_statement(self.table(share.feed), share))

    def rows(self, share: Share) -> Iterator[pa.RecordBatch]:
        """Every row of the share's table, in batches, JSON in canonical form."""
        columns = sql.SQL(", ").join(_read(name, type_) for name, type_ in share.types.items())
        select = sql.SQL("select {} from {}").format(columns, self.table(share.feed))
        texts = {name for name, type_ in share.types.items() if is_json(type_)}
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(select.as_string())
            yield from (_canonical(batch, texts) for batch in cursor.fetch_record_batch())


def _read(name: str, type_: IcebergType) -> sql.Composed:
    """A column as it travels: JSON and uuids as texts."""
    as_text = is_json(type_) or isinstance(type_, UUIDType)
    return sql.SQL("{0}::text as {0}" if as_text else "{0}").format(sql.Identifier(name))


def _canonical(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """The batch with the named JSON texts in canonical form: Postgres has one of its own."""
    parsed = decoder()
    for name in names:
        texts = [None if text is None else canonical(parsed(text)) for text in batch.column(name).to_pylist()]
        batch = batch.set_column(batch.schema.get_field_index(name), name, pa.array(texts, pa.string()))
    return batch


def _staged(names: Sequence[str], share: Share) -> sql.Composed:
    """Staged columns in the table's own types: JSON and uuids are staged as texts."""
    return sql.SQL(", ").join(_cast(name, share) for name in names)


def _cast(name: str, share: Share) -> sql.Composed:
    type_ = sql.SQL(column_type(share.types[name]))
    return sql.SQL("s.{}::{}").format(sql.Identifier(name), type_)


def _names(names: Sequence[str], prefix: str | None = None) -> sql.Composed:
    parts = [sql.Identifier(prefix, name) if prefix else sql.Identifier(name) for name in names]
    return sql.SQL(", ").join(parts)


def _same_key(share: Share) -> sql.Composed:
    pairs = [sql.SQL("t.{} = {}").format(sql.Identifier(name), _cast(name, share)) for name in share.key]
    return sql.SQL(" and ").join(pairs)


def delete_statement(table: sql.Identifier, share: Share) -> sql.Composed:
    return sql.SQL("delete from {} t using {} s where s.{} and {}").format(
        table, sql.Identifier(STAGING), sql.Identifier(HIDDEN_ROW), _same_key(share)
    )


def remove_statement(table: sql.Identifier, share: Share) -> sql.Composed:
    return sql.SQL("delete from {} t where not exists (select from {} s where not s.{} and {})").format(
        table, sql.Identifier(STAGING), sql.Identifier(HIDDEN_ROW), _same_key(share)
    )


def upsert_statement(table: sql.Identifier, share: Share) -> sql.Composed:
    """Insert new keys and update changed rows; equal rows are left alone, so that they cost no write."""
    others = [name for name in share.names if name not in share.key]
    insert = sql.SQL("insert into {} as t ({}) select {} from {} s where not s.{}").format(
        table, _names(share.names), _staged(share.names, share), sql.Identifier(STAGING), sql.Identifier(HIDDEN_ROW)
    )
    if not others:
        return insert + sql.SQL(" on conflict do nothing")
    sets = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others)
    return insert + sql.SQL(" on conflict ({}) do update set {} where ({}) is distinct from ({})").format(
        _names(share.key), sets, _names(others, "t"), _names(others, "excluded")
    )
