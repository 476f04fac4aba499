"""The platform's own schema in a Postgres warehouse: what was loaded when, from which snapshot, and how fresh it is."""

from psycopg import sql

LOCK_TIMEOUT = "5s"
"""How long a load waits for somebody else's lock; not for long, since those who read meanwhile wait behind it."""

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
create index if not exists history_by_table on headrace.history (schema_name, table_name, loaded_at);
create or replace view headrace.freshness as
    select schema_name, table_name, published_at, loaded_at, reconciled_at, now() - published_at as age
    from headrace.tables where snapshot_id is not null;
comment on schema headrace is 'What Headrace keeps about the tables that it loads.';
comment on table headrace.tables is 'Every table that is loaded: the clean snapshot that it holds.';
comment on table headrace.history is 'What each load of the last 90 days did.';
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

USAGE = sql.SQL("grant usage on schema {schema} to {reader}")
READ = sql.SQL("grant select on headrace.tables, headrace.history, headrace.freshness to {reader}")

UNGRANTED = (
    sql.SQL("revoke all on all tables in schema headrace from {role}"),
    sql.SQL("revoke all on schema headrace from {role}"),
    sql.SQL("revoke all on database {database} from {role}"),
)
"""What a role that is dropped may no longer have."""

LOADED = """
select snapshot_id, contract, published_at from headrace.tables where schema_name = {} and table_name = {}
"""

BEGIN = "insert into headrace.tables (schema_name, table_name) values ($1, $2) on conflict do nothing"

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
