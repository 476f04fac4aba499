"""Leases: whose turn it is to work on a table, so that runs, backfills and upkeep wait instead of undoing each other.

A courtesy that saves work, not a lock: the fence is the compare-and-swap of each commit. A lease that runs out while
its holder still works costs somebody a second try, and nothing else. Only the database's clock is asked.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import class_row

from headrace import away
from headrace.database import Database
from headrace.errors import HeadraceError, TurnTaken

log = logging.getLogger(__name__)

LASTING = timedelta(minutes=2)
"""How long a lease outlives its holder's last sign of life."""

SIGNS = 6
"""Signs of life within the time that a lease lasts: one that comes late, or not at all, does no harm."""

PAUSES = (0.05, 1.0)
"""Between two questions whose turn it is: the first pause and the longest, in seconds."""

PATIENCE: dict[str, Any] = {
    "connect_timeout": 10,
    "tcp_user_timeout": 10_000,
    "options": "-c statement_timeout=10000 -c lock_timeout=5000 -c idle_in_transaction_session_timeout=10000",
}
"""How long the database may be silent: well below what a lease lasts."""

# Two that create a table at once make one of them fail, IF NOT EXISTS or not: they take turns by this number.
CREATION = 0x1EA5E

CREATE = """
CREATE TABLE IF NOT EXISTS headrace_leases (
    name text PRIMARY KEY,
    holder text NOT NULL,
    doing text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL
)
"""

TAKE = """
INSERT INTO headrace_leases AS held (name, holder, doing, since, until)
VALUES (%(name)s, %(holder)s, %(doing)s, clock_timestamp(), clock_timestamp() + %(lasting)s)
ON CONFLICT (name) DO UPDATE SET
    holder = excluded.holder,
    doing = excluded.doing,
    since = CASE WHEN held.holder = excluded.holder THEN held.since ELSE excluded.since END,
    until = excluded.until
WHERE held.holder = excluded.holder OR held.until <= clock_timestamp()
RETURNING held.holder, held.doing, held.since, held.until
"""

RELEASE = """
DELETE FROM headrace_leases WHERE name = %(name)s AND holder = %(holder)s
RETURNING holder, doing, since, until
"""

HOLDER = """
SELECT holder, doing, since, until FROM headrace_leases WHERE name = %(name)s AND until > clock_timestamp()
"""


@dataclass(frozen=True)
class Holding:
    """Who has a turn, what for, since when, and until when if no sign of life comes."""

    holder: str
    doing: str
    since: datetime
    until: datetime


@dataclass(frozen=True)
class Leases:
    """The turns kept in one database; `layout.lease` names them."""

    database: Database

    def take(self, name: str, *, holder: str, doing: str = "", lasting: timedelta = LASTING) -> bool:
        """Take a turn that is free or has run out, or go on with one's own; False when somebody else has it."""
        return self._ask(TAKE, name=name, holder=holder, doing=doing, lasting=lasting) is not None

    def release(self, name: str, *, holder: str) -> bool:
        """Give a turn back; False, and nothing changes, when it is not the holder's."""
        return self._ask(RELEASE, name=name, holder=holder) is not None

    def holder(self, name: str) -> Holding | None:
        """Who has the turn now."""
        return self._ask(HOLDER, name=name)

    def _ask(self, question: str, **values: Any) -> Holding | None:
        base = self.database
        try:
            # A connection for each question: they are few, and none is left open in a process that is forked or killed.
            with psycopg.connect(base.url(), **PATIENCE, row_factory=class_row(Holding)) as connection:
                try:
                    return connection.execute(question, values).fetchone()
                except psycopg.errors.UndefinedTable:
                    connection.rollback()
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", [CREATION])
                    connection.execute(CREATE)
                    return connection.execute(question, values).fetchone()
        except psycopg.Error as error:
            where = f"{base.host}:{base.port}/{base.name}"
            raise away.of_postgres(error, state=error.sqlstate, where=where, kept=away.BEFORE) from error


@contextmanager
def turn(
    leases: Leases,
    name: str,
    *,
    holder: str,
    doing: str,
    patience: timedelta,
    keep: timedelta | None = None,
    lasting: timedelta = LASTING,
) -> Iterator[None]:
    """Have the turn inside: waited for with `patience`, kept by signs of life, given back at the end.

    With `keep`, a success leaves it to the holder for that long, so that its next task goes on with it.
    """

    def renew(for_: timedelta) -> bool:
        return leases.take(name, holder=holder, doing=doing, lasting=for_)

    _await(lambda: renew(lasting), taken=lambda: _taken(leases, name), patience=patience)
    kept = False
    try:
        with _signs_of_life(lambda: renew(lasting), name=name, every=lasting / SIGNS):
            yield
        kept = keep is not None
    finally:
        # What was done is done: that the turn could not be kept or given back in time is no reason to fail.
        _quietly(lambda: renew(keep) if kept and keep else leases.release(name, holder=holder), name=name)


def _await(take: Callable[[], bool], *, taken: Callable[[], TurnTaken], patience: timedelta) -> None:
    deadline, (pause, longest) = time.monotonic() + patience.total_seconds(), PAUSES
    while not take():
        left = deadline - time.monotonic()
        if left <= 0:
            raise taken()
        time.sleep(min(pause, left))
        pause = min(2 * pause, longest)


def _taken(leases: Leases, name: str) -> TurnTaken:
    found = leases.holder(name)
    if found is None:
        return TurnTaken(f"{name}: somebody else had the turn until a moment ago. Try again.")
    doing = f" for {found.doing}" if found.doing else ""
    return TurnTaken(
        f"{name}: {found.holder} has the turn{doing} since {found.since:%Y-%m-%d %H:%M:%S %Z}, and keeps it until "
        f"{found.until:%H:%M:%S} at least. Try again once it has ended; if it was killed, its turn ends then."
    )


@contextmanager
def _signs_of_life(renew: Callable[[], bool], *, name: str, every: timedelta) -> Iterator[None]:
    over = threading.Event()

    def beat() -> None:
        while not over.wait(every.total_seconds()):
            _quietly(renew, name=name)

    thread = threading.Thread(target=beat, name=f"lease of {name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()  # a last sign of life must not come after the turn was given back


def _quietly(ask: Callable[[], bool], *, name: str) -> None:
    try:
        if not ask():
            log.warning("%s: the turn ran out and somebody else took it; commits tell who was first", name)
    except HeadraceError as error:
        log.warning("%s: the turn could not be kept up to date: %s", name, error)
