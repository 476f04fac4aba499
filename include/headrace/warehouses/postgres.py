"""A Postgres warehouse: a plain table per feed, changed in transactions that record the snapshot they bring."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
from psycopg import sql

from headrace import scanning
from headrace.clean import HIDDEN_ROW
from headrace.database import Database
from headrace.errors import TableRefused
from headrace.share import Share
from headrace.warehouses import (
    postgres_faults,
    postgres_merge,
    postgres_platform,
    postgres_table,
    postgres_views,
    postgres_wire,
)
from headrace.warehouses.changes import Standing
from headrace.warehouses.load import Counts, Held, Load, Way

STAGING = "headrace_staging"
NEW = "headrace_new"
"""What a table is called while it is filled; then it takes its own name."""
ASK_S = 3
"""How long somebody who only wants to know waits for a connection, in seconds."""


@dataclass(frozen=True)
class PostgresWarehouse:
    """One team's database, and the schema and reading roles in it."""

    name: str
    database: Database
    readers: tuple[str, ...] = ()
    schema: str = "public"
    connection: str = ""
    """The Airflow connection that the database was told by."""

    @contextmanager
    def loading(self, feed: str) -> Iterator["Loading"]:
        """One transaction over one connection, in which loads of one table take turns: all happens, or nothing."""
        with postgres_faults.told(self, feed):
            self._prepare()
            with closing(adbc.connect(self.database.url())) as connection:
                session = Loading(self, connection, feed)
                session.lock()
                yield session
                connection.commit()

    @contextmanager
    def reading(self, feed: str) -> Iterator["Reading"]:
        """One read transaction: every statement in it sees the same moment."""
        with postgres_faults.told(self, feed), closing(adbc.connect(self.database.url())) as connection:
            session = Reading(self, connection, feed)
            session.execute(sql.SQL("set transaction isolation level repeatable read"))
            yield session

    def holds(self, feed: str) -> Load:
        """What was loaded last; nothing, when the warehouse is new or does not answer: its own task will tell why."""
        try:
            with psycopg.connect(self.database.url(), connect_timeout=ASK_S) as connection:
                row = connection.execute(postgres_platform.LOADED.format("%s", "%s"), [self.schema, feed]).fetchone()
        except (psycopg.OperationalError, psycopg.errors.UndefinedTable):
            return Load()
        return Load(*row) if row else Load()

    def open(self) -> None:
        """Make the warehouse's schema and the roles that read it, where they are not there yet."""
        note = sql.Literal(postgres_platform.OURS.format(self.name))
        with postgres_faults.told(self, "anything"), psycopg.connect(self.database.url()) as connection:
            if self._make_schema(connection):
                connection.execute(sql.SQL("comment on schema {} is {}").format(sql.Identifier(self.schema), note))
            for reader in self.readers:
                role = sql.Identifier(reader)
                if not connection.execute("select 1 from pg_roles where rolname = %s", [reader]).fetchone():
                    connection.execute(sql.SQL("create role {} nologin").format(role))
                    connection.execute(sql.SQL("comment on role {} is {}").format(role, note))
                database = sql.Identifier(self.database.name)
                connection.execute(sql.SQL("grant connect on database {} to {}").format(database, role))

    def tables(self) -> list[Held]:
        """The tables that are loaded there; raises where it does not answer."""
        with postgres_faults.told(self, "anything"), psycopg.connect(self.database.url()) as connection:
            if not connection.execute("select to_regclass('headrace.tables')").fetchone()[0]:  # type: ignore[index]
                return []
            return [Held(*row) for row in connection.execute(postgres_platform.TABLES, [self.schema]).fetchall()]

    def remove(self) -> list[str]:
        """Drop what we have loaded there, views on it too, and the schema and roles that were made for it."""
        note = postgres_platform.OURS.format(self.name)
        gone = [held.table for held in self.tables()]
        with postgres_faults.told(self, "anything"), psycopg.connect(self.database.url()) as connection:
            for table in gone:
                drop = sql.SQL("drop table if exists {} cascade")
                connection.execute(drop.format(sql.Identifier(self.schema, table)))
            if gone:
                for forgotten in ("tables", "history"):
                    delete = sql.SQL("delete from {} where schema_name = %s")
                    connection.execute(delete.format(sql.Identifier("headrace", forgotten)), [self.schema])
            if connection.execute(postgres_platform.MADE_SCHEMA, [self.schema, note]).fetchone():
                connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(self.schema)))
            for (role,) in connection.execute(postgres_platform.MADE_ROLES, [note]).fetchall():
                names = {"role": sql.Identifier(role), "database": sql.Identifier(self.database.name)}
                for statement in postgres_platform.UNGRANTED if gone else postgres_platform.UNGRANTED[-1:]:
                    connection.execute(statement.format(**names))
                connection.execute(sql.SQL("drop role {role}").format(**names))
        return gone

    def vacuum(self, feed: str) -> None:
        """Have Postgres give up what deleted rows said, as far as nobody still looks at them."""
        with postgres_faults.told(self, feed), psycopg.connect(self.database.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("set lock_timeout = {}").format(sql.Literal(postgres_platform.LOCK_TIMEOUT)))
            connection.execute(sql.SQL("vacuum {}").format(sql.Identifier(self.schema, feed)))

    def note_reconciled(self, feed: str, load: Load) -> None:
        """Note that the table was seen to agree with a snapshot, unless another was loaded meanwhile."""
        with postgres_faults.told(self, feed), psycopg.connect(self.database.url()) as connection:
            told = {"schema": self.schema, "table": feed, "snapshot": load.snapshot, "contract": load.contract}
            connection.execute(postgres_platform.AGREES, told)

    def _prepare(self) -> None:
        """Make the schemas and the platform's own tables, and let readers in; two loads may do so at once."""
        with psycopg.connect(self.database.url()) as connection:
            connection.execute("select pg_advisory_xact_lock(hashtext('headrace'))")
            self._make_schema(connection)
            # Only once: to replace a view waits for everybody who reads it, and that may be for ever.
            if connection.execute("select to_regclass('headrace.freshness')").fetchone() == (None,):
                connection.execute(postgres_platform.PLATFORM)
            for reader in self.readers:
                role = sql.Identifier(reader)
                for schema in (self.schema, "headrace"):
                    connection.execute(postgres_platform.USAGE.format(schema=sql.Identifier(schema), reader=role))
                connection.execute(postgres_platform.READ.format(reader=role))

    def _make_schema(self, connection: psycopg.Connection) -> bool:
        """Make the warehouse's schema; False when it is there."""
        if connection.execute("select 1 from pg_namespace where nspname = %s", [self.schema]).fetchone():
            return False
        connection.execute(sql.SQL("create schema {}").format(sql.Identifier(self.schema)))
        return True


