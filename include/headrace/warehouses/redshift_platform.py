"""The platform's own schema in a Redshift warehouse: a log of loads, and views of it as Postgres' tables are called.

Two loads at once may not read and write one table: Redshift would end one of them, for its transactions are held to be
serializable by whole tables. So a load only adds to the log, and reads it over another connection; and each table has
an empty one whose lock is the turn to load it, since Redshift locks tables and no rows.
"""

import hashlib
from collections.abc import Sequence

from psycopg import sql

from headrace.warehouses.redshift_text import literal

CASE = "set enable_case_sensitive_identifier to true"
"""Else Redshift takes names for lower-case ones, quoted or not, and would not find a field's that has capitals."""
PATIENCE_MS = 30_000
"""How long a change of a table waits for those who use it; Redshift limits no lock, but each statement."""
TURN_MS = 30 * 60_000
"""How long a load waits for another one of the same table: it fails by itself before Airflow ends it."""
UNLIMITED = "reset statement_timeout"

PLATFORM = (
    "create schema if not exists headrace",
    """create table if not exists headrace.loads (
    schema_name varchar(127) not null,
    table_name varchar(127) not null,
    number bigint not null,
    snapshot_id bigint not null,
    contract varchar(64) not null,
    published_at timestamptz not null,
    loaded_at timestamptz not null,
    shape varchar(65535) not null,
    way varchar(16) not null,
    inserted bigint not null,
    updated bigint not null,
    deleted bigint not null
) diststyle auto sortkey (schema_name, table_name, number)""",
    """create table if not exists headrace.reconciliations (
    schema_name varchar(127) not null,
    table_name varchar(127) not null,
    snapshot_id bigint not null,
    contract varchar(64) not null,
    reconciled_at timestamptz not null
) diststyle auto sortkey (schema_name, table_name, reconciled_at)""",
    """create table if not exists headrace.readers (
    schema_name varchar(127) not null,
    reader varchar(127) not null
) diststyle auto""",
    """create or replace view headrace.tables as
select newest.schema_name, newest.table_name, newest.snapshot_id, newest.contract, newest.published_at,
    newest.loaded_at, seen.reconciled_at
from (
    select schema_name, table_name, snapshot_id, contract, published_at, loaded_at,
        row_number() over (partition by schema_name, table_name order by number desc) as place
    from headrace.loads
) newest
left join (
    select schema_name, table_name, max(reconciled_at) as reconciled_at
    from headrace.reconciliations group by schema_name, table_name
) seen on seen.schema_name = newest.schema_name and seen.table_name = newest.table_name
where newest.place = 1""",
    """create or replace view headrace.history as
select schema_name, table_name, snapshot_id, published_at, loaded_at, way, inserted, updated, deleted
from headrace.loads""",
    """create or replace view headrace.freshness as
select schema_name, table_name, published_at, loaded_at, reconciled_at, getdate()::timestamptz - published_at as age
from headrace.tables""",
    "comment on table headrace.loads is 'Every load: which clean snapshot it brought, and what was done.'",
    "comment on table headrace.reconciliations is 'When a table was seen to agree with the clean one.'",
    "comment on table headrace.readers is 'Roles that were let into a schema.'",
    "comment on view headrace.tables is 'Every table that is loaded: the clean snapshot that it holds.'",
    "comment on view headrace.history is 'What each load did.'",
    "comment on view headrace.freshness is 'How old the published rows are that each table shows.'",
)

LAST_MADE = "freshness"
"""Where this one is, all of it is."""

THERE = """
select 1 from pg_class relation join pg_namespace space on space.oid = relation.relnamespace
where space.nspname = %s and relation.relname = %s
"""

SCHEMA_THERE = "select 1 from pg_namespace where nspname = %s"

LOADED = """
select snapshot_id, contract, published_at, shape, number from headrace.loads
where schema_name = %s and table_name = %s order by number desc limit 1
"""

RECONCILED = """
select snapshot_id, contract from headrace.reconciliations
where schema_name = %s and table_name = %s order by reconciled_at desc limit 1
"""

RECORD = """
insert into headrace.loads (schema_name, table_name, number, snapshot_id, contract, published_at, loaded_at, shape, way,
    inserted, updated, deleted)
values (%s, %s, %s, %s, %s, %s, getdate()::timestamptz, %s, %s, %s, %s, %s)
"""

AGREES = """
insert into headrace.reconciliations (schema_name, table_name, snapshot_id, contract, reconciled_at)
values (%s, %s, %s, %s, getdate()::timestamptz)
"""

TABLES = """
select table_name, published_at, loaded_at, reconciled_at from headrace.tables
where schema_name = %s order by table_name
"""

READERS = "select reader from headrace.readers where schema_name = %s"
READERS_ELSEWHERE = "select reader from headrace.readers where schema_name <> %s"

FORGET = (
    "delete from headrace.readers where schema_name = %s",
    "delete from headrace.loads where schema_name = %s",
    "delete from headrace.reconciliations where schema_name = %s",
)


OWN = [sql.Identifier("headrace", view) for view in ("tables", "history", "freshness")]
"""What everybody may read who may read any table."""


def within(milliseconds: int) -> sql.Composed:
    """End any statement of this session that takes longer."""
    return sql.SQL("set statement_timeout to {}").format(sql.Literal(milliseconds))


def turn(schema: str, feed: str) -> sql.Identifier:
    """The empty table whose lock is the turn to load another one."""
    return sql.Identifier("headrace", turn_name(schema, feed))


def turn_name(schema: str, feed: str) -> str:
    return f"turn_{feed}_{hashlib.sha256(schema.encode()).hexdigest()[:12]}"


def make_turn(schema: str, feed: str) -> sql.Composed:
    return sql.SQL("create table if not exists {} (nothing boolean)").format(turn(schema, feed))


def take_turn(schema: str, feed: str) -> sql.Composed:
    """Wait for the turn. LOCK comes first in its transaction: only what follows sees what those before have done."""
    return sql.SQL("lock table {}").format(turn(schema, feed))


def grants(schema: str, reader: str, tables: Sequence[str]) -> tuple[sql.Composed, ...]:
    """What lets a role in; noted, since whoever grants keeps others from doing so until its transaction ends."""
    role = sql.Identifier(reader)
    usage, select = sql.SQL("grant usage on schema {} to role {}"), sql.SQL("grant select on {} to role {}")
    return (
        *(usage.format(sql.Identifier(each), role) for each in (schema, "headrace")),
        *(select.format(each, role) for each in (*_loaded(schema, tables), *OWN)),
        sql.SQL("insert into headrace.readers (schema_name, reader) values ({}, {})").format(
            literal(schema), literal(reader)
        ),
    )


def revocations(schema: str, reader: str, tables: Sequence[str], *, last: bool) -> tuple[sql.Composed, ...]:
    """What shuts a role out again; what every schema's readers may see, where this was the last one that let it in."""
    role = sql.Identifier(reader)
    usage, select = sql.SQL("revoke usage on schema {} from role {}"), sql.SQL("revoke select on {} from role {}")
    return (
        *(usage.format(sql.Identifier(each), role) for each in ((schema, "headrace") if last else (schema,))),
        *(select.format(each, role) for each in (*_loaded(schema, tables), *(OWN if last else ()))),
        sql.SQL("delete from headrace.readers where schema_name = {} and reader = {}").format(
            literal(schema), literal(reader)
        ),
    )


def _loaded(schema: str, tables: Sequence[str]) -> list[sql.Identifier]:
    return [sql.Identifier(schema, table) for table in tables]
