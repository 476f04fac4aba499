"""What a Postgres warehouse says when it does not do as asked, in our words and without a value of any row.

Postgres tells the row that it refuses, and the drivers tell the statement: neither may reach a log.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from adbc_driver_manager import Error as AdbcError
from adbc_driver_manager import OperationalError
from psycopg import sql

from headrace.errors import HeadraceError, ServiceAway, ServiceRefused, SettingsError, WarehouseBusy, WarehouseError

if TYPE_CHECKING:
    from headrace.warehouses.postgres import PostgresWarehouse

REFUSED = ("28", "3D", "42501")
"""How SQL states begin: no such user, wrong password, no such database, not allowed."""
AWAY = ("08", "25P03", "25P04", "53", "57")
"""Connections that break or are ended, too many of them, no room, shutdown, and statements that were cancelled."""
LOCKED = "55P03"
MET = "40"
"""Two transactions that cannot both go on: a deadlock, most often."""
CHANGED_AT_ONCE = ("tuple concurrently updated", "tuple concurrently deleted")
"""What Postgres calls an internal error, where two change what is known of one table."""
UNKNOWN_ROLE = "42704"
DEPENDED_ON = "2BP01"
QUOTED = ("08", "0A", "21", "25", "28", "2B", "3D", "3F", "40", "42", "53", "54", "55", "57", "58")
"""States whose words are about names and means; those of others, a trigger's or a cast's, may be values of a row."""
RULES = {
    "22": "a value does not fit what a column, an index or a trigger makes of it",
    "23502": "a row lacks a value that must be there",
    "23503": "a row violates a foreign key",
    "23505": "a row violates a unique constraint",
    "23514": "a row violates a check constraint",
    "P0": "a function or a trigger refuses a row",
}
FUNCTION = "PL/pgSQL"
"""In the context of what a function or a trigger raises."""
KEPT = "Nothing was changed, and the next try begins again."
BETWEEN = "A commit that was under way landed whole or not at all; the next try sees which and goes on from there."

HOLDERS = sql.SQL("""
select activity.pid, activity.usename, activity.application_name, activity.state,
    date_trunc('second', now() - activity.xact_start)::text, bool_or(lock.relation = to_regclass({table})) as holds
from pg_locks lock join pg_stat_activity activity using (pid)
where lock.granted and activity.pid <> pg_backend_pid() and activity.datname = current_database()
    and (lock.relation = to_regclass({table}) or lock.locktype = 'transactionid')
group by activity.pid, 2, 3, 4, activity.xact_start
order by holds desc nulls last, activity.xact_start limit 5
""")
"""Who holds locks on a table, and whoever else has written something and not committed."""


@dataclass(frozen=True)
class Said:
    """What the server answered, as far as it can hold no value of a row."""

    state: str
    words: str
    """Empty where they may hold one."""
    constraint: str = ""
    column: str = ""


@contextmanager
def told(warehouse: "PostgresWarehouse", feed: str) -> Iterator[None]:
    """Around everything that asks the warehouse; the drivers' own errors, which hold values, end here."""
    try:
        yield
    except (psycopg.Error, AdbcError) as error:
        raise _fault(warehouse, feed, _said(error)) from None


def _fault(warehouse: "PostgresWarehouse", feed: str, said: Said) -> HeadraceError:
    database, state, words = warehouse.database, said.state, said.words or _rule(said)
    where = f"The warehouse {warehouse.name} at {database.host}:{database.port}/{database.name}"
    mend = f"the Airflow connection {warehouse.connection}"
    if not state and said.words:
        if "authentication failed" in words or "does not exist" in words:
            return ServiceRefused(f"{where} refuses us: {words}. {KEPT} Mend {mend}.")
        return ServiceAway(f"{where} does not answer: {words}. {BETWEEN} Is it up, and is {mend} right?")
    if state.startswith(REFUSED):
        return ServiceRefused(f"{where} refuses us: {words}. {KEPT} Mend {mend}, or what {database.user} may do.")
    if state.startswith(AWAY):
        return ServiceAway(f"{where} broke off: {words}. {BETWEEN}")
    if state == UNKNOWN_ROLE:
        return SettingsError(f"{where}: {words}. {KEPT} Create it, or mend the warehouse's declaration.")
    if state == DEPENDED_ON:
        return WarehouseError(f"{where}: {words}. {KEPT} Take from it what others gave it, such as by drop owned.")
    if state == LOCKED:
        return WarehouseBusy(
            f"{warehouse.name}.{feed} {_holders(warehouse, feed)}. {KEPT} Runs try again by themselves, commands when "
            f"they are typed again. If that goes on to fail, end that session: select pg_terminate_backend(PID)."
        )
    if state.startswith(MET) or words in CHANGED_AT_ONCE:
        return WarehouseBusy(f"{warehouse.name}.{feed}: somebody else changed the same at once: {words}. {KEPT}")
    return WarehouseError(f"{where} did not load {feed}: {words} (SQL state {state or 'unknown'}). {KEPT}")


def _rule(said: Said) -> str:
    """What was broken, by its kind and name."""
    kind = next((words for state, words in RULES.items() if said.state.startswith(state)), "it refuses a row")
    return ": ".join(filter(None, [kind, said.constraint or said.column]))


def _said(error: psycopg.Error | AdbcError) -> Said:
    """What the server said first, where that holds no value; the lines after it hold rows and statements."""
    told = _answer(error)
    if not (state := error.sqlstate or ""):
        # Without a word from a server: of a connection that was not made or broke, or of a value that was not sent.
        broke = isinstance(error, OperationalError | psycopg.OperationalError)
        return Said("", " ".join(str(error).split()).rstrip(".") if broke else "")
    # What a function raises has any state that it likes, and any words.
    words = told["message_primary"].rstrip(".")
    quoted = FUNCTION not in told["context"] and (state.startswith(QUOTED) or words in CHANGED_AT_ONCE)
    return Said(state, words if quoted else "", told["constraint_name"], told["column_name"])


def _answer(error: psycopg.Error | AdbcError) -> dict[str, str]:
    """The parts of the server's answer that we look at; those that it lacks are empty."""
    parts = ("message_primary", "context", "constraint_name", "column_name")
    if isinstance(error, psycopg.Error):
        return {part: getattr(error.diag, part) or "" for part in parts}
    details: dict[Any, Any] = {_text(name): _text(value) for name, value in error.details or ()}
    return {part: details.get(f"PG_DIAG_{part.upper()}", "") for part in parts}


def _text(part: str | bytes) -> str:
    return part.decode("utf-8", "replace") if isinstance(part, bytes) else part


def _holders(warehouse: "PostgresWarehouse", feed: str) -> str:
    """Who holds locks on the table, and since when; not what they asked, which may hold values."""
    table = sql.Identifier(warehouse.schema, feed).as_string()
    try:
        with psycopg.connect(warehouse.database.url(), connect_timeout=3) as connection:
            rows = connection.execute(HOLDERS.format(table=sql.Literal(table))).fetchall()
    except psycopg.Error:
        rows = []
    certain = [row for row in rows if row[-1]]
    found = "; ".join(
        f"process {pid}, {user}{f' ({program})' if program else ''}, {state or 'unknown'} for {since or 'a while'}"
        for pid, user, program, state, since, _ in certain or rows
    )
    if certain or not found:
        return f"is locked by somebody else: {found or 'who has let go since'}"
    return f"waited for somebody else who does not commit, one of these: {found}"
