"""A Redshift warehouse: rows staged as Parquet on S3, copied, merged and recorded in one transaction."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from psycopg import sql
from redshift_connector.error import Error

from headrace import layout
from headrace.clean import HIDDEN_ROW
from headrace.errors import ServiceAway, SettingsError, TableRefused, WarehouseError
from headrace.share import Share
from headrace.warehouses import redshift_faults, redshift_merge, redshift_platform, redshift_table, redshift_wire
from headrace.warehouses.changes import Standing
from headrace.warehouses.load import Counts, Held, Load, Way
from headrace.warehouses.redshift_folder import Folder, folder
from headrace.warehouses.redshift_table import Shape
from headrace.warehouses.redshift_text import literal, same

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NEW = "headrace_new"
"""What a table is called while it is filled; then it takes its own name."""
UNLOADED_MB = 64
ASK_S = 5
"""How long somebody who only wants to know waits for each answer, in seconds."""


class Connection(Protocol):
    """What we use of a DB-API connection, which begins a transaction by itself."""

    autocommit: bool

    def cursor(self) -> Any: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class Opener(Protocol):
    """Opens a connection, as Airflow's hook does; with `within`, in one try whose every answer takes no longer."""

    def __call__(self, *, within: int | None = None) -> Connection: ...


@dataclass(frozen=True)
class RedshiftWarehouse:
    """One team's cluster or workgroup, the schema and reading roles in it, and where its rows are staged."""

    name: str
    connect: Opener = field(repr=False)
    s3: Callable[[], "S3Client"] = field(repr=False)
    lake: str
    """Below this location rows are staged."""
    iam_role: str = "default"
    kms_key: str | None = None
    """What Redshift encrypts with that it unloads; without one, as S3 does by itself."""
    readers: tuple[str, ...] = ()
    schema: str = "public"
    connection: str = ""
    """The Airflow connection that it was told by."""
    place: str = ""
    """Where it is, for messages."""

    @contextmanager
    def loading(self, feed: str) -> Iterator["Loading"]:
        """One transaction over one connection, in which loads of one table take turns: all happens, or nothing."""
        with redshift_faults.told(self, feed):
            self._prepare(feed)
            with self._folder(feed) as own, self._session() as connection:
                session = Loading(self, connection, feed, own)
                session.take_turn()
                yield session
                connection.commit()

    @contextmanager
    def reading(self, feed: str) -> Iterator["Reading"]:
        """One transaction, all of which sees the moment of its first statement; nothing of it stays."""
        with redshift_faults.told(self, feed), self._folder(feed) as own, self._soon() as connection:
            yield Reading(self, connection, feed, own)

    def holds(self, feed: str) -> Load:
        """What was loaded last; nothing, when the warehouse is new or does not answer: its own task will tell why."""
        try:
            with redshift_faults.told(self, feed), self._session(asks=ASK_S) as connection:
                _run(connection, redshift_platform.within(ASK_S * 1000))
                found = _known(connection, redshift_platform.LOADED, [self.schema, feed])
                there = _rows(connection, redshift_platform.THERE, [self.schema, feed])
        except (ServiceAway, SettingsError, WarehouseError, TimeoutError):
            return Load()
        return Load(*found[0][:3]) if found and there else Load()

    def open(self) -> None:
        """Make the schemas and the platform's own tables, where they are not there yet; roles have to be."""
        with redshift_faults.told(self, "anything"):
            self._make(self._schema_there, [sql.SQL("create schema {}").format(sql.Identifier(self.schema))])
            self._make(self._platform_there, [sql.SQL(each) for each in redshift_platform.PLATFORM])

    def tables(self) -> list[Held]:
        """The tables that are loaded there; raises where it does not answer."""
        with redshift_faults.told(self, "anything"):
            return [Held(*row) for row in self.ask(redshift_platform.TABLES, [self.schema])]

    def remove(self) -> list[str]:
        """Drop what we have loaded there, views on it too; the schema and its roles stay."""
        gone = [held.table for held in self.tables()]
        with redshift_faults.told(self, "anything"), self._soon() as connection:
            for table in gone:
                for name in (sql.Identifier(self.schema, table), redshift_platform.turn(self.schema, table)):
                    _run(connection, sql.SQL("drop table if exists {} cascade").format(name))
            for forgotten in redshift_platform.FORGET if gone else ():
                _run(connection, sql.SQL(forgotten), [self.schema])
            connection.commit()
        return gone

    def vacuum(self, feed: str) -> None:
        """Have Redshift write the table's blocks anew without what was deleted."""
        with redshift_faults.told(self, feed), self._session() as connection:
            connection.autocommit = True  # it refuses to do so inside of a transaction
            _run(connection, redshift_table.vacuum(sql.Identifier(self.schema, feed)))

    def note_reconciled(self, feed: str, load: Load) -> None:
        """Note that the table was seen to agree with a snapshot, whatever was loaded meanwhile."""
        with redshift_faults.told(self, feed), self._soon() as connection:
            _run(connection, sql.SQL(redshift_platform.AGREES), [self.schema, feed, load.snapshot, load.contract])
            connection.commit()

    def ask(self, query: str, parameters: Sequence[Any]) -> list[Any]:
        """What the platform's own tables say now, in a transaction of its own; nothing where they are not there yet."""
        with self._soon() as connection:
            return _known(connection, query, parameters)

    @contextmanager
    def _session(self, *, asks: int | None = None) -> Iterator[Connection]:
        """A connection in which names are as they are written."""
        with closing(self.connect(within=asks)) as connection:
            _run(connection, sql.SQL(redshift_platform.CASE))
            connection.commit()  # a transaction begins with what it is about
            yield connection

    @contextmanager
    def _soon(self) -> Iterator[Connection]:
        """One whose statements wait for others only for a while."""
        with self._session() as connection:
            _run(connection, redshift_platform.within(redshift_platform.PATIENCE_MS))
            connection.commit()
            yield connection

    @contextmanager
    def _folder(self, feed: str) -> Iterator[Folder]:
        with folder(self.s3(), layout.staging_location(self.lake, feed, self.name)) as own:
            yield own

    def _prepare(self, feed: str) -> None:
        self.open()
        turn = redshift_platform.turn_name(self.schema, feed)
        self._make(
            lambda connection: bool(_rows(connection, redshift_platform.THERE, ["headrace", turn])),
            [redshift_platform.make_turn(self.schema, feed)],
        )
        self._admit()

    def _admit(self) -> None:
        """Let those read who are declared to, and nobody else whom we have let in."""
        with self._soon() as connection:
            noted = self._noted(connection)
            tables = [row[0] for row in _rows(connection, redshift_platform.TABLES, [self.schema])]
            elsewhere = {row[0] for row in _rows(connection, redshift_platform.READERS_ELSEWHERE, [self.schema])}
        for reader in sorted(set(self.readers) - noted):
            grants = redshift_platform.grants(self.schema, reader, tables)
            self._make(partial(self._lets_in, reader), grants)
        for reader in sorted(noted - set(self.readers)):
            last = reader not in elsewhere
            revoked = redshift_platform.revocations(self.schema, reader, tables, last=last)
            self._make(partial(self._keeps_out, reader), revoked)

    def _noted(self, connection: Connection) -> set[str]:
        return {row[0] for row in _rows(connection, redshift_platform.READERS, [self.schema])}

    def _lets_in(self, reader: str, connection: Connection) -> bool:
        return reader in self._noted(connection)

    def _keeps_out(self, reader: str, connection: Connection) -> bool:
        return reader not in self._noted(connection)

    def _make(self, there: Callable[[Connection], bool], statements: Sequence[sql.Composable]) -> None:
        """Make what is not there; another load may do so at the same time, and has then made it for us."""
        with self._soon() as connection:
            if there(connection):
                return
            try:
                for statement in statements:
                    _run(connection, statement)
                connection.commit()
            except Error:
                connection.rollback()
                if not there(connection):
                    raise

    def _schema_there(self, connection: Connection) -> bool:
        return bool(_rows(connection, redshift_platform.SCHEMA_THERE, [self.schema]))

    @staticmethod
    def _platform_there(connection: Connection) -> bool:
        return bool(_rows(connection, redshift_platform.THERE, ["headrace", redshift_platform.LAST_MADE]))


