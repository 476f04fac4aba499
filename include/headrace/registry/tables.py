"""The registry's tables, as one transaction sees them: every statement of SQL is here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from headrace.feed import SchemaType
from headrace.registry.digest import digest_of, guid_of
from headrace.registry.registered import Registered, Use, Which
from headrace.registry.schema import Reference, SchemaId, SchemaText, Version
from headrace.registry.settings import Settings
from headrace.registry.subject import ANY_CONTEXT, GLOBAL_CONTEXT, Qualified, qualified, within

VERSIONS = sql.SQL("""
select subject, version, context, id, type, text, refs, metadata, rule_set, guid, is_deleted,
       (extract(epoch from registered_at) * 1000)::bigint as timestamp
from versions join schemas using (context, id)
""")

# Cheap, and enough to leave out what declares no feed: whether a text really does, its parser tells.
DECLARING = sql.SQL("""
where (subject, version) in (
    select subject, max(version) from versions join schemas using (context, id)
    where not is_deleted and context = '.' and (%(subject)s::text is null or subject = %(subject)s)
      and strpos(text, case type when 'AVRO' then '"feed"' else '"x-feed"' end) > 0
    group by subject
)
""")


@dataclass(frozen=True)
class Tables:
    """Questions to the tables and changes of them, all inside one transaction."""

    connection: psycopg.Connection

    @property
    def settings(self) -> Settings:
        return Settings(self.connection)

    # Versions

    def version(self, subject: str, version: int) -> Registered | None:
        return self._one("where subject = %s and version = %s", [subject, version])

    def latest(self, subject: str) -> Registered | None:
        """The last version that is not deleted."""
        return self._one("where subject = %s and not is_deleted order by version desc limit 1", [subject])

    def declaring(self, subject: str | None = None) -> list[Registered]:
        """For each subject, or one, the last live version that seems to declare a feed.

        A producer may register its own schema after the feed's, without the declaration: the feed goes on.
        """
        return self._many(DECLARING + sql.SQL('order by subject collate "C"'), {"subject": subject})

    def history(self, subject: str) -> list[Registered]:
        """Every version, deleted ones too, the oldest first."""
        return self._many("where subject = %s order by version", [subject])

    def with_content(self, subject: str, schema: SchemaText) -> list[Registered]:
        """The versions of a subject that are exactly this schema, the newest first."""
        return self._many("where subject = %s and digest = %s order by version desc", [subject, digest_of(schema)])

    def listed(
        self,
        prefix: str,
        *,
        also: Iterable[str] = (),
        which: Which = Which.ALL,
        begin: int = 0,
        most: int | None = None,
    ) -> list[Registered]:
        """The versions of the subjects that begin with a prefix and of some others; `:*:` stands for any context."""
        condition, values = _begins_with(prefix)
        statement = sql.SQL(
            "where (({}) or subject = any(%s)) and is_deleted = any(%s) "
            'order by subject collate "C", version offset %s limit %s'
        )
        return self._many(statement.format(condition), [*values, list(also), which.states, begin, most])

    def latest_listed(
        self, prefix: str, *, also: Iterable[str] = (), which: Which, begin: int = 0, most: int | None = None
    ) -> list[Registered]:
        """The last of them for each subject."""
        condition, values = _begins_with(prefix)
        statement = sql.SQL(
            "where (subject, version) in (select subject, max(version) from versions "
            "where (({}) or subject = any(%s)) and is_deleted = any(%s) "
            'group by subject) order by subject collate "C" offset %s limit %s'
        )
        return self._many(statement.format(condition), [*values, list(also), which.states, begin, most])

    def subjects(self, prefix: str) -> list[tuple[str, bool]]:
        """The subjects that begin with a prefix, each with whether all of its versions are deleted."""
        condition, values = _begins_with(prefix)
        statement = sql.SQL(
            'select subject, bool_and(is_deleted) from versions where {} group by subject order by subject collate "C"'
        )
        return self._rows(statement.format(condition), values)

    def has_subject(self, subject: str, *, deleted: bool) -> bool:
        """Whether a subject, or any of a context where only that is named, has a version."""
        asked = qualified(subject)
        context = asked.context if asked.is_context else None
        found = self._rows(
            "select 1 from versions where (subject = %s or context = %s or %s) and (%s or not is_deleted) limit 1",
            [subject, context, context == GLOBAL_CONTEXT, deleted],
        )
        return bool(found)

    # Ids

    def with_id(self, context: str, id_: int) -> Registered | None:
        """A version with this id, of the first subject that has it."""
        return self._one(
            'where context = %s and id = %s order by subject collate "C", version desc limit 1', [context, id_]
        )

    def with_id_of(self, subject: str, id_: int) -> Registered | None:
        """The last version of a subject with this id."""
        return self._one("where subject = %s and id = %s order by version desc limit 1", [subject, id_])

    def uses_of_id(self, context: str, id_: int) -> list[Registered]:
        """Every version that has this id, the last one of each subject."""
        return self._many(
            "where (subject, version) in (select subject, max(version) from versions "
            'where context = %s and id = %s group by subject) order by subject collate "C"',
            [context, id_],
        )

    def ids_of_guid(self, guid: UUID) -> list[Use]:
        rows = self._rows('select context, id from schemas where guid = %s order by context collate "C", id', [guid])
        return [Use(*row) for row in rows]

    def last_id(self, context: str) -> int:
        rows = self._rows("select last_id from contexts where name = %s", [context])
        return rows[0][0] if rows else 0

    def id_of(self, context: str, schema: SchemaText) -> SchemaId | None:
        """The id that this content has in a context."""
        rows = self._rows(
            "select id from schemas where context = %s and digest = %s and not is_twin", [context, digest_of(schema)]
        )
        return SchemaId(rows[0][0]) if rows else None

    def schema(self, context: str, id_: int) -> SchemaText | None:
        rows = self._rows(
            "select type, text, refs, metadata, rule_set from schemas where context = %s and id = %s", [context, id_]
        )
        return _schema(*rows[0]) if rows else None

    def next_id(self, context: str) -> SchemaId:
        rows = self._rows("update contexts set last_id = last_id + 1 where name = %s returning last_id", [context])
        return SchemaId(rows[0][0])

    def add_schema(self, context: str, id_: int, schema: SchemaText) -> None:
        """Keep a schema under an id; the constraints refuse what is there already."""
        self.connection.execute(
            "insert into schemas (context, id, type, text, refs, metadata, rule_set, guid, digest, is_twin) values "
            "(%(context)s, %(id)s, %(type)s, %(text)s, %(refs)s, %(metadata)s, %(rules)s, %(guid)s, %(digest)s, exists "
            "(select from schemas where context = %(context)s and digest = %(digest)s and not is_twin))",
            {
                "context": context,
                "id": id_,
                "type": schema.type,
                "text": schema.text,
                "refs": Jsonb([vars(reference) for reference in schema.references]),
                "metadata": None if schema.metadata is None else Jsonb(schema.metadata),
                "rules": None if schema.rule_set is None else Jsonb(schema.rule_set),
                "guid": guid_of(schema),
                "digest": digest_of(schema),
            },
        )
        self.connection.execute("update contexts set last_id = greatest(last_id, %s) where name = %s", [id_, context])
        parent = Qualified(context, "").prefix
        for reference in schema.references:
            self.connection.execute(
                "insert into uses (context, id, subject, version) values (%s, %s, %s, %s) on conflict do nothing",
                [context, id_, within(parent, reference.subject), reference.version],
            )

    # Changes of versions

    def register(
        self, subject: str, schema: SchemaText, *, version: int | None = None, id_: int | None = None
    ) -> Registered:
        """Give a subject a version of this schema: the next one, with the id that the content has, unless told."""
        context = qualified(subject).context
        self.add_context(context)
        kept = self.id_of(context, schema) if id_ is None else id_
        if kept is None or self.schema(context, kept) is None:
            kept = self.next_id(context) if kept is None else kept
            self.add_schema(context, kept, schema)
        return self.add_version(subject, version or self.next_version(subject), id_=kept)

    def next_version(self, subject: str) -> int:
        number: int = self._rows("select coalesce(max(version), 0) + 1 from versions where subject = %s", [subject])[0][
            0
        ]
        return number

    def add_version(self, subject: str, version: int, *, id_: int) -> Registered:
        """Give a subject a version; a deleted one of the same number makes room, as an import may ask."""
        self.connection.execute(
            "insert into versions (subject, version, context, id) values (%s, %s, %s, %s) "
            "on conflict (subject, version) do update set "
            "context = excluded.context, id = excluded.id, is_deleted = false, registered_at = now()",
            [subject, version, qualified(subject).context, id_],
        )
        added = self.version(subject, version)
        assert added is not None, "the version was added in this very transaction"
        return added

    def delete_versions(self, subject: str, versions: Sequence[int]) -> None:
        """Mark versions as deleted; records written with them can still be read."""
        self.connection.execute(
            "update versions set is_deleted = true where subject = %s and version = any(%s)", [subject, list(versions)]
        )

    def remove_versions(self, subject: str, versions: Sequence[int]) -> None:
        """Forget versions, and the schemas that no version has any more."""
        removed = self._rows(
            "delete from versions where subject = %s and version = any(%s) returning context, id",
            [subject, list(versions)],
        )
        for context, id_ in set(removed):
            self.remove_orphan(context, id_)

    def remove_orphan(self, context: str, id_: int) -> None:
        """Forget a schema that no version has."""
        self.connection.execute(
            "delete from schemas where context = %s and id = %s and not exists "
            "(select from versions where versions.context = schemas.context and versions.id = schemas.id)",
            [context, id_],
        )

    # References

    def referrers(self, subject: str, version: int, *, deleted: bool) -> list[Use]:
        """The ids whose schemas refer to a version; those with deleted versions only count if asked for."""
        rows = self._rows(
            "select distinct uses.context, uses.id from uses join versions using (context, id) "
            "where uses.subject = %s and uses.version = %s and (%s or not is_deleted)",
            [subject, version, deleted],
        )
        return sorted(Use(*row) for row in rows)

    def referring_subjects(self, subject: str, version: int, *, deleted: bool) -> set[str]:
        rows = self._rows(
            "select distinct versions.subject from uses join versions using (context, id) "
            "where uses.subject = %s and uses.version = %s and (%s or not is_deleted)",
            [subject, version, deleted],
        )
        return {row[0] for row in rows}

    # Contexts

    def contexts(self) -> list[str]:
        """Every context that was registered in, the default one first."""
        rows = self._rows('select name from contexts where is_listed order by name collate "C"', [])
        return [row[0] for row in rows]

    def add_context(self, context: str) -> None:
        self.connection.execute(
            "insert into contexts (name) values (%s) on conflict (name) do update set is_listed = true", [context]
        )

    def hide_context(self, context: str) -> None:
        """Take a context off the list; its ids go on counting if it is used again."""
        self.connection.execute("update contexts set is_listed = false where name = %s and name <> '.'", [context])

    # Marks

    def mark(self) -> int:
        mark: int = self._rows("select mark from marks", [])[0][0]
        return mark

    def move_mark(self) -> None:
        """Note that something changed, if anything did: only then does Postgres give the transaction a number."""
        self.connection.execute("update marks set mark = mark + 1 where pg_current_xact_id_if_assigned() is not null")

    def _rows(self, statement: LiteralString | sql.Composed, values: Sequence[Any]) -> list[Any]:
        return self.connection.execute(statement, values).fetchall()

    def _one(self, condition: LiteralString, values: Sequence[Any]) -> Registered | None:
        found = self._many(condition, values)
        return found[0] if found else None

    def _many(
        self, condition: LiteralString | sql.Composable, values: Sequence[Any] | Mapping[str, Any]
    ) -> list[Registered]:
        rest = condition if isinstance(condition, sql.Composable) else sql.SQL(condition)
        with self.connection.cursor(row_factory=dict_row) as cursor:
            return [_registered(row) for row in cursor.execute(VERSIONS + rest, values)]


def _begins_with(prefix: str) -> tuple[sql.SQL, list[str]]:
    """The condition on `versions` that a subject begins with a prefix, and its values."""
    if prefix.startswith(ANY_CONTEXT):
        name = prefix.removeprefix(ANY_CONTEXT)
        wanted = "starts_with(subject, case context when '.' then '' else ':' || context || ':' end || %s)"
        return sql.SQL(wanted), [name]
    if prefix.startswith(":.") and prefix.count(":") == 1:
        # Not closed by a colon: every context that begins so.
        return sql.SQL("starts_with(context, %s)"), [prefix[1:]]
    return sql.SQL("context = %s and starts_with(subject, %s)"), [qualified(prefix).context, str(qualified(prefix))]


def _schema(type_: SchemaType, text: str, refs: Any, metadata: Any, rule_set: Any) -> SchemaText:
    return SchemaText(type_, text, tuple(Reference(**each) for each in refs), metadata, rule_set)


def _registered(row: dict[str, Any]) -> Registered:
    return Registered(
        subject=row["subject"],
        version=Version(row["version"]),
        id=SchemaId(row["id"]),
        schema=_schema(row["type"], row["text"], row["refs"], row["metadata"], row["rule_set"]),
        guid=row["guid"],
        timestamp=row["timestamp"],
        is_deleted=row["is_deleted"],
    )
