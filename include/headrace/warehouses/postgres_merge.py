"""Merging staged rows into a Postgres table by key, and telling how many were inserted, updated and deleted."""

from psycopg import sql

from headrace.clean import HIDDEN_ROW
from headrace.share import Share
from headrace.warehouses.postgres_table import names
from headrace.warehouses.postgres_types import column_type

DELETED = sql.SQL("with done as ({} returning 1) select count(*) as deleted from done")
# A row version that nobody has deleted or locked before is a new one.
CHANGED = sql.SQL(
    "with done as ({} returning (t.xmax = 0) as inserted) "
    "select count(*) filter (where inserted) as inserted, count(*) filter (where not inserted) as updated from done"
)


def staging(table: str, share: Share) -> sql.Composed:
    """A table for the rows to merge that goes away with the transaction."""
    columns = [(name, column_type(type_)) for name, type_ in share.types.items()]
    listed = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type_))
        for name, type_ in (*columns, (HIDDEN_ROW, "boolean"))
    ]
    create = sql.SQL("create temporary table {} ({}) on commit drop")
    return create.format(sql.Identifier(table), sql.SQL(", ").join(listed))


def keys(table: str, share: Share) -> sql.Composed:
    """A table for keys alone."""
    listed = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(column_type(share.types[name]))) for name in share.key
    ]
    create = sql.SQL("create temporary table {} ({}) on commit drop")
    return create.format(sql.Identifier(table), sql.SQL(", ").join(listed))


def delete(table: sql.Identifier, staged: sql.Identifier, share: Share) -> sql.Composed:
    """Delete the rows whose key was staged as hidden."""
    statement = sql.SQL("delete from {} t using {} s where s.{} and {}")
    return DELETED.format(statement.format(table, staged, sql.Identifier(HIDDEN_ROW), _same_key(share)))


def remove(table: sql.Identifier, staged: sql.Identifier, share: Share) -> sql.Composed:
    """Delete the rows whose key was not staged: for a full compare, where everything was."""
    statement = sql.SQL("delete from {} t where not exists (select from {} s where not s.{} and {})")
    return DELETED.format(statement.format(table, staged, sql.Identifier(HIDDEN_ROW), _same_key(share)))


def upsert(table: sql.Identifier, staged: sql.Identifier, share: Share) -> sql.Composed:
    """Insert new keys and update changed rows; equal rows are left alone, so that they cost no write."""
    others = [name for name in share.names if name not in share.key]
    insert = sql.SQL("insert into {} as t ({}) select {} from {} s where not s.{}").format(
        table, names(share.names), names(share.names, "s"), staged, sql.Identifier(HIDDEN_ROW)
    )
    if not others:
        return CHANGED.format(insert + sql.SQL(" on conflict do nothing"))
    sets = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others)
    return CHANGED.format(
        insert
        + sql.SQL(" on conflict ({}) do update set {} where ({}) is distinct from ({})").format(
            names(share.key), sets, names(others, "t"), names(others, "excluded")
        )
    )


def _same_key(share: Share) -> sql.Composed:
    pairs = [sql.SQL("t.{0} = s.{0}").format(sql.Identifier(name)) for name in share.key]
    return sql.SQL(" and ").join(pairs)