def _run(connection: Connection, statement: sql.Composable, parameters: Sequence[Any] = ()) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement.as_string(), list(parameters) or None)


def _rows(connection: Connection, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement, list(parameters) or None)
        return list(cursor.fetchall())


def _known(connection: Connection, query: str, parameters: Sequence[Any]) -> list[Any]:
    """What the platform's own tables say; nothing where they are not there yet."""
    if not _rows(connection, redshift_platform.THERE, ["headrace", redshift_platform.LAST_MADE]):
        return []
    return _rows(connection, query, parameters)


@dataclass(frozen=True)
class Session:
    """Statements inside one transaction of a warehouse, about one feed's table, and a folder for its rows."""

    warehouse: RedshiftWarehouse
    connection: Connection
    feed: str
    folder: Folder

    @property
    def table(self) -> sql.Identifier:
        return sql.Identifier(self.warehouse.schema, self.feed)

    def execute(self, statement: sql.Composable) -> None:
        _run(self.connection, statement)

    def _copy(self, share: Share, batches: Iterator[pa.RecordBatch], *, schema: pa.Schema) -> int:
        """Stage rows on S3, and have them copied in Parquet's own types."""
        sent = (redshift_wire.sent(each, share) for each in batches)
        staged = self.folder.write("rows", sent, schema=redshift_wire.schema(schema, share))
        names = [name for name in schema.names if name != HIDDEN_ROW]
        self.execute(redshift_merge.copied(names, share, marked=HIDDEN_ROW in schema.names))
        if staged.rows:  # COPY fails where there is no file
            self.execute(redshift_merge.copy(staged.manifest, iam_role=self.warehouse.iam_role))
        return staged.rows

    @property
    def _id(self) -> list[str]:
        return [self.warehouse.schema, self.feed]


