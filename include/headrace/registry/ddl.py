"""The tables that hold the registry."""

# Content is unique by its digest and ids count up in the row of their context, inside the transaction that uses them:
# no two servers can give one id to two schemas, nor two ids to one. A twin is content that an import brought under a
# second id, because the registry that it came from had given it one.
CREATE = """
create table if not exists contexts (
    name text primary key,
    last_id integer not null default 0,
    is_listed boolean not null default true
);
create table if not exists schemas (
    context text not null references contexts (name),
    id integer not null,
    type text not null,
    text text not null,
    refs jsonb not null,
    metadata jsonb,
    rule_set jsonb,
    guid uuid not null,
    digest bytea not null,
    is_twin boolean not null,
    primary key (context, id)
);
create unique index if not exists schemas_content on schemas (context, digest) where not is_twin;
create index if not exists schemas_guid on schemas (guid);
create table if not exists versions (
    subject text not null,
    version integer not null check (version > 0),
    context text not null,
    id integer not null,
    is_deleted boolean not null default false,
    registered_at timestamptz not null default now(),
    primary key (subject, version),
    foreign key (context, id) references schemas (context, id)
);
create index if not exists versions_schema on versions (context, id);
create table if not exists uses (
    context text not null,
    id integer not null,
    subject text not null,
    version integer not null,
    primary key (subject, version, context, id),
    foreign key (context, id) references schemas (context, id) on delete cascade
);
create table if not exists configs (subject text primary key, value jsonb not null);
create table if not exists modes (subject text primary key, mode text not null);
create table if not exists origins (
    subject text not null,
    version integer not null,
    id integer not null,
    primary key (subject, version, id)
);
create table if not exists marks (mark bigint not null);
insert into contexts (name) values ('.') on conflict do nothing;
insert into marks select 0 where not exists (select from marks);
"""
