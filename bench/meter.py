"""A meter: the CPU time and the memory of processes and of all they start, read several times a second."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import psutil

from stack.processes import family

EVERY_S = 0.15


@dataclass(frozen=True)
class Reading:
    """What was used up to a moment, and held at it."""

    at: float
    """Seconds since 1970."""
    cpu: float
    memory: int


def cpu_at(readings: Sequence[Reading], at: float) -> float:
    """CPU seconds used up to a moment, between two readings by their line."""
    before = [each for each in readings if each.at <= at] or [readings[0]]
    after = [each for each in readings if each.at > at]
    if not after:
        return before[-1].cpu
    low, high = before[-1], after[0]
    share = (at - low.at) / (high.at - low.at) if high.at > low.at else 0.0
    return low.cpu + (high.cpu - low.cpu) * max(share, 0.0)


def peak(readings: Iterable[Reading]) -> int:
    return max((each.memory for each in readings), default=0)


def read(pids: Sequence[int]) -> Reading:
    """One reading of the processes and their families: what ended children used counts, if they were waited for."""
    members = [member for pid in pids for member in family(pid)]
    return Reading(time.time(), sum(map(_cpu, members)), _memory(members))


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def _memory(members: Sequence[psutil.Process]) -> int:
    """The resident memory of one process; of several, shared pages are counted once (PSS)."""
    total = 0
    for member in members:
        try:
            total += int(member.memory_full_info().pss if len(members) > 1 else member.memory_info().rss)
        except psutil.Error:
            continue
    return total


class Meter:
    """Reads in the background while it is entered."""

    def __init__(self, *pids: int) -> None:
        self.pids = pids
        self.readings: list[Reading] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Meter":
        self.readings.append(read(self.pids))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if any(map(psutil.pid_exists, self.pids)):
            self._keep(read(self.pids))

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._keep(read(self.pids))

    def _keep(self, reading: Reading) -> None:
        # A process that has just ended reads as nothing; what it used before stands.
        if reading.cpu >= self.readings[-1].cpu:
            self.readings.append(reading)

    @property
    def cpu(self) -> float:
        """CPU seconds since it was entered."""
        return self.readings[-1].cpu - self.readings[0].cpu