@dataclass(frozen=True)
class Reading(Session):
    """A look at the table as it was at one moment."""

    looks: list[str] = field(default_factory=list)
    """What was unloaded so far, each into a place of its own."""

    def loaded(self) -> Load:
        """What was loaded last; nothing, where no load was there yet."""
        there = self.warehouse._platform_there(self.connection)
        found = _rows(self.connection, redshift_platform.LOADED, self._id) if there else []
        return Load(*found[0][:3]) if found else Load()

    def reconciled(self) -> Load:
        """At which snapshot the table was last seen to agree with the clean table."""
        found = _rows(self.connection, redshift_platform.RECONCILED, self._id)
        return Load(*found[0]) if found else Load()

    def look_for(self, share: Share, keys: Iterator[pa.RecordBatch]) -> None:
        """Have only rows with these keys read from now on."""
        self._enter()
        self._copy(share, keys, schema=pa.schema([share.schema.field(name) for name in share.key]))
        self.execute(redshift_merge.looked_for(share))
        self.execute(redshift_merge.insert(sql.Identifier(redshift_merge.STAGED), list(share.key), share))

    def rows(self, share: Share, *, looked_for: bool = False) -> Iterator[pa.RecordBatch]:
        """Every row of the table, or those that are looked for, unloaded to S3 and read there."""
        self._enter()
        self.looks.append(f"unloaded-{len(self.looks)}")
        select = unloaded(self.table, share, looked_for=looked_for)
        prefix, role = self.folder.prefix(self.looks[-1]), self.warehouse.iam_role
        self.execute(unload(select, prefix, iam_role=role, kms_key=self.warehouse.kms_key))
        for batch in self.folder.read(self.looks[-1]):
            yield redshift_wire.received(batch, share)

    def _enter(self) -> None:
        """Wait for whoever has locked the table, for a while; what is asked of it then may take as long as it likes."""
        self.execute(redshift_platform.within(redshift_platform.PATIENCE_MS))
        self.execute(redshift_table.look(self.table))
        self.execute(sql.SQL(redshift_platform.UNLIMITED))


def unloaded(table: sql.Identifier, share: Share, *, looked_for: bool) -> sql.Composed:
    """The rows that are compared, in plain types."""
    select = sql.SQL("select {} from {}").format(redshift_wire.selected(share, share.feed), table)
    if not looked_for:
        return select
    staged = redshift_merge.STAGED
    return select + sql.SQL(" join {} on {}").format(
        sql.Identifier(staged), same(share.key, table=share.feed, other=staged)
    )


