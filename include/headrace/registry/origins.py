"""Origins: which versions were registered from feed files.

The feed of a file goes when its file goes; that of a version which somebody registered otherwise stays until its
subject is deleted.
"""

from collections.abc import Collection
from dataclasses import dataclass

from psycopg import sql

from headrace.registry.store import Store
from headrace.registry.tables import DECLARING, Tables

HEADINGS = sql.SQL("""
select subject, version, id, origins.subject is not null, registered_at > now() - interval '3 seconds'
from versions left join origins using (subject, version, id)
""")

Origin = tuple[str, int, int]
"""Subject, version and id: after a subject was deleted for good, a version's number is given out again."""


@dataclass(frozen=True)
class Heading:
    """The last version of a subject that declares a feed, without its schema: cheap enough to ask for all of them."""

    subject: str
    version: int
    id: int
    from_file: bool
    is_recent: bool = False
    """Whether it was registered seconds ago, so that a file's registration may not be noted yet."""


def headings(tables: Tables) -> list[Heading]:
    """Of every subject that declares a feed."""
    return [Heading(*row) for row in tables.connection.execute(HEADINGS + DECLARING, {"subject": None})]


def note(store: Store, from_files: Collection[Origin]) -> None:
    """Remember that versions came from feed files; what is known already is no change of the registry."""
    with store.reading() as tables:
        new = frozenset(from_files) - noted(tables)
    if new:
        with store.writing() as tables, tables.connection.cursor() as cursor:
            cursor.executemany("insert into origins values (%s, %s, %s) on conflict do nothing", sorted(new))


def noted(tables: Tables) -> frozenset[Origin]:
    """Every version that came from a feed file."""
    return frozenset(tables.connection.execute("select subject, version, id from origins").fetchall())
