"""Pace: how fast records may be published, so that a replay or an import leaves the broker to its other work."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from headrace.errors import SettingsError


@dataclass(frozen=True)
class Rate:
    """The most that may be published in a second; None is without limit."""

    records: float | None = None
    bytes: float | None = None

    def __post_init__(self) -> None:
        for name, limit in (("records", self.records), ("bytes", self.bytes)):
            if limit is not None and limit <= 0:
                raise SettingsError(f"a rate of {limit} {name} a second never ends. Give a number above zero, or none.")

    def seconds(self, records: int, size: int) -> float:
        """How long so many records of so many bytes take at this rate."""
        return max(
            records / self.records if self.records is not None else 0.0,
            size / self.bytes if self.bytes is not None else 0.0,
        )


class Pace:
    """Keeps a rate: each batch pays for its time before the next one may go.

    What was waited for elsewhere counts; what was idle is not caught up on, so the rate is never exceeded afterwards.
    """

    def __init__(
        self,
        rate: Rate,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rate = rate
        self._clock, self._sleep = clock, sleep
        self._due = clock()

    def wait(self, records: int, size: int) -> None:
        """Return when a batch of this size may begin."""
        if (left := self._due - self._clock()) > 0:
            self._sleep(left)
        self._due = max(self._due, self._clock()) + self.rate.seconds(records, size)
