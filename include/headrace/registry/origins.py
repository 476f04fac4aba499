"""Origins: which versions were registered from feed files. The feed of a file goes when its file goes; that of a
version which somebody registered otherwise stays until its subject is deleted."""

from headrace.registry.registered import Registered
from headrace.registry.tables import Tables

CREATE = """
create table if not exists origins (
    subject text not null,
    version integer not null,
    id integer not null,
    primary key (subject, version, id)
)
"""

Origin = tuple[str, int, int]
"""Subject, version and id: after a subject was deleted for good, a version's number is given out again."""


def note(tables: Tables, registered: Registered) -> None:
    """Remember that a version came from a feed file."""
    tables.connection.execute(CREATE)
    tables.connection.execute("insert into origins values (%s, %s, %s) on conflict do nothing", of(registered))


def noted(tables: Tables) -> frozenset[Origin]:
    """Every version that came from a feed file."""
    tables.connection.execute(CREATE)
    return frozenset(tables.connection.execute("select subject, version, id from origins").fetchall())


def of(registered: Registered) -> Origin:
    return registered.subject, registered.version, registered.id