def unload(select: sql.Composed, prefix: str, *, iam_role: str, kms_key: str | None = None) -> sql.Composed:
    """Write what a query gives to S3 as Parquet."""
    statement = sql.SQL("unload ({}) to {} iam_role {} format as parquet maxfilesize {} mb{}")
    encrypted = sql.SQL(" kms_key_id {} encrypted").format(literal(kms_key)) if kms_key else sql.SQL("")
    query, where = literal(select.as_string()), literal(prefix)
    return statement.format(query, where, redshift_merge.role(iam_role), sql.Literal(UNLOADED_MB), encrypted)


@dataclass(frozen=True)
class Loading(Session):
    """A change of the table, recorded in the transaction that makes it."""

    def take_turn(self) -> None:
        """Wait for the turn to load this table."""
        self.execute(redshift_platform.within(redshift_platform.TURN_MS))
        # The lock is to be the first of its transaction.
        self.connection.commit()
        self.execute(redshift_platform.take_turn(self.warehouse.schema, self.feed))
        self.execute(sql.SQL(redshift_platform.UNLIMITED))

    def loaded(self) -> Load:
        """What was loaded last: asked beside the transaction, whose turn keeps everybody else from adding to it."""
        found = self._last()
        return Load(*found[:3]) if found else Load()

    def _last(self) -> Any:
        found = self.warehouse.ask(redshift_platform.LOADED, self._id)
        return found[0] if found else None

    def standing(self) -> Standing | None:
        """The table as it is; None when there is none."""
        found = _rows(self.connection, redshift_table.COLUMNS, self._id)
        if not found:
            return None
        recorded = self._recorded()
        types = {name: redshift_table.spelled(type_) for name, type_ in found}
        return Standing(types, recorded.key if recorded else (), recorded.masks if recorded else {})

    def _recorded(self) -> Shape | None:
        last = self._last()
        return Shape.from_json(last[3]) if last else None

    def keeps(self, share: Share, last: Load) -> bool:
        """Whether the table stays and only its rows change; else it is made anew, as Redshift changes no types."""
        standing, recorded = self.standing(), self._recorded()
        if last.snapshot is None and standing:
            raise TableRefused(
                f"{self.warehouse.name}.{self.feed}: a table {self.warehouse.schema}.{self.feed} is there that was not "
                f"loaded by us. Nothing was changed. Rename it; or, to have it replaced, "
                f"headrace load {self.feed} {self.warehouse.name} --anew"
            )
        if recorded is None or standing is None:
            return False
        found = redshift_table.changes(standing, share)
        if found.lossy:
            raise TableRefused(self._told_loss(found.lossy))
        then, now = recorded.renamed(dict(found.renamed)), redshift_table.shape(share)
        same_layout = (then.key, then.distribution, then.sort) == (now.key, now.distribution, now.sort)
        return same_layout and not found.widened and not found.remade

    def _told_loss(self, lossy: Sequence[tuple[str, str, str]]) -> str:
        told = "; ".join(f"{name} is {old} and would be {new}" for name, old, new in lossy)
        feed, warehouse = self.feed, self.warehouse.name
        return (
            f"{warehouse}.{feed}: {told}. Values would be lost, so nothing was changed. To make the table anew from "
            f"the clean rows, in the new types: headrace load {feed} {warehouse} --anew"
        )

    def vet(self, share: Share) -> None:
        """Raise where define() would refuse: here it has nothing to, after keeps() has let it pass."""

    def define(self, share: Share) -> None:
        """Bring the table that is there to the share's columns, comments and grants."""
        standing = self.standing()
        assert standing is not None, "a table that was loaded is there"
        found = redshift_table.changes(standing, share)
        self._soon(redshift_table.touch(self.table), *redshift_table.alterations(self.table, found, share))
        for statement in redshift_table.emptied(self.table, found):
            self.execute(statement)
        self._describe(share)

    def _soon(self, *statements: sql.Composable) -> None:
        """Change the table; whoever uses it may keep us from it only for a while, since others wait behind us."""
        self.execute(redshift_platform.within(redshift_platform.PATIENCE_MS))
        for statement in statements:
            self.execute(statement)
        self.execute(sql.SQL(redshift_platform.UNLIMITED))

    def _describe(self, share: Share) -> None:
        for statement in redshift_table.descriptions(self.table, share):
            self.execute(statement)
        for reader in self.warehouse.readers:
            grant = sql.SQL("grant select on {} to role {}")
            self.execute(grant.format(self.table, sql.Identifier(reader)))

    def fill(self, share: Share, batches: Iterator[pa.RecordBatch]) -> Counts:
        """Make the table new of these rows, beside the old one, and switch to it."""
        standing = self.standing()
        if standing:
            self._refuse_bound_views()
        new = sql.Identifier(self.warehouse.schema, f"{NEW}_{self.feed}")
        self.execute(sql.SQL("drop table if exists {}").format(new))
        self.execute(redshift_table.definition(new, share))
        for addition in redshift_table.additions(new, self._kept(standing, share) if standing else {}):
            self.execute(addition)
        filled = self._copy(share, batches, schema=share.schema)
        self.execute(redshift_merge.insert(new, share.names, share))
        dropped = [sql.SQL("drop table {}").format(self.table)] if standing else []
        self._soon(*dropped, sql.SQL("alter table {} rename to {}").format(new, sql.Identifier(self.feed)))
        self._describe(share)
        return Counts(inserted=filled)

    def _kept(self, standing: Standing, share: Share) -> dict[str, str]:
        """Columns of ours that the share has no more: late-binding views may show them, and nobody could tell."""
        if not self._recorded():
            return {}
        renamed = redshift_table.changes(standing, share).renamed
        types = {renamed.get(name, name): type_ for name, type_ in standing.columns.items()}
        return {name: type_ for name, type_ in types.items() if name not in share.names}

    def _refuse_bound_views(self) -> None:
        bound = [".".join(row) for row in _rows(self.connection, redshift_table.VIEWS, self._id)]
        if bound:
            raise TableRefused(
                f"{self.warehouse.name}.{self.feed}: it has to be made anew, and views are bound to it: "
                f"{', '.join(bound)}. Nothing was changed. Make them again with no schema binding, which outlive that, "
                f"or drop them; then clear the load task."
            )

    def stage(self, share: Share, batches: Iterator[pa.RecordBatch]) -> int:
        """Bring rows into a table that only this session sees."""
        staged = self._copy(share, batches, schema=share.schema.append(pa.field(HIDDEN_ROW, pa.bool_())))
        self.execute(redshift_merge.staging(share))
        table = sql.Identifier(redshift_merge.STAGED)
        self.execute(redshift_merge.insert(table, share.names, share, marked=True))
        return staged

    def merge(self, share: Share, *, whole: bool) -> Counts:
        """Apply the staged rows by key: hidden ones delete, others insert or update.

        Where everything was staged, `whole`, rows whose key was not are deleted too.
        """
        self._soon(redshift_table.touch(self.table))
        inserted, updated, deleted = self._number(redshift_merge.counts(self.table, share))
        if whole:
            (deleted,) = self._number(redshift_merge.surplus(self.table, share))
        first = redshift_merge.remove if whole else redshift_merge.delete
        for statement in (first(self.table, share), redshift_merge.unhide(), redshift_merge.merge(self.table, share)):
            self.execute(statement)
        return Counts(inserted=inserted, updated=updated, deleted=deleted)

    def _number(self, statement: sql.Composed) -> list[int]:
        return [int(value) for value in _rows(self.connection, statement.as_string())[0]]

    def record(self, share: Share, load: Load, way: Way, counts: Counts) -> None:
        """Add to the log which snapshot the table holds now, and what was done."""
        last = self._last()
        state = [load.snapshot, load.contract, load.published]
        done = [redshift_table.shape(share).to_json(), way, counts.inserted, counts.updated, counts.deleted]
        number = last[4] + 1 if last else 1
        self.execute(redshift_platform.within(redshift_platform.PATIENCE_MS))
        _run(self.connection, sql.SQL(redshift_platform.RECORD), [*self._id, number, *state, *done])
