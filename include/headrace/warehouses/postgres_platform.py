"""The platform's own schema in a Postgres warehouse: what was loaded when, from which snapshot, and how fresh it is."""

from psycopg import sql

LOCK_TIMEOUT = "5s"
"""How long we wait for somebody else's lock; not for long, since those who read meanwhile wait behind us."""
TURN_TIMEOUT = "30min"
"""How long a load waits while another one fills the same table: it fails by itself before Airflow ends it."""

ONE_AT_A_TIME = "select pg_advisory_xact_lock(hashtext('headrace'))"
"""Whoever makes, grants or removes what loads share waits for this one lock."""

# The contract tells under which columns and masks a table was loaded: under another one every row is compared again.
PLATFORM = """
create schema if not exists headrace;
create table if not exists headrace.tables (
    schema_name text,
    table_name text,
    snapshot_id bigint,
    contract text,
    published_at timestamptz,
    loaded_at timestamptz,
    masks jsonb,
    reconciled_id bigint,
    reconciled_contract text,
    reconciled_at timestamptz,
    primary key (schema_name, table_name)
);
create table if not exists headrace.history (
    schema_name text not null,
    table_name text not null,
    snapshot_id bigint not null,
    published_at timestamptz not null,
    loaded_at timestamptz not null default now(),
    way text not null,
    inserted bigint not null,
    updated bigint not null,
    deleted bigint not null
);
create table if not exists headrace.warehouses (
    schema_name text primary key,
    warehouse text not null,
    readers text[] not null default '{}'
);
create index if not exists history_by_table on headrace.history (schema_name, table_name, loaded_at);
create or replace view headrace.freshness as
    select schema_name, table_name, published_at, loaded_at, reconciled_at, now() - published_at as age
    from headrace.tables where snapshot_id is not null;
comment on schema headrace is 'What Headrace keeps about the tables that it loads.';
comment on table headrace.tables is 'Every table that is loaded: the clean snapshot that it holds.';
comment on table headrace.history is 'What each load of the last 90 days did.';
comment on table headrace.warehouses is 'Whose each schema is, and the roles that were let in to read it.';
comment on view headrace.freshness is 'How old the published rows are that each table shows.';
"""

OURS = "Made by Headrace for the warehouse {}."
"""The comment on schemas and roles that go away with their warehouse."""

MADE_SCHEMA = "select 1 from pg_namespace where nspname = %s and obj_description(oid, 'pg_namespace') = %s"
MADE_ROLES = "select rolname from pg_roles where shobj_description(oid, 'pg_authid') = %s order by 1"
TABLES = """
select table_name, published_at, loaded_at, reconciled_at from headrace.tables
where schema_name = %s and snapshot_id is not null order by 1
"""

CLAIM = "insert into headrace.warehouses (schema_name, warehouse) values (%s, %s) on conflict do nothing"
CLAIMED = "select warehouse, readers from headrace.warehouses where schema_name = %s"
ADMITTED = "update headrace.warehouses set readers = %s where schema_name = %s"

# Of each statement here, format() quotes the names.
RELATIONS = sql.SQL("""
select known.oid::regclass as relation
from headrace.tables join pg_class known on known.oid = to_regclass(format('%%I.%%I', schema_name, table_name))
where schema_name = %(schema)s and snapshot_id is not null and pg_has_role(known.relowner, 'usage')
""")
OWN = sql.SQL(
    "select unnest(array['headrace.tables', 'headrace.history', 'headrace.freshness']::regclass[]) as relation"
)

LACKING = sql.SQL("""
select format('grant usage on schema %%I to %%I', space, reader)
from unnest(%(readers)s::name[]) reader, unnest(array[%(schema)s, 'headrace']::name[]) space
where not has_schema_privilege(reader, space, 'usage')
union all
select format('grant select on %%s to %%I', relation, reader)
from unnest(%(readers)s::name[]) reader, ({loaded} union all {own}) loaded
where not has_table_privilege(reader, relation, 'select')
""").format(loaded=RELATIONS, own=OWN)
"""What those who may read still need; the statements that grant it."""

GRANTED = sql.SQL("""
with role as (
    select rolname, not exists (
        select from headrace.warehouses where rolname = any (readers) and schema_name <> %(schema)s
    ) as last
    from pg_roles where rolname = any (%(roles)s::name[])
)
select format('revoke select on %%s from %%I', relation, rolname) from role, ({loaded}) loaded
union all
select format('revoke usage on schema %%I from %%I', nspname, rolname) from role, pg_namespace
where nspname = %(schema)s or (nspname = 'headrace' and last)
union all
select format('revoke select on %%s from %%I', relation, rolname) from role, ({own}) own where last
""").format(loaded=RELATIONS, own=OWN)
"""What roles may have been granted; the statements that revoke it."""

NOT_READING = """
select reader from headrace.warehouses known, unnest(known.readers) reader
where schema_name = $1
    and not has_table_privilege(reader, to_regclass(format('%I.%I', $1::text, $2::text)), 'select')
order by 1 for share of known
"""
"""Who cannot read a table yet; the lock keeps it so until they can."""

LOADED = """
select snapshot_id, contract, published_at from headrace.tables where schema_name = $1 and table_name = $2
"""

HOLDS = """
select snapshot_id, contract, published_at, warehouse, readers
from headrace.tables join headrace.warehouses using (schema_name) where schema_name = %s and table_name = %s
    and to_regclass(format('%%I.%%I', schema_name, table_name)) is not null
"""
"""What was loaded last; nothing of a table that somebody has dropped."""

# The row is there and locked after this, whether it was there before or not; it is not written anew.
TURN = """
insert into headrace.tables (schema_name, table_name) values ($1, $2)
on conflict (schema_name, table_name) do update set table_name = excluded.table_name where false
"""

MASKS = "select masks::text from headrace.tables where schema_name = $1 and table_name = $2"

RECORD = """
update headrace.tables
set snapshot_id = $3, contract = $4, published_at = $5, masks = $6::jsonb, loaded_at = now()
where schema_name = $1 and table_name = $2
"""

RECONCILED = """
select reconciled_id, reconciled_contract from headrace.tables where schema_name = $1 and table_name = $2
"""

AGREES = """
update headrace.tables set reconciled_id = %(snapshot)s, reconciled_contract = %(contract)s, reconciled_at = now()
where schema_name = %(schema)s and table_name = %(table)s and snapshot_id = %(snapshot)s
"""

NOTE = """
insert into headrace.history (schema_name, table_name, snapshot_id, published_at, way, inserted, updated, deleted)
values ($1, $2, $3, $4, $5, $6, $7, $8)
"""

FORGET = """
delete from headrace.history where schema_name = $1 and table_name = $2 and loaded_at < now() - interval '90 days'
"""


def waiting(limit: str) -> sql.Composed:
    """Wait this long for locks from now on, until the transaction ends."""
    return sql.SQL("set local lock_timeout = {}").format(sql.Literal(limit))
