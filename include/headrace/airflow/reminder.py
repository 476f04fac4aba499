"""The reminder: asks Airflow to parse a changed stub once more, lest the change be missed or wait for long.

Airflow parses a file when its time is past the end of its last parse: so not if it changed during that parse. And it
looks for changed files only when nothing waits to be parsed: after a start, a thousand new files may. What it has
parsed it writes down only if it last did so a while ago (`[core] min_serialized_dag_update_interval`, half a minute by
default), else not at all: so a change is asked for once more when that time is over.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress

from headrace.airflow.stubs import Stubs

AFTER_S = 5.0
"""Longer than a parse takes, and soon enough for a changed file's ten seconds."""


class Reminder:
    """Watches the stubs' times, and asks for each that changed."""

    def __init__(
        self,
        stubs: Stubs,
        ask: Callable[[str], None],
        *,
        deaf_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stubs, self.ask, self.clock = stubs, ask, clock
        self.after = sorted({AFTER_S, AFTER_S + deaf_s})
        self._times: dict[str, int] = {}
        self._due: dict[str, list[float]] = {}

    def remind(self) -> None:
        """Note which stubs changed since the last call, and ask for those that did so a while ago."""
        now, times = self.clock(), self._look()
        for stub, changed in times.items():
            # One that is new has not been parsed yet, and goes before all others.
            if self._times.get(stub, changed) != changed:
                self._due[stub] = [now + after for after in self.after]
        for stub in [stub for stub, due in self._due.items() if due[0] <= now]:
            left = [due for due in self._due.pop(stub) if due > now]
            if stub in times:
                self.ask(stub)
                self._due |= {stub: left} if left else {}
        self._times = times

    def _look(self) -> dict[str, int]:
        times: dict[str, int] = {}
        with os.scandir(self.stubs.path) as listed:
            for each in listed:
                with suppress(FileNotFoundError):  # an errand may be at it
                    times[each.name] = each.stat().st_mtime_ns
        return times


def ask_airflow(bundle: str, stub: str) -> None:
    """Have a stub parsed before others, as the button in the UI does; asking twice is asking once."""
    from airflow.models.dagbag import DagPriorityParsingRequest
    from airflow.utils.session import create_session
    from sqlalchemy.exc import IntegrityError

    with suppress(IntegrityError), create_session() as session:
        session.add(DagPriorityParsingRequest(bundle_name=bundle, relative_fileloc=stub))