@dataclass(frozen=True)
class Session:
    """Statements inside one transaction of a warehouse, about one feed's table."""

    warehouse: PostgresWarehouse
    connection: adbc.Connection
    feed: str

    @property
    def table(self) -> sql.Identifier:
        return self._named(self.feed)

    def _named(self, name: str) -> sql.Identifier:
        return sql.Identifier(self.warehouse.schema, name)

    def execute(self, statement: sql.Composable, parameters: Sequence[Any] = ()) -> None:
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement.as_string(), parameters or None)

    def query(self, statement: sql.Composable, parameters: Sequence[Any] = ()) -> pa.Table:
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(statement.as_string(), parameters or None)
            found: pa.Table = cursor.fetch_arrow_table()
            return found

    def loaded(self, *, suffix: sql.SQL = sql.SQL("")) -> Load:
        """What was loaded last."""
        found = self.query(sql.SQL(postgres_platform.LOADED.format("$1", "$2")) + suffix, self._id)
        return Load(*(found.column(place)[0].as_py() for place in range(3))) if found.num_rows else Load()

    def _copy(
        self, share: Share, table: str, batches: Iterator[pa.RecordBatch], *, schema: pa.Schema, temporary: bool
    ) -> int:
        sent = postgres_wire.schema(schema, share)
        rows = (postgres_wire.sent(each, share) for each in batches)
        where = {} if temporary else {"db_schema_name": self.warehouse.schema}
        with scanning.telling(rows) as asked, closing(self.connection.cursor()) as cursor:
            reader = pa.RecordBatchReader.from_batches(sent, asked)
            copied: int = cursor.adbc_ingest(table, reader, mode="append", temporary=temporary, **where)
        return copied

    @property
    def _id(self) -> list[str]:
        return [self.warehouse.schema, self.feed]


