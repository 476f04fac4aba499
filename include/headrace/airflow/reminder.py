"""The reminder: has Airflow parse a changed stub a second time, lest a change that fell into a parse be missed."""

import os
import time
from collections.abc import Callable
from contextlib import suppress

from headrace.airflow.stubs import Stubs

AFTER_S = 15.0
"""Longer than a parse takes, also on a busy machine."""


class Reminder:
    """Airflow parses a file when its time is past the end of its last parse, so not if it changed during that parse."""

    def __init__(self, stubs: Stubs, clock: Callable[[], float] = time.monotonic) -> None:
        self.stubs, self.clock = stubs, clock
        self._times: dict[str, int] = {}
        self._due: dict[str, float] = {}

    def remind(self) -> None:
        """Note which stubs changed since the last call, and touch those that did so a while ago."""
        now, times = self.clock(), self._look()
        for stub, changed in times.items():
            # One that is new has not been parsed yet.
            if self._times.get(stub, changed) != changed:
                self._due[stub] = now + AFTER_S
        for stub in [stub for stub, due in self._due.items() if due <= now]:
            del self._due[stub]
            with suppress(FileNotFoundError):
                times[stub] = self.stubs.touch(stub)
        self._times = times

    def _look(self) -> dict[str, int]:
        times: dict[str, int] = {}
        with os.scandir(self.stubs.path) as listed:
            for each in listed:
                with suppress(FileNotFoundError):  # an errand may be at it
                    times[each.name] = each.stat().st_mtime_ns
        return times
