"""Open connections to one database, kept for the next request: connecting costs ten times a look-up."""

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from headrace.database import Database

# A request that waits longer for another's writing is told so, rather than holding a thread for ever.
OPTIONS = "-c lock_timeout=30s -c idle_in_transaction_session_timeout=60s"
MOST = 16
"""The most connections of one process; more requests at once wait for one another."""


@dataclass(frozen=True)
class Pool:
    """Connections that nobody uses at the moment; a forked process starts with none of its parent's."""

    database: Database
    namespace: str
    _idle: deque[tuple[int, psycopg.Connection]] = field(default_factory=deque, repr=False, compare=False)
    _free: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MOST), repr=False, compare=False)

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection]:
        """A connection inside a transaction; it is kept afterwards unless it broke."""
        with self._free:
            connection = self._begin()
            try:
                yield connection
                connection.commit()
            except BaseException:
                if not connection.closed:
                    connection.rollback()
                raise
            finally:
                if not connection.closed:
                    self._idle.append((os.getpid(), connection))

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
        return psycopg.connect(self.database.url(), options=f"-c search_path={self.namespace} {OPTIONS}")


def _begins(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("select 1")
    except psycopg.OperationalError:
        connection.close()
        return False
    return True