@dataclass(frozen=True)
class Reading(Session):
    """A look at the table as it was at one moment."""

    def loaded(self, *, suffix: sql.SQL = sql.SQL("")) -> Load:
        """What was loaded last; nothing, where no load was there yet."""
        there = self.query(sql.SQL("select to_regclass('headrace.tables') is not null")).column(0)[0].as_py()
        return super().loaded(suffix=suffix) if there else Load()

    def reconciled(self) -> Load:
        """At which snapshot the table was last seen to agree with the clean table."""
        found = self.query(sql.SQL(postgres_platform.RECONCILED), self._id)
        return Load(*(found.column(place)[0].as_py() for place in range(2))) if found.num_rows else Load()

    def look_for(self, share: Share, keys: Iterator[pa.RecordBatch]) -> None:
        """Have only rows with these keys read from now on."""
        self.execute(postgres_merge.keys(STAGING, share))
        schema = pa.schema([share.schema.field(name) for name in share.key])
        self._copy(share, STAGING, keys, schema=schema, temporary=True)
        self.execute(sql.SQL("analyze {}").format(sql.Identifier(STAGING)))

    def rows(self, share: Share, *, looked_for: bool = False) -> Iterator[pa.RecordBatch]:
        """Every row of the table in batches, or those that are looked for, in the types in which they travel."""
        select = sql.SQL("select {} from {} t").format(postgres_wire.selected(share), self.table)
        if looked_for:
            select += sql.SQL(" join {} s using ({})").format(sql.Identifier(STAGING), postgres_table.names(share.key))
        with closing(self.connection.cursor()) as cursor:
            cursor.execute(select.as_string())
            for batch in cursor.fetch_record_batch():
                yield postgres_wire.received(batch, share)


