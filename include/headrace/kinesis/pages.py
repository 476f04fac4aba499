"""The pages of a plan: several shards at once, each in its order, and no shard before its parents have ended."""

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.kinesis import shard
from headrace.kinesis.plan import Plan
from headrace.kinesis.shard import Page, Position

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

THREADS = 8
"""How many shards are read at once; as many pages of 10 MB may wait in memory."""
PACE_S = 0.2
"""A shard gives 5 answers a second."""


@dataclass(frozen=True)
class Bounds:
    """When a run stops though there is more, so that it ends and its commit is not too late; the next run goes on."""

    records: int
    seconds: float


@dataclass
class Pages:
    """Reads a plan; how far it came stands in `positions` meanwhile and afterwards."""

    client: "KinesisClient"
    plan: Plan
    bounds: Bounds
    positions: dict[int, Position] = field(default_factory=dict)
    records: int = 0
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.positions = dict(self.plan.positions)

    @property
    def is_short(self) -> bool:
        """Whether something is left that could have been read: a bound was met."""
        return any(not position.is_done(self.plan.stream.at) for position in self.positions.values())

    def __iter__(self) -> Iterator[Page]:
        # Those that are furthest behind come first: else a run that meets its bounds would never get to the others.
        waiting = sorted(self.positions, key=lambda number: self.plan.before(number).until)
        running = dict[Future[Page], int]()
        with ThreadPoolExecutor(THREADS) as pool:
            try:
                while True:
                    for number in self._startable(waiting, free=THREADS - len(running)):
                        waiting.remove(number)
                        running[pool.submit(self._next, self.positions[number])] = number
                    if not running:
                        return
                    for done in wait(running, return_when=FIRST_COMPLETED).done:
                        number, page = running.pop(done), done.result()
                        if self.plan.is_late(self.positions[number], page.at):
                            continue  # It waited too long for its turn. What it lost, the next run's plan tells.
                        self.positions[number] = page.position
                        self.records += page.batch.num_rows
                        if not page.position.is_done(self.plan.stream.at):
                            waiting.insert(0, number)
                        if page.batch.num_rows:
                            yield page
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _startable(self, waiting: list[int], *, free: int) -> list[int]:
        """Shards to read a page of now: those begun first, so that no more iterators live than pages."""
        if self.records >= self.bounds.records or time.monotonic() - self.began >= self.bounds.seconds:
            return []
        return [number for number in waiting if self._is_open(number)][:free]

    def _is_open(self, number: int) -> bool:
        """A parent that is not in the plan has ended before, or is so old that AWS no longer lists it."""
        parents = self.positions[number].shard.parents
        return all(self.positions[each].ended for each in parents if each in self.positions)

    def _next(self, position: Position) -> Page:
        if position.iterator:
            time.sleep(PACE_S)  # The page before was just now.
        return shard.read(self.client, self.plan.stream.name, position=position)
