"""A feed's table in Redshift: its columns, its sort and distribution keys, and how it becomes another one.

Redshift changes no column's type but a text's length. A table whose columns widen, whose masks give other types, or
whose keys are others, is made anew beside the old one; columns are added, renamed and emptied in place.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from psycopg import sql

from headrace.share import Share
from headrace.warehouses.changes import Changes, Standing, changes_of
from headrace.warehouses.redshift_text import literal, names
from headrace.warehouses.redshift_types import column_type, has_order

SPELLED = {
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
    "time without time zone": "time",
}
WORDS = {"character varying": "varchar", "binary varying": "varbyte", "character": "char", "numeric": "decimal"}
"""What Redshift calls our types when it is asked; the longer words first."""
MOST_SORT_COLUMNS = 400

COLUMNS = """
select attribute.attname, format_type(attribute.atttypid, attribute.atttypmod)
from pg_class relation
join pg_namespace space on space.oid = relation.relnamespace
join pg_attribute attribute on attribute.attrelid = relation.oid
where space.nspname = %s and relation.relname = %s and attribute.attnum > 0 and not attribute.attisdropped
order by attribute.attnum
"""

VIEWS = """
select distinct space.nspname, dependent.relname
from pg_class relation
join pg_namespace home on home.oid = relation.relnamespace
join pg_depend depend on depend.refobjid = relation.oid
join pg_rewrite rule on rule.oid = depend.objid
join pg_class dependent on dependent.oid = rule.ev_class
join pg_namespace space on space.oid = dependent.relnamespace
where home.nspname = %s and relation.relname = %s and dependent.oid <> relation.oid
order by 1, 2
"""
"""Views that are bound to a table; late-binding ones are not, and outlive it."""


@dataclass(frozen=True)
class Shape:
    """What is recorded of a table, since Redshift's catalog does not tell all of it alike everywhere."""

    key: tuple[str, ...]
    masks: dict[str, str]
    distribution: str | None
    sort: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps(vars(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Shape":
        read = json.loads(text)
        return cls(tuple(read["key"]), read["masks"], read["distribution"], tuple(read["sort"]))

    def renamed(self, by: dict[str, str]) -> "Shape":
        """The same after columns were renamed."""

        def new(name: str) -> str:
            return by.get(name, name)

        return Shape(
            tuple(map(new, self.key)),
            {new(name): mask for name, mask in self.masks.items()},
            new(self.distribution) if self.distribution else None,
            tuple(map(new, self.sort)),
        )


def shape(share: Share) -> Shape:
    """How a share's table is laid out: rows of one key on one node, sorted as the feed says."""
    usable = [name for name, type_ in share.types.items() if has_order(type_)]
    wanted = [name for name in (share.distribution, share.key[0]) if name in usable]
    sort = tuple(name for name in share.sort if name in usable)[:MOST_SORT_COLUMNS]
    masks: dict[str, str] = dict(share.masks)
    return Shape(share.key, masks, wanted[0] if wanted else None, sort)


def vacuum(table: sql.Identifier) -> sql.Composed:
    """Leave nothing of what was deleted: by default a twentieth of the rows may be dead ones."""
    return sql.SQL("vacuum delete only {} to 100 percent").format(table)


def keys(wanted: Shape) -> sql.Composed:
    """The distribution and sort keys, as CREATE TABLE takes them."""
    placed = sql.SQL("diststyle auto").format()
    if wanted.distribution:
        placed = sql.SQL("diststyle key distkey ({})").format(sql.Identifier(wanted.distribution))
    if not wanted.sort:
        return placed
    return placed + sql.SQL(" sortkey ({})").format(names(wanted.sort))


def definition(table: sql.Identifier, share: Share) -> sql.Composed:
    """The table; its primary key is only told to the planner, nothing enforces it."""
    create = sql.SQL("create table {} ({}, primary key ({})) {}")
    return create.format(table, columns(share), names(share.key), keys(shape(share)))


def columns(share: Share) -> sql.Composed:
    parts = [
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(column_type(type_)))
        for name, type_ in share.types.items()
    ]
    return sql.SQL(", ").join(parts)


def spelled(type_: str) -> str:
    """A type in our words."""
    if type_ in SPELLED:
        return SPELLED[type_]
    for told, ours in WORDS.items():
        if type_.startswith(f"{told}("):
            return re.sub(r",(?=\d)", ", ", type_.replace(told, ours, 1))
    return type_


def changes(standing: Standing, share: Share) -> Changes:
    """How a table becomes the share's."""
    return changes_of(standing, share, {name: column_type(type_) for name, type_ in share.types.items()})


def alterations(table: sql.Identifier, found: Changes, share: Share) -> Iterator[sql.Composed]:
    """The statements that rename and add columns; ALTER TABLE adds one at a time."""
    for old, new in found.renamed.items():
        rename = sql.SQL("alter table {} rename column {} to {}")
        yield rename.format(table, sql.Identifier(old), sql.Identifier(new))
    yield from additions(table, {name: column_type(share.types[name]) for name in found.added})


def additions(table: sql.Identifier, types: Mapping[str, str]) -> Iterator[sql.Composed]:
    """Empty columns."""
    for name, type_ in types.items():
        yield sql.SQL("alter table {} add column {} {}").format(table, sql.Identifier(name), sql.SQL(type_))


def touch(table: sql.Identifier) -> sql.Composed:
    """Wait for whoever writes to the table or has locked it: from then on until the end it is ours to write to."""
    return sql.SQL("delete from {} where false").format(table)


def look(table: sql.Identifier) -> sql.Composed:
    """Wait for whoever has locked the table: from then on until the end it is ours to read."""
    return sql.SQL("select 1 from {} where false").format(table)


def emptied(table: sql.Identifier, found: Changes) -> Iterator[sql.Composed]:
    """The statements that empty columns which are shared no more."""
    for name in found.emptied:
        update = sql.SQL("update {0} set {1} = null where {1} is not null")
        yield update.format(table, sql.Identifier(name))


def descriptions(table: sql.Identifier, share: Share) -> Iterator[sql.Composed]:
    """Comments from the feed file."""
    yield sql.SQL("comment on table {} is {}").format(table, literal(share.doc))
    for column in share.columns:
        comment = sql.SQL("comment on column {}.{} is {}")
        yield comment.format(table, sql.Identifier(column.name), literal(column.doc or ""))