@dataclass(frozen=True)
class Loading(Session):
    """A change of the table, recorded in the transaction that makes it."""

    def lock(self) -> None:
        """Wait for the turn to load this table; for anybody else's lock only for a while."""
        self.execute(sql.SQL(postgres_platform.BEGIN), self._id)
        self.loaded(suffix=sql.SQL(" for update"))
        self.execute(sql.SQL("set local lock_timeout = {}").format(sql.Literal(postgres_platform.LOCK_TIMEOUT)))

    def standing(self) -> Standing | None:
        """The table as it is; None when there is none."""
        found = self.query(sql.SQL(postgres_table.COLUMNS), self._id).to_pylist()
        if not found:
            return None
        masks = self.query(sql.SQL(postgres_platform.MASKS), self._id)
        key = sorted((row for row in found if row["place"] is not None), key=lambda row: row["place"])
        return Standing(
            {row["name"]: postgres_table.spelled(row["type"]) for row in found},
            tuple(row["name"] for row in key),
            json.loads(masks.column(0)[0].as_py() or "{}"),
        )

    def keeps(self, share: Share, last: Load) -> bool:
        """Whether the table stays and only its rows change: it is ours, and rows are told apart as they were."""
        standing = self.standing()
        if last.snapshot is None and standing:
            raise TableRefused(
                f"{self.warehouse.name}.{self.feed}: a table {self.warehouse.schema}.{self.feed} is there that was not "
                f"loaded by us. Nothing was changed. Rename it; or, to have it replaced, "
                f"headrace load {self.feed} {self.warehouse.name} --anew"
            )
        if last.snapshot is None or standing is None:
            return False
        renamed = postgres_table.changes(standing, share).renamed
        return tuple(renamed.get(name, name) for name in standing.key) == share.key

    def define(self, share: Share) -> None:
        """Bring the table that is there to the share's columns, comments, indexes and grants."""
        standing = self.standing()
        assert standing is not None, "a table that was loaded is there"
        found = postgres_table.changes(standing, share)
        if found.lossy:
            raise TableRefused(self._told_loss(found.lossy))
        views = self._views() if found.widened or found.remade else []
        for statement in (
            *postgres_views.taken_down(views),
            *postgres_table.alterations(self.table, found, share),
            *postgres_views.put_up(views),
        ):
            self.execute(statement)
        self._describe(share)

    def _told_loss(self, lossy: Sequence[tuple[str, str, str]]) -> str:
        told = "; ".join(f"{name} is {old} and would be {new}" for name, old, new in lossy)
        feed, warehouse = self.feed, self.warehouse.name
        return (
            f"{warehouse}.{feed}: {told}. Values would be lost, so nothing was changed. To make the table anew from "
            f"the clean rows, in the new types: headrace load {feed} {warehouse} --anew"
        )

    def _views(self) -> list[postgres_views.View]:
        views = postgres_views.standing(self.query, self.table)
        if others := [f"{view.called} of {view.owner}" for view in views if not view.ours]:
            user = self.warehouse.database.user
            raise TableRefused(
                f"{self.warehouse.name}.{self.feed}: to change it, views that stand on it have to be made again, "
                f"and {user} may not do so: {', '.join(others)}. Nothing was changed. Make {user} a member of their "
                f"owner and let it create in their schema, or drop them; then clear the load task."
            )
        return views

    def _describe(self, share: Share) -> None:
        for statement in postgres_table.descriptions(self.table, share):
            self.execute(statement)
        for reader in self.warehouse.readers:
            self.execute(sql.SQL("grant select on {} to {}").format(self.table, sql.Identifier(reader)))
        self._index(share)

    def _index(self, share: Share) -> None:
        """Make the indexes that are wanted, and drop ours that are not."""
        wanted = {postgres_table.index_name(share, columns): columns for columns in share.indexes}
        found = self.query(sql.SQL(postgres_table.INDEXES), [*self._id, postgres_table.INDEX]).column(0)
        for name in sorted(set(found.to_pylist()) - set(wanted)):
            self.execute(sql.SQL("drop index {}").format(self._named(name)))
        for name in sorted(set(wanted) - set(found.to_pylist())):
            self.execute(postgres_table.index(self.table, share, wanted[name]))

    def fill(self, share: Share, batches: Iterator[pa.RecordBatch]) -> Counts:
        """Make the table new of these rows, beside the old one, and switch to it; views on the old one live on."""
        standing = self.standing()
        new = self._named(f"{NEW}_{self.feed}")
        self.execute(sql.SQL("drop table if exists {}").format(new))
        self.execute(postgres_table.definition(new, share))
        filled = self._copy(share, f"{NEW}_{self.feed}", batches, schema=share.schema, temporary=False)
        views = self._views() if standing else []
        for statement in postgres_views.taken_down(views):
            self.execute(statement)
        if standing:
            self.execute(sql.SQL("drop table {}").format(self.table))
        self.execute(postgres_table.key(new, share))
        self.execute(sql.SQL("alter table {} rename to {}").format(new, sql.Identifier(self.feed)))
        self._describe(share)
        for statement in postgres_views.put_up(views):
            self.execute(statement)
        self.execute(sql.SQL("analyze {}").format(self.table))
        return Counts(inserted=filled)

    def stage(self, share: Share, batches: Iterator[pa.RecordBatch]) -> int:
        """Stream rows into a table that only this connection sees and that goes away with it."""
        self.execute(postgres_merge.staging(STAGING, share))
        schema = share.schema.append(pa.field(HIDDEN_ROW, pa.bool_()))
        staged = self._copy(share, STAGING, batches, schema=schema, temporary=True)
        self.execute(sql.SQL("analyze {}").format(sql.Identifier(STAGING)))
        return staged

    def merge(self, share: Share, *, whole: bool) -> Counts:
        """Apply the staged rows by key: hidden ones delete, others insert or update what differs.

        Where everything was staged, `whole`, rows whose key was not are deleted too.
        """
        staging = sql.Identifier(STAGING)
        removed = postgres_merge.remove(self.table, staging, share) if whole else None
        deletes = [each for each in (removed, postgres_merge.delete(self.table, staging, share)) if each]
        deleted = sum(self.query(statement).column(0)[0].as_py() for statement in deletes)
        changed = self.query(postgres_merge.upsert(self.table, staging, share)).to_pylist()[0]
        return Counts(inserted=changed["inserted"], updated=changed["updated"], deleted=deleted)

    def record(self, share: Share, load: Load, way: Way, counts: Counts) -> None:
        """Note which snapshot the table holds now, and what was done."""
        masks = json.dumps(dict(sorted(share.masks.items())))
        state = [load.snapshot, load.contract, load.published, masks]
        self.execute(sql.SQL(postgres_platform.RECORD), [*self._id, *state])
        done = [load.snapshot, load.published, way, counts.inserted, counts.updated, counts.deleted]
        self.execute(sql.SQL(postgres_platform.NOTE), [*self._id, *done])
        self.execute(sql.SQL(postgres_platform.FORGET), self._id)
