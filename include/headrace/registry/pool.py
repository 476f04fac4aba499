"""Open connections to one database, kept for the next request: connecting costs ten times a look-up."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from headrace.database import Database

# A request that waits longer for another's writing is told so, rather than holding a thread for ever.
OPTIONS = "-c lock_timeout=30s -c idle_in_transaction_session_timeout=60s"
KEPT = 8


@dataclass(frozen=True)
class Pool:
    """Connections that nobody uses at the moment; a forked process starts with none of its parent's."""

    database: Database
    namespace: str
    _idle: deque[tuple[int, psycopg.Connection]] = field(
        default_factory=lambda: deque(maxlen=KEPT), repr=False, compare=False
    )

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection]:
        """A connection inside a transaction; it is kept afterwards unless it broke."""
        connection = self._begin()
        try:
            yield connection
            connection.commit()
        except BaseException:
            if not connection.closed:
                connection.rollback()
            raise
        finally:
            self._keep(connection)

    def close(self) -> None:
        """Close what is open and unused."""
        while self._idle:
            self._idle.pop()[1].close()

    def _begin(self) -> psycopg.Connection:
        while self._idle:
            try:
                process, connection = self._idle.pop()
            except IndexError:
                break
            # The database may have been restarted since; then the transaction does not begin, and nothing is lost.
            if process == os.getpid() and _begins(connection):
                return connection
        connection = psycopg.connect(self.database.url(), options=f"-c search_path={self.namespace} {OPTIONS}")
        connection.execute("select 1")
        return connection

    def _keep(self, connection: psycopg.Connection) -> None:
        if connection.closed or len(self._idle) >= KEPT:
            connection.close()
        else:
            self._idle.append((os.getpid(), connection))


def _begins(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("select 1")
    except psycopg.OperationalError:
        connection.close()
        return False
    return True
