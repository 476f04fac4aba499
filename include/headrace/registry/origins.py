"""Origins: which versions were registered from feed files.

The feed of a file goes when its file goes; that of a version which somebody registered otherwise stays until its
subject is deleted.
"""

from collections.abc import Collection

from headrace.registry.registered import Registered
from headrace.registry.store import Store
from headrace.registry.tables import Tables

Origin = tuple[str, int, int]
"""Subject, version and id: after a subject was deleted for good, a version's number is given out again."""


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


def of(registered: Registered) -> Origin:
    return registered.subject, registered.version, registered.id
