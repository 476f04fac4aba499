"""Errands: work that may wait for a service, in processes forked off, so that the DAG processor goes on meanwhile."""

import gc
import logging
import multiprocessing
import signal
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess

from headrace.errors import HeadraceError

log = logging.getLogger(__name__)

LONGEST_S = 300.0
"""How long an errand may take: each of its questions has a time limit of its own."""

REST_S = 10.0
"""The pause after an errand that failed."""


class Messenger:
    """Sends one errand at a time."""

    def __init__(self) -> None:
        self.has_failed = False
        self._errand: BaseProcess | None = None
        self._sent = 0.0
        self._rests_until = 0.0

    def send(self, work: Callable[[], object], *, patience: float = 0.0) -> None:
        """Send an errand, and wait some seconds at most for its end."""
        # Forked, not started anew: all imports are there already, which is what a new feed's five seconds need.
        self._errand = multiprocessing.get_context("fork").Process(target=_run, args=(work,), daemon=True)
        self._sent = time.monotonic()
        self._errand.start()
        self._errand.join(patience)

    def is_free(self) -> bool:
        """Whether another errand may be sent; after one that failed there is a pause."""
        if self._errand is not None:
            if self._errand.is_alive():
                if time.monotonic() - self._sent < LONGEST_S:
                    return False
                log.warning("An errand for the feeds takes more than %d s: it is called off.", LONGEST_S)
                self._errand.kill()
            self._errand.join()
            self.has_failed = self._errand.exitcode != 0
            if self.has_failed:
                self.rest()
            self._errand = None
        return time.monotonic() >= self._rests_until

    def rest(self) -> None:
        """Send nothing for a while."""
        self._rests_until = time.monotonic() + REST_S


def _run(work: Callable[[], object]) -> None:
    """Be a process of its own: with nobody's signal handlers, and with database connections of its own."""
    # What the parent left to be collected stays: a Kafka client's finalizer would wait for threads that are not here.
    gc.freeze()
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
