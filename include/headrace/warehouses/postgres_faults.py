"""What a Postgres warehouse says when it does not do as asked, in our words and without a value of any row.

Postgres tells the row that it refuses, and the drivers tell the statement: neither may reach a log.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from adbc_driver_manager import Error as AdbcError
from psycopg import sql

from headrace.errors import HeadraceError, ServiceAway, ServiceRefused, SettingsError, WarehouseBusy, WarehouseError

if TYPE_CHECKING:
    from headrace.warehouses.postgres import PostgresWarehouse

REFUSED = ("28", "3D", "42501")
"""How SQL states begin: no such user, wrong password, no such database, not allowed."""
AWAY = ("08", "53", "57P")
BUSY = "55P03"
UNKNOWN_ROLE = "42704"
KEPT = "Nothing was changed, and the next try begins again."

HOLDERS = sql.SQL("""
select distinct activity.pid, activity.usename, activity.application_name, activity.state,
    date_trunc('second', now() - activity.xact_start)::text
from pg_locks lock join pg_stat_activity activity using (pid)
where lock.relation = to_regclass({table}) and lock.granted and activity.pid <> pg_backend_pid()
order by 1 limit 5
""")


@contextmanager
def told(warehouse: "PostgresWarehouse", feed: str) -> Iterator[None]:
    """Around everything that asks the warehouse; the drivers' own errors, which hold values, end here."""
    try:
        yield
    except (psycopg.Error, AdbcError) as error:
        raise _fault(warehouse, feed, state=error.sqlstate or "", said=_said(error)) from None


def _fault(warehouse: "PostgresWarehouse", feed: str, *, state: str, said: str) -> HeadraceError:
    database = warehouse.database
    where = f"The warehouse {warehouse.name} at {database.host}:{database.port}/{database.name}"
    mend = f"the Airflow connection {warehouse.connection}"
    if not state:
        if "authentication failed" in said or "does not exist" in said:
            return ServiceRefused(f"{where} refuses us: {said}. {KEPT} Mend {mend}.")
        return ServiceAway(f"{where} does not answer: {said}. {KEPT} Is it up, and is {mend} right?")
    if state.startswith(REFUSED):
        return ServiceRefused(f"{where} refuses us: {said}. {KEPT} Mend {mend}, or what {database.user} may do.")
    if state.startswith(AWAY):
        return ServiceAway(f"{where} broke off: {said}. {KEPT}")
    if state == UNKNOWN_ROLE:
        return SettingsError(f"{where}: {said}. {KEPT} Create it, or mend the warehouse's declaration.")
    if state == BUSY:
        holders = _holders(warehouse, feed)
        return WarehouseBusy(
            f"{warehouse.name}.{feed} is locked by somebody else: {holders or 'who has let go since'}. {KEPT} "
            f"If tries go on to fail, end that session: select pg_terminate_backend(PID)."
        )
    return WarehouseError(f"{where} did not load {feed}: {said} (SQL state {state}). {KEPT}")


def _said(error: psycopg.Error | AdbcError) -> str:
    """What the server said first: the lines after it hold rows and statements."""
    if isinstance(error, psycopg.Error):
        primary = error.diag.message_primary
    else:
        details: dict[Any, Any] = dict(error.details or ())
        primary = details.get(b"PG_DIAG_MESSAGE_PRIMARY", details.get("PG_DIAG_MESSAGE_PRIMARY"))
        primary = primary.decode("utf-8", "replace") if isinstance(primary, bytes) else primary
    if primary:
        return str(primary).rstrip(".")
    # Without a word from a server it is a connection that was not made; then there is neither row nor statement.
    return " ".join(str(error).split()).rstrip(".") if not error.sqlstate else "it gives no reason"


def _holders(warehouse: "PostgresWarehouse", feed: str) -> str:
    """Who holds locks on the table, and since when; not what they asked, which may hold values."""
    table = sql.Identifier(warehouse.schema, feed).as_string()
    with psycopg.connect(warehouse.database.url(), connect_timeout=3) as connection:
        rows = connection.execute(HOLDERS.format(table=sql.Literal(table))).fetchall()
    return "; ".join(
        f"process {pid}, {user}{f' ({program})' if program else ''}, {state or 'unknown'} for {since or 'a while'}"
        for pid, user, program, state, since in rows
    )
