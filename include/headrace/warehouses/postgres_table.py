"""A feed's table in Postgres: how the one that is there becomes the one that is wanted, and what is refused."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence

from psycopg import sql

from headrace.share import Share
from headrace.warehouses.changes import Changes, Standing, changes_of
from headrace.warehouses.postgres_types import column_type

SPELLED = {
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
    "time without time zone": "time",
}
"""What Postgres calls our types when it is asked."""
INDEX = "headrace_"
"""What the names of our indexes begin with: those that no feed asks for any more are dropped."""

COLUMNS = """
select attribute.attname as name, format_type(attribute.atttypid, attribute.atttypmod) as type,
    array_position(key.conkey, attribute.attnum) as place
from pg_class relation
join pg_namespace space on space.oid = relation.relnamespace
join pg_attribute attribute on attribute.attrelid = relation.oid
left join pg_constraint key on key.conrelid = relation.oid and key.contype = 'p'
where space.nspname = $1 and relation.relname = $2 and attribute.attnum > 0 and not attribute.attisdropped
order by attribute.attnum
"""
"""The columns of a table, and the place in the primary key of those that are part of it."""

INDEXES = """
select indexname from pg_indexes where schemaname = $1 and tablename = $2 and starts_with(indexname, $3)
"""


def spelled(type_: str) -> str:
    """A type in our words."""
    return SPELLED.get(type_, re.sub(r",(?=\d)", ", ", type_))


def changes(standing: Standing, share: Share) -> Changes:
    """How a table becomes the share's."""
    return changes_of(standing, share, {name: column_type(type_) for name, type_ in share.types.items()})


def alterations(table: sql.Identifier, found: Changes, share: Share) -> Iterator[sql.Composed]:
    """The statements that change a table whose columns are renamed; one of them rewrites its rows, if any does."""
    types = {name: sql.SQL(column_type(type_)) for name, type_ in share.types.items()}
    add, widen, remake = (
        sql.SQL("add column {} {}"),
        sql.SQL("alter column {} type {}"),
        sql.SQL("alter column {} type {} using null"),
    )
    parts = [
        form.format(sql.Identifier(name), types[name])
        for form, names in ((add, found.added), (widen, found.widened), (remake, found.remade))
        for name in names
    ]
    if parts:
        yield sql.SQL("alter table {} ").format(table) + sql.SQL(", ").join(parts)
    for name in found.emptied:
        update = sql.SQL("update {0} set {1} = null where {1} is not null")
        yield update.format(table, sql.Identifier(name))


def renames(table: sql.Identifier, renamed: Mapping[str, str]) -> Iterator[sql.Composed]:
    for old, new in renamed.items():
        rename = sql.SQL("alter table {} rename column {} to {}")
        yield rename.format(table, sql.Identifier(old), sql.Identifier(new))


def additions(table: sql.Identifier, types: Mapping[str, str]) -> Iterator[sql.Composed]:
    """Empty columns, in types as a table that is there has them."""
    for name, type_ in types.items():
        yield sql.SQL("alter table {} add column {} {}").format(table, sql.Identifier(name), sql.SQL(type_))


def definition(table: sql.Identifier, share: Share) -> sql.Composed:
    """The table without its key, which costs less to make when the rows are there."""
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(column_type(type_)))
        for name, type_ in share.types.items()
    ]
    return sql.SQL("create table {} ({})").format(table, sql.SQL(", ").join(columns))


def key(table: sql.Identifier, share: Share) -> sql.Composed:
    """The primary key; Postgres names it by the table, or otherwise where somebody's index is called so already."""
    return sql.SQL("alter table {} add primary key ({})").format(table, names(share.key))


def index_name(share: Share, columns: Sequence[str]) -> str:
    """What an index is called: another one when it is over other columns."""
    digest = hashlib.sha256("\0".join([share.feed, *columns]).encode()).hexdigest()[:12]
    return f"{INDEX}{share.feed[:40]}_{digest}"


def index(table: sql.Identifier, share: Share, columns: Sequence[str]) -> sql.Composed:
    name = sql.Identifier(index_name(share, columns))
    return sql.SQL("create index {} on {} ({})").format(name, table, names(columns))


def descriptions(table: sql.Identifier, share: Share) -> Iterator[sql.Composed]:
    """Comments from the feed file."""
    yield sql.SQL("comment on table {} is {}").format(table, sql.Literal(share.doc))
    for column in share.columns:
        comment = sql.SQL("comment on column {}.{} is {}")
        yield comment.format(table, sql.Identifier(column.name), sql.Literal(column.doc or ""))


def names(columns: Sequence[str], prefix: str | None = None) -> sql.Composed:
    parts = [sql.Identifier(prefix, name) if prefix else sql.Identifier(name) for name in columns]
    return sql.SQL(", ").join(parts)
