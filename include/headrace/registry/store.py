"""The registry's memory in Postgres: one writer at a time, any number of readers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from psycopg import sql

from headrace.database import Database
from headrace.feed import SchemaType
from headrace.registry.ddl import CREATE
from headrace.registry.pool import Pool
from headrace.registry.references import standalone
from headrace.registry.registered import Registered, Which
from headrace.registry.schema import SchemaText
from headrace.registry.subject import ANY_CONTEXT
from headrace.registry.tables import Tables
from headrace.registry.writers import Writers

__all__ = ["Registered", "Store"]

# One lock for every change, in all servers: registering looks at other subjects' content and references too, and
# marks then rise in the order in which changes are seen. Confluent's registry has one leader with one lock as well.
LOCK = "select pg_advisory_xact_lock(hashtext('headrace.registry'))"


@dataclass(frozen=True)
class Store:
    """The registry's tables in one database."""

    database: Database
    namespace: str = "registry"
    """The Postgres schema that holds the tables."""
    _pool: Pool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pool", Pool(self.database, self.namespace))

    def prepare(self) -> None:
        """Make the tables; two servers may do so at once, and again."""
        with self._pool.transaction() as connection:
            connection.execute(LOCK)
            connection.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(self.namespace)))
            connection.execute(CREATE)

    def close(self) -> None:
        """Close its connections; a later use opens new ones."""
        self._pool.close()

    @contextmanager
    def reading(self) -> Iterator[Tables]:
        """The tables as they are."""
        with self._pool.transaction() as connection:
            yield Tables(connection)

    @contextmanager
    def writing(self) -> Iterator[Tables]:
        """The tables to change, alone; a change that raises leaves nothing behind."""
        with self._pool.transaction() as connection:
            connection.execute(LOCK)
            tables = Tables(connection)
            yield tables
            tables.move_mark()

    def register(self, subject: str, schema_type: SchemaType, *, text: str) -> Registered:
        """The subject's version of this very text, a new one if it has none; nothing is parsed or compared."""
        schema = SchemaText(schema_type, text)
        with self.writing() as tables:
            same = [version for version in tables.with_content(subject, schema) if not version.is_deleted]
            return same[0] if same else tables.register(subject, schema)

    def mark(self) -> int:
        """A number that rises with each change: the same number, the same registry."""
        with self.reading() as tables:
            return tables.mark()

    def latest(self) -> list[Registered]:
        """The last version, that is not deleted, of every subject."""
        with self.reading() as tables:
            return tables.latest_listed(ANY_CONTEXT, which=Which.LIVE)

    def declaring(self) -> list[Registered]:
        """For every subject that declares a feed, the last version that does."""
        with self.reading() as tables:
            return tables.declaring()

    def writers(self, subject: str) -> Writers:
        """Every schema that a record may have been written with, each standing alone; deleted versions too."""
        with self.reading() as tables:
            every = tables.history(subject)
            return Writers(
                {each.id: standalone(tables, each) for each in every},
                guids={each.guid.hex.upper(): each.id for each in every},
                versions={each.version: each.id for each in every},
                latest=next((each.id for each in reversed(every) if not each.is_deleted), None),
            )
