"""A Postgres warehouse: a plain table per feed, changed in transactions that record the snapshot they bring."""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
from psycopg import Connection, sql

from headrace import scanning
from headrace.clean import HIDDEN_ROW
from headrace.database import Database
from headrace.errors import ServiceAway, SettingsError, TableRefused, WarehouseError
from headrace.share import Share
from headrace.warehouses import (
    postgres_faults,
    postgres_merge,
    postgres_platform,
    postgres_table,
    postgres_views,
    postgres_wire,
)
from headrace.warehouses.changes import Changes, Standing
from headrace.warehouses.load import Counts, Held, Load, Way

STAGING = "headrace_staging"
NEW = "headrace_new"
"""What a table is called while it is filled; then it takes its own name."""
UNMADE = ("0A", "22", "427", "428", "42P")
"""How SQL states begin where a view cannot be made: what it reads is not there, or of another type."""
CONNECT_S = 30
"""How long we wait for a connection, in seconds."""
ASK_S = 3
"""How long somebody who only wants to know waits for a connection, in seconds."""
SIGNS_OF_LIFE = {
    "keepalives_idle": 60,
    "keepalives_interval": 10,
    "keepalives_count": 6,
    "tcp_user_timeout": 120_000,
}
"""How long a network may be dead before we know: two minutes. As long as the server is alive a statement may take."""


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
            with closing(adbc.connect(self._url())) as connection:
                session = Loading(self, connection, feed)
                session.lock()
                yield session
                connection.commit()

    @contextmanager
    def reading(self, feed: str) -> Iterator["Reading"]:
        """One read transaction: every statement in it sees the same moment."""
        with postgres_faults.told(self, feed), closing(adbc.connect(self._url())) as connection:
            session = Reading(self, connection, feed)
            session.execute(sql.SQL("set transaction isolation level repeatable read"))
            session.execute(postgres_platform.waiting(postgres_platform.LOCK_TIMEOUT))
            yield session

    def holds(self, feed: str) -> Load:
        """What was loaded last; nothing, when the warehouse is new or does not answer: its own task will tell why."""
        try:
            with postgres_faults.told(self, feed), self._asked(connect_timeout=ASK_S) as connection:
                if not self._is_there(connection, "warehouses"):
                    return Load()
                row = connection.execute(postgres_platform.HOLDS, [self.schema, feed]).fetchone()
        except (ServiceAway, SettingsError, WarehouseError):
            return Load()
        if row is None:
            return Load()
        snapshot, contract, published, *claim = row
        return Load(snapshot, contract, published, admitted=tuple(claim) == self._claim)

    def open(self) -> None:
        """Make the warehouse's schema and the roles that read it, where they are not there yet."""
        note = sql.Literal(postgres_platform.OURS.format(self.name))
        with postgres_faults.told(self, "anything"), self._asked() as connection:
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
        with postgres_faults.told(self, "anything"), self._asked() as connection:
            if not self._is_there(connection, "tables"):
                return []
            if self._is_there(connection, "warehouses"):
                self._noted(connection)
            return self._tables(connection)

    def remove(self) -> list[str]:
        """Drop what we have loaded there, views on it too, and the schema and roles that were made for it."""
        note = postgres_platform.OURS.format(self.name)
        with postgres_faults.told(self, "anything"), self._asked() as connection:
            connection.execute(postgres_platform.ONE_AT_A_TIME)
            made = [role for (role,) in connection.execute(postgres_platform.MADE_ROLES, [note]).fetchall()]
            gone = self._forget(connection, readers=made) if self._is_there(connection, "tables") else []
            if connection.execute(postgres_platform.MADE_SCHEMA, [self.schema, note]).fetchone():
                connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(self.schema)))
            for role in made:
                names = {"role": sql.Identifier(role), "database": sql.Identifier(self.database.name)}
                connection.execute(sql.SQL("revoke all on database {database} from {role}").format(**names))
                connection.execute(sql.SQL("drop role {role}").format(**names))
        return gone

    def _forget(self, connection: Connection, *, readers: Collection[str]) -> list[str]:
        """Drop the tables, let in nobody any more, and keep no word of it; the tables that were."""
        self._make_platform(connection)
        noted = self._noted(connection)
        gone = [held.table for held in self._tables(connection)]
        for table in gone:
            drop = sql.SQL("drop table if exists {} cascade")
            connection.execute(drop.format(sql.Identifier(self.schema, table)))
        self._shut_out(connection, {*noted, *readers})
        for name in ("tables", "history", "warehouses"):
            delete = sql.SQL("delete from {} where schema_name = %s")
            connection.execute(delete.format(sql.Identifier("headrace", name)), [self.schema])
        return gone

    def vacuum(self, feed: str) -> None:
        """Have Postgres give up what deleted rows said, as far as nobody still looks at them."""
        with postgres_faults.told(self, feed), psycopg.connect(self._url(), autocommit=True) as connection:
            connection.execute(sql.SQL("set lock_timeout = {}").format(sql.Literal(postgres_platform.LOCK_TIMEOUT)))
            connection.execute(sql.SQL("vacuum {}").format(sql.Identifier(self.schema, feed)))

    def note_reconciled(self, feed: str, load: Load) -> None:
        """Note that the table was seen to agree with a snapshot, unless another was loaded meanwhile."""
        with postgres_faults.told(self, feed), self._asked() as connection:
            told = {"schema": self.schema, "table": feed, "snapshot": load.snapshot, "contract": load.contract}
            connection.execute(postgres_platform.AGREES, told)

    def _url(self, *, connect_timeout: int = CONNECT_S) -> str:
        return self.database.url("postgresql", connect_timeout=connect_timeout, **SIGNS_OF_LIFE)

    @contextmanager
    def _asked(self, *, connect_timeout: int = CONNECT_S) -> Iterator[Connection]:
        """One transaction, which waits for nobody's lock for long."""
        with psycopg.connect(self._url(connect_timeout=connect_timeout)) as connection:
            connection.execute(postgres_platform.waiting(postgres_platform.LOCK_TIMEOUT))
            yield connection

    @property
    def _claim(self) -> tuple[str, list[str]]:
        """What is noted of the schema once it is ours and all who may read are let in."""
        return self.name, sorted(self.readers)

    @staticmethod
    def _is_there(connection: Connection, name: str) -> bool:
        """Whether one of the platform's own tables is there."""
        return connection.execute("select to_regclass('headrace.' || %s)", [name]).fetchone() != (None,)

    def _tables(self, connection: Connection) -> list[Held]:
        return [Held(*row) for row in connection.execute(postgres_platform.TABLES, [self.schema]).fetchall()]

    def _prepare(self) -> None:
        """Make the schemas and the platform's own tables, and let in those who may read; two loads may do so at once.

        What is there already is only looked at: to grant again would wait for whoever grants and does not commit.
        """
        with self._asked() as connection:
            if self._is_prepared(connection):
                return
            connection.execute(postgres_platform.ONE_AT_A_TIME)
            self._make_schema(connection)
            self._make_platform(connection)
            connection.execute(postgres_platform.CLAIM, [self.schema, self.name])
            noted = self._noted(connection)
            # Noted first: a load that has granted by what it read there ends before its table is looked for here.
            connection.execute(postgres_platform.ADMITTED, [sorted(self.readers), self.schema])
            for statement in self._lacking(connection):
                connection.execute(sql.SQL(statement))
            self._shut_out(connection, set(noted) - set(self.readers))

    def _make_platform(self, connection: Connection) -> None:
        # Only once: to replace a view waits for everybody who reads it.
        if not self._is_there(connection, "warehouses"):
            connection.execute(postgres_platform.PLATFORM)

    def _is_prepared(self, connection: Connection) -> bool:
        if not self._is_there(connection, "warehouses") or not self._has_schema(connection):
            return False
        row = connection.execute(postgres_platform.CLAIMED, [self.schema]).fetchone()
        return row == self._claim and not self._lacking(connection)

    def _noted(self, connection: Connection) -> list[str]:
        """The roles that were let in; raises where the schema is another warehouse's."""
        owner, readers = connection.execute(postgres_platform.CLAIMED, [self.schema]).fetchone() or (self.name, [])
        if owner != self.name:
            raise SettingsError(
                f"The warehouse {self.name}: schema {self.schema} of {self.database.name} at {self.database.host} "
                f"holds the tables of the warehouse {owner}. Nothing was changed. Give {self.name} a schema of its "
                f"own, or delete its file. If {owner} was only renamed, change the name in headrace.warehouses there."
            )
        return list(readers)

    def _lacking(self, connection: Connection) -> list[str]:
        """What grants those who may read what they cannot read yet."""
        told = {"schema": self.schema, "readers": list(self.readers)}
        return [statement for (statement,) in connection.execute(postgres_platform.LACKING, told).fetchall()]

    def _shut_out(self, connection: Connection, roles: Collection[str]) -> None:
        """Take from roles what they were granted to read here; what other warehouses let them read stays."""
        told = {"schema": self.schema, "roles": list(roles)}
        for (statement,) in connection.execute(postgres_platform.GRANTED, told).fetchall():
            connection.execute(sql.SQL(statement))

    def _has_schema(self, connection: Connection) -> bool:
        return connection.execute("select 1 from pg_namespace where nspname = %s", [self.schema]).fetchone() is not None

    def _make_schema(self, connection: Connection) -> bool:
        """Make the warehouse's schema; False when it is there."""
        if self._has_schema(connection):
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

    def loaded(self) -> Load:
        """What was loaded last."""
        found = self.query(sql.SQL(postgres_platform.LOADED), self._id)
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

    def loaded(self) -> Load:
        """What was loaded last; nothing, where no load was there yet."""
        there = self.query(sql.SQL("select to_regclass('headrace.tables') is not null")).column(0)[0].as_py()
        return super().loaded() if there else Load()

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
        """Wait for the turn to load this table, as long as a load may take; for other locks only for a while."""
        self.execute(postgres_platform.waiting(postgres_platform.TURN_TIMEOUT))
        self.execute(sql.SQL(postgres_platform.TURN), self._id)
        self.execute(postgres_platform.waiting(postgres_platform.LOCK_TIMEOUT))

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
        found = postgres_table.changes(standing, share)
        key = tuple(found.renamed.get(name, name) for name in standing.key)
        # By a key whose values are made anew no row that is there can be found again.
        return key == share.key and not {*found.remade} & {*key}

    def vet(self, share: Share) -> None:
        """Raise where define() would refuse, before rows are brought; nobody waits for that."""
        found = self._changes(share)
        if found.widened or found.remade:
            # Who asks for a view's definition locks what it reads until the end, or until that is taken back.
            self.execute(sql.SQL("savepoint vetted"))
            self._views()
            self.execute(sql.SQL("rollback to savepoint vetted"))

    def _changes(self, share: Share) -> Changes:
        """How the table that is there becomes the share's; raises where values would be lost."""
        standing = self.standing()
        assert standing is not None, "a table that was loaded is there"
        found = postgres_table.changes(standing, share)
        if found.lossy:
            raise TableRefused(self._told_loss(found.lossy))
        return found

    def define(self, share: Share) -> None:
        """Bring the table that is there to the share's columns, comments, indexes and grants."""
        found = self._changes(share)
        for rename in postgres_table.renames(self.table, found.renamed):
            self.execute(rename)  # and Postgres renames in views too
        views = self._views() if found.widened or found.remade else []
        for statement in (*postgres_views.taken_down(views), *postgres_table.alterations(self.table, found, share)):
            self.execute(statement)
        self._put_up(views)
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
        feed, user = f"{self.warehouse.name}.{self.feed}", self.warehouse.database.user
        if others := [f"{view.called} of {view.owner}" for view in views if not view.ours]:
            raise TableRefused(
                f"{feed}: to change it, views that stand on it have to be made again, "
                f"and {user} may not do so: {', '.join(others)}. Nothing was changed. Make {user} a member of their "
                f"owner and let it create in their schema, or drop them; then clear the load task."
            )
        if odd := [view.called for view in views if not view.whole]:
            raise TableRefused(
                f"{feed}: to change it, what stands on it has to be made again, and triggers, rules or defaults of "
                f"its own would be lost: {', '.join(odd)}. Nothing was changed. Drop those, and make them again when "
                f"the load task, cleared, is done."
            )
        return views

    def _put_up(self, views: Sequence[postgres_views.View]) -> None:
        for view in views:
            try:
                for statement in postgres_views.put_up(view):
                    self.execute(statement)
            except adbc.Error as error:
                if not (error.sqlstate or "").startswith(UNMADE):
                    raise
                raise TableRefused(
                    f"{self.warehouse.name}.{self.feed}: the view {view.called} does not stand on the changed table "
                    f"(SQL state {error.sqlstate}). Nothing was changed. Drop it, and make it again when the load "
                    f"task, cleared, is done."
                ) from None

    def _describe(self, share: Share) -> None:
        for statement in postgres_table.descriptions(self.table, share):
            self.execute(statement)
        for reader in self.query(sql.SQL(postgres_platform.NOT_READING), self._id).column(0).to_pylist():
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
        if standing:
            self._views()  # refuses before all rows were copied
        new = self._named(f"{NEW}_{self.feed}")
        self.execute(sql.SQL("drop table if exists {}").format(new))
        self.execute(postgres_table.definition(new, share))
        filled = self._copy(share, f"{NEW}_{self.feed}", batches, schema=share.schema, temporary=False)
        views = self._make_way(standing, new, share) if standing else []
        self.execute(sql.SQL("alter table {} rename to {}").format(new, sql.Identifier(self.feed)))
        self.execute(postgres_table.key(self.table, share))
        self._describe(share)
        self._put_up(views)
        self.execute(sql.SQL("analyze {}").format(self.table))
        return Counts(inserted=filled)

    def _make_way(self, standing: Standing, new: sql.Identifier, share: Share) -> list[postgres_views.View]:
        """Drop the table that is there; the new one gets what views show of it and the share has no more, empty."""
        renamed = postgres_table.changes(standing, share).renamed
        for rename in postgres_table.renames(self.table, renamed):
            self.execute(rename)  # and Postgres renames in views too
        kept = postgres_views.used(self.query, self.table) - set(share.names)
        types = {renamed.get(name, name): type_ for name, type_ in standing.columns.items()}
        for addition in postgres_table.additions(new, {name: types[name] for name in types if name in kept}):
            self.execute(addition)
        views = self._views()
        for drop in postgres_views.taken_down(views):
            self.execute(drop)
        self.execute(sql.SQL("drop table {}").format(self.table))
        return views

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
