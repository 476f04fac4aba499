"""Views of analysts': what stands on a table is taken down while the table changes, and put up again as it was.

Postgres refuses to change the type of a column that a view shows, and to drop a table that one stands on.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from psycopg import sql

Query = Callable[[sql.Composable, Sequence[Any]], pa.Table]

# A view's rule depends on what the view reads; views that stand on views come after them.
STANDING = """
with recursive standing as (
    select {table}::regclass::oid as oid, 0 as depth
    union all
    select rule.ev_class, standing.depth + 1
    from standing
    join pg_depend depend on depend.refobjid = standing.oid
        and depend.classid = 'pg_rewrite'::regclass and depend.refclassid = 'pg_class'::regclass
    join pg_rewrite rule on rule.oid = depend.objid and rule.ev_class <> standing.oid
), deepest as (select oid, max(depth) as depth from standing where depth > 0 group by oid)
select
    space.nspname as schema,
    relation.relname as name,
    relation.relkind::text as kind,
    pg_get_viewdef(relation.oid) as definition,
    pg_get_userbyid(relation.relowner) as owner,
    pg_has_role(relation.relowner, 'usage') and has_schema_privilege(space.oid, 'create') as ours,
    obj_description(relation.oid, 'pg_class') as comment,
    array_to_string(relation.reloptions, ', ') as options,
    (select json_agg(pg_get_indexdef(index.indexrelid) order by index.indexrelid)
        from pg_index index where index.indrelid = relation.oid)::text as indexes,
    (select json_agg(format('grant %s on %s to %s%s', acl.privilege_type, relation.oid::regclass,
            case acl.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(acl.grantee)) end,
            case when acl.is_grantable then ' with grant option' else '' end))
        from aclexplode(relation.relacl) acl where acl.grantee <> relation.relowner)::text as grants,
    (select json_agg(told) from (
        select format('comment on column %s.%I is %L', relation.oid::regclass, attribute.attname, noted) as told
            from pg_attribute attribute, col_description(relation.oid, attribute.attnum) noted
            where attribute.attrelid = relation.oid and noted is not null
        union all
        select format('grant %s (%I) on %s to %s%s', acl.privilege_type, attribute.attname, relation.oid::regclass,
            case acl.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(acl.grantee)) end,
            case when acl.is_grantable then ' with grant option' else '' end)
            from pg_attribute attribute, aclexplode(attribute.attacl) acl where attribute.attrelid = relation.oid
    ) of_columns)::text as columns,
    relation.relkind in ('v', 'm')
        and not exists (select from pg_trigger own where own.tgrelid = relation.oid)
        and not exists (select from pg_rewrite own where own.ev_class = relation.oid and own.rulename <> '_RETURN')
        and not exists (select from pg_attrdef own where own.adrelid = relation.oid) as whole
from deepest
join pg_class relation on relation.oid = deepest.oid
join pg_namespace space on space.oid = relation.relnamespace
order by deepest.depth, relation.oid
"""

USED = """
select distinct attribute.attname as name
from pg_depend depend
join pg_rewrite rule on rule.oid = depend.objid and rule.ev_class <> depend.refobjid
join pg_attribute attribute on attribute.attrelid = depend.refobjid and attribute.attnum = depend.refobjsubid
where depend.classid = 'pg_rewrite'::regclass and depend.refclassid = 'pg_class'::regclass
    and depend.refobjid = {table}::regclass
"""
"""The columns of a table that views show or ask by."""

KINDS = {"v": sql.SQL("view"), "m": sql.SQL("materialized view")}


@dataclass(frozen=True)
class View:
    """One view, as far as it takes to make it again."""

    schema: str
    name: str
    kind: str
    definition: str
    owner: str
    ours: bool
    """Whether we may make it again as it was."""
    comment: str | None
    options: str | None
    indexes: str | None
    """The statements that make them, as JSON; the same for grants, and for what is said and granted of columns."""
    grants: str | None
    columns: str | None
    whole: bool
    """Whether it has nothing that we could not make again: triggers, rules and defaults of its own."""

    @property
    def called(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)


def standing(query: Query, table: sql.Identifier) -> list[View]:
    """The views that stand on a table, each before those that stand on it."""
    statement = sql.SQL(STANDING).format(table=sql.Literal(table.as_string()))
    return [View(**row) for row in query(statement, ()).to_pylist()]


def used(query: Query, table: sql.Identifier) -> set[str]:
    """The columns of a table that views stand on."""
    return set(query(sql.SQL(USED).format(table=sql.Literal(table.as_string())), ()).column("name").to_pylist())


def taken_down(views: Sequence[View]) -> Iterator[sql.Composable]:
    """The statements that take views down, the highest first."""
    for view in reversed(views):
        yield sql.SQL("drop {} {}").format(KINDS[view.kind], view.identifier)


def put_up(view: View) -> Iterator[sql.Composable]:
    """The statements that put a view up again: its rows, options, owner, comments, indexes and grants."""
    options = sql.SQL(" with ({})").format(sql.SQL(view.options)) if view.options else sql.SQL("")
    definition = sql.SQL(view.definition.rstrip().rstrip(";"))
    kind = KINDS[view.kind]
    yield sql.SQL("create {} {}{} as {}").format(kind, view.identifier, options, definition)
    yield from _statements(view.indexes)
    if view.comment:
        yield sql.SQL("comment on {} {} is {}").format(kind, view.identifier, sql.Literal(view.comment))
    yield from _statements(view.grants)
    yield from _statements(view.columns)
    yield sql.SQL("alter {} {} owner to {}").format(kind, view.identifier, sql.Identifier(view.owner))


def _statements(listed: str | None) -> Iterator[sql.SQL]:
    yield from map(sql.SQL, json.loads(listed or "[]"))
