"""An errand: work that may wait for a service, in a process forked off, so that the DAG processor goes on meanwhile."""

import logging
import multiprocessing
import signal
from collections.abc import Callable

from headrace.errors import HeadraceError

log = logging.getLogger(__name__)


class Errand:
    """One piece of work that was sent off."""

    def __init__(self, work: Callable[[], object]) -> None:
        # Forked, not started anew: all imports are there already, which is what a new feed's five seconds need.
        self._process = multiprocessing.get_context("fork").Process(target=_run, args=(work,), daemon=True)
        self._process.start()

    def is_back(self, *, patience: float = 0.0) -> bool:
        """Whether it is done, within some seconds."""
        self._process.join(patience)
        return not self._process.is_alive()

    @property
    def failed(self) -> bool:
        return self._process.exitcode != 0

    def call_off(self) -> None:
        """End it; whatever it was at, the next one finds out."""
        self._process.kill()
        self._process.join()


def _run(work: Callable[[], object]) -> None:
    """Be a process of its own: with nobody's signal handlers, and with database connections of its own."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    _leave_connections()
    try:
        work()
    except HeadraceError as error:
        log.warning("%s", error)
        raise SystemExit(1) from None


def _leave_connections() -> None:
    """Forget Airflow's open connections without closing them: they are the parent's."""
    from airflow import settings

    if settings.engine is not None:
        settings.engine.dispose(close=False)
