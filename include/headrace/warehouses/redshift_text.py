"""Texts inside Redshift's statements: quoted as Redshift reads them, which is not as Postgres does."""

from collections.abc import Sequence

from psycopg import sql


def literal(text: str) -> sql.SQL:
    """A text in quotes: in Redshift a backslash escapes what follows, and nothing is written E'…'."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return sql.SQL(f"'{escaped}'")


def names(columns: Sequence[str], table: str | None = None) -> sql.Composed:
    """Columns with commas between."""
    return sql.SQL(", ").join(sql.Identifier(table, name) if table else sql.Identifier(name) for name in columns)


def same(key: Sequence[str], *, table: str, other: str) -> sql.Composed:
    """That two tables' rows have the same key. Redshift's MERGE and DELETE know no alias of the table they change."""
    pairs = [sql.SQL("{} = {}").format(sql.Identifier(table, name), sql.Identifier(other, name)) for name in key]
    return sql.SQL(" and ").join(pairs)
