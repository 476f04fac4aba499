"""A Postgres table as a draft: its columns, comments and primary key, as the database itself tells them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from headrace.errors import FeedError, SettingsError
from headrace.feed import NAMED
from headrace.starter import guessing, personal, samples
from headrace.starter.draft import Draft, Guess, Said, declaration, personal_paths, remarks
from headrace.starter.types import Enum, Exact, ListOf, Member, Simple, Type

# A domain is what it is made of, with the length or precision that it was made with.
COLUMNS = """
select attname, attnotnull, col_description(attrelid, attnum),
       format_type(coalesce(nullif(typbasetype, 0), atttypid), case typtype when 'd' then typtypmod else atttypmod end),
       array(select enumlabel::text from pg_enum where enumtypid = atttypid order by enumsortorder)
from pg_attribute join pg_type on pg_type.oid = atttypid
where attrelid = {table}::regclass and attnum > 0 and not attisdropped
order by attnum
"""
KEY = """
select attname
from pg_index cross join unnest(indkey) with ordinality as place (attnum, number)
     join pg_attribute on attrelid = indrelid and pg_attribute.attnum = place.attnum
where indrelid = {table}::regclass and indisprimary
order by number
"""
COMMENT = "select obj_description({table}::regclass, 'pg_class')"

TYPES: Mapping[str, Type] = {
    "boolean": Simple("boolean"),
    "smallint": Simple("int"),
    "integer": Simple("int"),
    "bigint": Simple("long"),
    "real": Simple("float"),
    "double precision": Simple("double"),
    "text": Simple("string"),
    "citext": Simple("string"),
    "character varying": Simple("string"),
    "character": Simple("string"),
    "name": Simple("string"),
    "bytea": Simple("bytes"),
    "uuid": Simple("uuid"),
    "date": Simple("date"),
    "time without time zone": Simple("time"),
    "timestamp with time zone": Simple("timestamp"),
    "timestamp without time zone": Simple("local-timestamp"),
    "json": Simple("string"),
    "jsonb": Simple("string"),
}
DIGITS = 38
UNBOUNDED = Exact(DIGITS, 9)
"""For a numeric column that names no precision."""


@dataclass(frozen=True)
class Column:
    """A column as Postgres tells of it."""

    name: str
    required: bool
    comment: str | None
    type: str
    labels: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table as Postgres tells of it."""

    columns: Sequence[Column]
    key: Sequence[str]
    comment: str | None


def read(url: str, name: str) -> Table:
    """Ask the database; the name may be qualified and quoted as in SQL."""
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            connection.read_only = True
            table = sql.Literal(name)
            columns = connection.execute(sql.SQL(COLUMNS).format(table=table)).fetchall()
            key = connection.execute(sql.SQL(KEY).format(table=table)).fetchall()
            comment = connection.execute(sql.SQL(COMMENT).format(table=table)).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        fix = "Name it with its schema, such as public.orders, and quote capitals as in SQL: 'public.\"Orders\"'."
        raise FeedError(f"the database has no table {name}. {fix}") from error
    except (psycopg.errors.InvalidName, psycopg.errors.SyntaxError) as error:
        raise FeedError(f"{name} is no name of a table. Write schema.table, such as public.orders.") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise SettingsError(f"the database does not let us read {name}: {error.diag.message_primary}.") from error
    except psycopg.OperationalError as error:
        raise SettingsError(f"the database does not answer: {error}") from error
    return Table([Column(*row) for row in columns], [row[0] for row in key], comment[0] if comment else None)


def draft(name: str, table: Table, said: Said) -> Draft:
    """A feed of the table's rows, as a change capture would publish them."""
    left_out = samples.no_columns([column.name for column in table.columns])
    fields = [_member(column) for column in table.columns if column.name not in left_out]
    names = [field.name for field in fields]
    if not names:
        raise FeedError(f"the table: no column of it could be a field: a name has {NAMED}.")
    certain = [field.name for field in fields if field.certain]
    order = guessing.known(said.order, names, option="--order") or _order(fields)
    key = guessing.known(said.key, names, option="--key") or _key(name, table, certain)
    if not key or left_out & set(key):
        raise guessing.keyless(name, certain or names)
    guesses = [
        *([] if said.key else [Guess("key", f"{', '.join(key)}: {_source(table, key)}")]),
        *([] if said.order or not order else [Guess("order", f"{order[0]}: it is named like a count of versions")]),
        *(Guess(column, "left out: " + samples.left_out(column)) for column in sorted(left_out)),
        *_notes(table),
        *remarks(said, order=order, personal=list(personal_paths(fields))),
    ]
    doc = table.comment or f"{name}: one sentence that says what a row is."
    return Draft(name, doc, fields, declaration(said, key=key, order=order), guesses)


def _order(fields: Sequence[Member]) -> list[str]:
    whole = (Simple("int"), Simple("long"))
    found = guessing.order(field.name for field in fields if field.certain and field.type in whole)
    return [found] if found else []


def _key(feed: str, table: Table, certain: Sequence[str]) -> list[str]:
    found = guessing.key(certain, feed=feed)
    return list(table.key) or ([found] if found else [])


def _source(table: Table, key: Sequence[str]) -> str:
    return "the primary key" if list(table.key) == list(key) else "named like an id; the table has no primary key"


def _member(column: Column) -> Member:
    type_ = _type(column)
    pii = None if type_ == Simple("boolean") else personal.kind(column.name)
    return Member(column.name, type_, nullable=not column.required, doc=column.comment, pii=pii)


def _type(column: Column) -> Type:
    if column.labels:
        return Enum(tuple(column.labels))
    if column.type.endswith("[]"):
        return ListOf(_named(column.type.removesuffix("[]")), nullable=True)
    return _named(column.type)


def _named(type_: str) -> Type:
    """What Postgres calls a type; what is not known here is carried as its text."""
    plain, sizes = re.sub(r"\([^)]*\)", "", type_).strip(), re.findall(r"-?[0-9]+", type_)
    if plain != "numeric":
        return TYPES.get(plain, Simple("string"))
    if not sizes:
        return UNBOUNDED
    precision, scale = int(sizes[0]), int(sizes[1])
    return Exact(precision, scale) if 0 <= scale <= precision <= DIGITS else Simple("string")


def _notes(table: Table) -> Iterator[Guess]:
    for column in table.columns:
        plain = re.sub(r"\([^)]*\)|\[\]", "", column.type).strip()
        if column.type == "numeric":
            told = f"numeric without a precision: taken as {UNBOUNDED.precision} digits, {UNBOUNDED.scale} of them"
            yield Guess(column.name, f"{told} after the point")
        elif plain in ("json", "jsonb"):
            yield Guess(column.name, f"{plain}: carried as its text; name its parts as a record if readers need them")
        elif plain != "numeric" and plain not in TYPES and not column.labels:
            yield Guess(column.name, f"{column.type}: carried as its text")
