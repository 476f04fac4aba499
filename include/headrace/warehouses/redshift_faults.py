"""What a Redshift warehouse says when it does not do as asked, in our words and without a value of any row."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from redshift_connector.error import Error

from headrace.errors import HeadraceError, ServiceAway, ServiceRefused, SettingsError, WarehouseBusy, WarehouseError

if TYPE_CHECKING:
    from headrace.warehouses.redshift import RedshiftWarehouse

REFUSED = ("28", "3D", "42501")
"""How SQL states begin: no such user, wrong password, no such database, not allowed."""
AWAY = ("08", "53", "57P")
TIMED_OUT = "57014"
UNKNOWN_ROLE = "42704"
DATA = "22"
"""Values that do not fit: Redshift quotes them in what it says."""
NOT_SERIALIZABLE = "Serializable isolation violation"
KEPT = "Nothing was changed, and the next try begins again."


@contextmanager
def told(warehouse: "RedshiftWarehouse", feed: str) -> Iterator[None]:
    """Around everything that asks the warehouse; the driver's own errors, which hold values, end here."""
    try:
        yield
    except Error as error:
        raise fault(warehouse, feed, answer(error)) from None


def answer(error: Error) -> dict[str, str]:
    """What the server answered, by its protocol's letters; of an error of the driver's own, only the text."""
    first: Any = error.args[0] if error.args else ""
    return first if isinstance(first, dict) else {"M": " ".join(str(first).split())}


def fault(warehouse: "RedshiftWarehouse", feed: str, said: dict[str, str]) -> HeadraceError:
    where = f"The warehouse {warehouse.name} at {warehouse.place}"
    mend, code = f"the Airflow connection {warehouse.connection}", said.get("C", "")
    words = said.get("M", "it gives no reason").rstrip(".")
    if not code:
        return ServiceAway(f"{where} does not answer: {words}. {KEPT} Is it up, and is {mend} right?")
    if code.startswith(REFUSED):
        return ServiceRefused(f"{where} refuses us: {words}. {KEPT} Mend {mend}, or what its user may do.")
    if code.startswith(AWAY):
        return ServiceAway(f"{where} broke off: {words}. {KEPT}")
    if code == UNKNOWN_ROLE:
        return SettingsError(f"{where}: {words}. {KEPT} Create it, or mend the warehouse's declaration.")
    if code == TIMED_OUT:
        return WarehouseBusy(
            f"{warehouse.name}.{feed} is in use by somebody else for too long. {KEPT} If tries go on to fail, see in "
            f"svv_transactions who that is, and end their session: select pg_terminate_backend(PID)."
        )
    if any(NOT_SERIALIZABLE in told for told in said.values()):
        return WarehouseBusy(f"{warehouse.name}.{feed}: somebody else wrote to it meanwhile. {KEPT}")
    if code.startswith(DATA):
        words = "a value does not fit its column; sys_load_error_detail, for those who may read it, says which"
    return WarehouseError(f"{where} did not load {feed}: {words} (SQL state {code}). {KEPT}")
