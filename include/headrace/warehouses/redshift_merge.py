"""Merging staged rows into a Redshift table by key: COPY, casts, deletes and MERGE, one statement each."""

from psycopg import sql

from headrace.clean import HIDDEN_ROW
from headrace.share import Share
from headrace.warehouses import redshift_table
from headrace.warehouses.redshift_text import literal, names, same
from headrace.warehouses.redshift_types import column_type, copied_type
from headrace.warehouses.redshift_wire import converted

COPIED, STAGED = "headrace_copied", "headrace_staging"
"""Tables that only one session sees: what COPY brought, in Parquet's types, and the same in the table's own."""
HIDDEN = sql.Identifier(STAGED, HIDDEN_ROW)


def copied(names_: list[str], share: Share, *, marked: bool) -> sql.Composed:
    """The table that COPY fills: the columns of the files, in their order."""
    types = [(name, copied_type(share.types[name])) for name in names_]
    return _temporary(COPIED, [*types, (HIDDEN_ROW, "boolean")] if marked else types)


def copy(manifest: str, *, iam_role: str) -> sql.Composed:
    """Load the files that a manifest names, all of them or none."""
    statement = sql.SQL("copy {} from {} iam_role {} format as parquet manifest")
    return statement.format(sql.Identifier(COPIED), literal(manifest), role(iam_role))


def role(iam_role: str) -> sql.SQL:
    """`default` is a word of Redshift's own."""
    return sql.SQL("default") if iam_role == "default" else literal(iam_role)


def staging(share: Share) -> sql.Composed:
    """A table for the rows to merge, laid out like the one that they go to, so that the join stays on each node."""
    types = [(name, column_type(type_)) for name, type_ in share.types.items()]
    created = _temporary(STAGED, [*types, (HIDDEN_ROW, "boolean")])
    return created + sql.SQL(" ") + redshift_table.keys(redshift_table.shape(share))


def looked_for(share: Share) -> sql.Composed:
    """A table for keys alone."""
    return _temporary(STAGED, [(name, column_type(share.types[name])) for name in share.key])


def _temporary(table: str, types: list[tuple[str, str]]) -> sql.Composed:
    columns = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type_)) for name, type_ in types]
    return sql.SQL("create temporary table {} ({})").format(sql.Identifier(table), sql.SQL(", ").join(columns))


def insert(table: sql.Identifier, names_: list[str], share: Share, *, marked: bool = False) -> sql.Composed:
    """What COPY brought, in the table's own types."""
    listed = [*names_, HIDDEN_ROW] if marked else names_
    cast = [converted(name, share.types[name]) for name in names_]
    cast += [sql.Composed([sql.Identifier(HIDDEN_ROW)])] if marked else []
    statement = sql.SQL("insert into {} ({}) select {} from {}")
    return statement.format(table, names(listed), sql.SQL(", ").join(cast), sql.Identifier(COPIED))


def counts(table: sql.Identifier, share: Share) -> sql.Composed:
    """How many rows the staged ones will insert, update and delete."""
    there = sql.SQL("{} is not null").format(sql.Identifier(share.feed, share.key[0]))
    count = sql.SQL("coalesce(sum(case when {} then 1 else 0 end), 0)")
    kinds = [
        sql.SQL("not {} and not ({})").format(HIDDEN, there),
        sql.SQL("not {} and {}").format(HIDDEN, there),
        sql.SQL("{} and {}").format(HIDDEN, there),
    ]
    return sql.SQL("select {} from {} left join {} on {}").format(
        sql.SQL(", ").join(count.format(kind) for kind in kinds), sql.Identifier(STAGED), table, _same_key(share)
    )


def delete(table: sql.Identifier, share: Share) -> sql.Composed:
    """Delete the rows whose key was staged as hidden."""
    statement = sql.SQL("delete from {} using {} where {} and {}")
    return statement.format(table, sql.Identifier(STAGED), HIDDEN, _same_key(share))


def surplus(table: sql.Identifier, share: Share) -> sql.Composed:
    """How many rows have a key that was not staged."""
    return sql.SQL("select count(*) from {} where {}").format(table, _unstaged(share))


def remove(table: sql.Identifier, share: Share) -> sql.Composed:
    """Delete the rows whose key was not staged: for a full compare, where everything was."""
    return sql.SQL("delete from {} where {}").format(table, _unstaged(share))


def unhide() -> sql.Composed:
    """Leave only rows to be merged among the staged ones: MERGE takes a table, and no condition on it."""
    return sql.SQL("delete from {} where {}").format(sql.Identifier(STAGED), HIDDEN)


def merge(table: sql.Identifier, share: Share) -> sql.Composed:
    """Update the rows that are there and insert the others."""
    others = [name for name in share.names if name not in share.key] or [share.key[0]]
    sets = [sql.SQL("{} = {}").format(sql.Identifier(name), sql.Identifier(STAGED, name)) for name in others]
    statement = sql.SQL(
        "merge into {} using {} on {} when matched then update set {} when not matched then insert ({}) values ({})"
    )
    return statement.format(
        table,
        sql.Identifier(STAGED),
        _same_key(share),
        sql.SQL(", ").join(sets),
        names(share.names),
        names(share.names, STAGED),
    )


def _unstaged(share: Share) -> sql.Composed:
    statement = sql.SQL("not exists (select 1 from {} where not {} and {})")
    return statement.format(sql.Identifier(STAGED), HIDDEN, _same_key(share))


def _same_key(share: Share) -> sql.Composed:
    return same(share.key, table=share.feed, other=STAGED)
