"""Scanning: the rows of an Iceberg scan one batch after the other, in memory that does not grow with their number."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Thread
from typing import Generic, TypeVar

import pyarrow as pa
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import DataScan, FileScanTask

T = TypeVar("T")

AHEAD = 8
"""How many batches wait at most while the one before is worked on; Arrow reads about as many ahead within a file."""
ROOM = 64 * 1024 * 1024
"""How many bytes wait at most: of wide rows one batch may have more than that, and then it waits alone."""


def stream(scan: DataScan) -> Iterator[pa.RecordBatch]:
    """The scan's rows, file after file."""
    reading = ArrowScan(scan.table_metadata, scan.io, scan.projection(), scan.row_filter)
    for task in scan.plan_files():
        yield from _batches(reading, task)


def _batches(reading: ArrowScan, task: FileScanTask) -> Iterator[pa.RecordBatch]:
    """One file's rows. What PyIceberg offers to everybody keeps a whole file in memory, and reads others meanwhile."""
    if task.delete_files:
        return reading.to_record_batches([task])
    return reading._record_batches_from_scan_tasks_and_deletes([task], {})


@contextmanager
def telling(items: Iterator[T]) -> Iterator[Iterator[T]]:
    """Items for a library that asks for them from C: what they fail with is raised as it was.

    Such a library would raise an error of its own, with a text of ours in it that nobody has looked through for values.
    """
    failed: list[BaseException] = []

    def asked() -> Iterator[T]:
        try:
            yield from items
        except BaseException as error:
            failed.append(error)
            raise

    try:
        yield asked()
    except Exception:
        if failed:
            raise failed[0] from None
        raise


class Ahead(Generic[T]):
    """Items that wait while the one before is worked on: so many, and of so many bytes together, or a single one."""

    def __init__(self, *, most: int, room: int, size: Callable[[T], int]) -> None:
        self._most, self._room, self._size = most, room, size
        self._waiting = deque[tuple[T, int]]()
        self._bytes = 0
        self._changed = Condition()
        self._over = False
        self._failed: BaseException | None = None

    def put(self, item: T) -> bool:
        """Wait for room; False where nobody wants the item any more."""
        size = self._size(item)
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._has_room(size))
            if not self._over:
                self._waiting.append((item, size))
                self._bytes += size
                self._changed.notify_all()
            return not self._over

    def _has_room(self, size: int) -> bool:
        return not self._waiting or (len(self._waiting) < self._most and self._bytes + size <= self._room)

    def end(self, failed: BaseException | None = None) -> None:
        """Nothing comes any more, or is wanted."""
        with self._changed:
            self._over, self._failed = True, self._failed or failed
            self._changed.notify_all()

    def __iter__(self) -> Iterator[T]:
        """The items in their order, then what the source failed with."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._over or self._waiting)
                if not self._waiting:
                    break
                item, size = self._waiting.popleft()
                self._bytes -= size
                self._changed.notify_all()
            yield item
        if self._failed:
            raise self._failed


def ahead(
    source: Callable[[], Iterator[T]], *, size: Callable[[T], int], most: int = AHEAD, room: int = ROOM
) -> Iterator[T]:
    """What a source gives, made by a thread of its own while the one before is worked on."""
    waiting = Ahead(most=most, room=room, size=size)

    def read() -> None:
        try:
            for item in source():
                if not waiting.put(item):
                    return
            waiting.end()
        except BaseException as error:  # noqa: BLE001 - raised again where the items are asked for
            waiting.end(error)

    thread = Thread(target=read, name="headrace-ahead", daemon=True)
    thread.start()
    try:
        yield from waiting
    finally:
        waiting.end()
        thread.join()
