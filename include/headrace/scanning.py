"""Scanning: the rows of an Iceberg scan one batch after the other, in memory that does not grow with their number."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

import pyarrow as pa
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import DataScan, FileScanTask

T = TypeVar("T")

AHEAD = 8
"""How many batches wait at most while the one before is worked on; Arrow reads about as many ahead within a file."""
PATIENCE_S = 0.1
"""How long a reader that is full waits before it looks whether anybody still wants its batches."""


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


def ahead(source: Callable[[], Iterator[T]], *, most: int = AHEAD) -> Iterator[T]:
    """What a source gives, made by a thread of its own while the one before is worked on."""
    waiting: Queue[T | BaseException | None] = Queue(most)
    over = Event()

    def put(item: T | BaseException | None) -> bool:
        while not over.is_set():
            with suppress(Full):
                waiting.put(item, timeout=PATIENCE_S)
                return True
        return False

    def read() -> None:
        try:
            for item in source():
                if not put(item):
                    return
            put(None)
        except BaseException as error:  # noqa: BLE001 - raised again where the items are asked for
            put(error)

    thread = Thread(target=read, name="headrace-ahead", daemon=True)
    thread.start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        over.set()
        with suppress(Empty):
            while True:
                waiting.get_nowait()
        thread.join()
