"""A lane: calls that run beside the caller in threads of their own, only so many bytes ahead of it."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any


class Lane:
    """Runs calls in the background; the caller waits while more than `ahead` bytes are under way.

    Whatever a call raises is raised again to the caller, at the next call or at the end. It has one caller at a time.
    """

    def __init__(self, *, ahead: int, threads: int = 1) -> None:
        self._ahead = ahead
        self._pool = ThreadPoolExecutor(threads)
        self._waiting: deque[tuple[Future[Any], int]] = deque()
        self._bytes = 0

    def call(self, function: Callable[..., Any], *arguments: Any, bytes_: int) -> None:
        """Let the function be called; with one thread, in the order of calls."""
        # What is about to come counts too, but one call alone may be larger than all that is allowed.
        while self._waiting and (self._bytes + bytes_ > self._ahead or self._waiting[0][0].done()):
            self._await_first()
        self._waiting.append((self._pool.submit(function, *arguments), bytes_))
        self._bytes += bytes_

    def finish(self) -> None:
        """Wait until everything was done."""
        while self._waiting:
            self._await_first()

    def _await_first(self) -> None:
        future, bytes_ = self._waiting.popleft()
        self._bytes -= bytes_
        future.result()

    def __enter__(self) -> "Lane":
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """An error leaves at once what was not begun; what runs is waited for, so that no thread outlives its lane."""
        try:
            if kind is None:
                self.finish()
        finally:
            self._pool.shutdown(cancel_futures=True)
