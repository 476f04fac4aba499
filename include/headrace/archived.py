"""Archived records, read back from an archive's files: each partition in the order of its offsets, little at a time."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.table import Table

from headrace.filed import Claim, claims
from headrace.hours import HOUR_MS
from headrace.slice import Slice, kafka_number

BATCH_RECORDS = 2_000
BATCH_BYTES = 4 * 1024 * 1024
READ_BYTES, READ_LEAST = 2 * 1024 * 1024, 64 * 1024
"""What is read of a column at a time, divided among overlapping files; of a file alone, a whole row group."""
COLUMNS = ["offset", "timestamp", "timestamp_type", "key", "value", "headers"]


class Archived(NamedTuple):
    """One record as the archive holds it; its partition by the archive's number."""

    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def files(table: Table, snapshot: int, *, slice_: Slice) -> dict[int, list[Claim]]:
    """The files that may hold something of a slice, by partition, those with lower offsets first."""
    found: dict[int, list[Claim]] = {}
    for claim in claims(table, snapshot):
        if slice_.may_hold(claim.partition, offsets=(claim.first, claim.last), times=claim.bounds["timestamp"]):
            found.setdefault(claim.partition, []).append(claim)
    # Kafka's own order of partitions, whichever topic they are of.
    return {number: sorted(found[number], key=lambda claim: claim.first) for number in sorted(found, key=kafka_number)}


def times(files_: Mapping[int, Sequence[Claim]], *, slice_: Slice) -> tuple[int, int] | None:
    """The earliest and the latest timestamp that records of a slice may have, as the manifests claim; None for none."""
    bounds = [found for claims_ in files_.values() for claim in claims_ if (found := _times(claim))]
    if not bounds:
        return None
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    return (
        low if slice_.since is None else max(low, slice_.since),
        high if slice_.until is None else min(high, slice_.until - 1),
    )


def _times(claim: Claim) -> tuple[int, int] | None:
    low, high = claim.bounds["timestamp"]
    if low is not None and high is not None and low > 0:  # zero is sent as of now
        return low, high
    return None if claim.hour is None else (claim.hour * HOUR_MS, (claim.hour + 1) * HOUR_MS - 1)


def records(
    io: FileIO,
    claimed: Sequence[Claim],
    *,
    slice_: Slice,
    first: int = 0,
    looked: Callable[[int], None] = lambda _: None,
) -> Iterator[Archived]:
    """The records of a slice in one partition's files from an offset on, in the order of offsets.

    Records of one hour share files, so that files of late records overlap others: those are read side by side, and
    divide among them what one would hold in memory. `looked` is told of every few records that were looked at.
    """
    waiting = deque(claim for claim in claimed if claim.last >= first)
    share = depth(waiting)
    open_: list[tuple[int, int, Archived, Iterator[Archived]]] = []
    turns = count()
    while True:
        while waiting and (not open_ or waiting[0].first <= open_[0][0]):
            rows = _rows(io, waiting.popleft(), slice_=slice_, first=first, share=share, looked=looked)
            _push(open_, rows, turn=next(turns))
        if not open_:
            return
        _, turn, row, rows = heappop(open_)
        yield row
        _push(open_, rows, turn=turn)


def depth(claimed: Iterable[Claim]) -> int:
    """How many files overlap where the most do; they come by their first offsets."""
    most, lasts = 1, list[int]()
    for claim in claimed:
        while lasts and lasts[0] < claim.first:
            heappop(lasts)
        heappush(lasts, claim.last)
        most = max(most, len(lasts))
    return most


def _push(open_: list[tuple[int, int, Archived, Iterator[Archived]]], rows: Iterator[Archived], *, turn: int) -> None:
    if (row := next(rows, None)) is not None:
        heappush(open_, (row.offset, turn, row, rows))


def _rows(
    io: FileIO, claim: Claim, *, slice_: Slice, first: int, share: int, looked: Callable[[int], None]
) -> Iterator[Archived]:
    buffer = 0 if share == 1 else max(READ_LEAST, READ_BYTES // share)
    with io.new_input(claim.path).open() as stream, pq.ParquetFile(stream, buffer_size=buffer) as file:
        for batch in file.iter_batches(_batch_size(file, share), columns=COLUMNS, use_threads=False):
            looked(batch.num_rows)
            meant = batch.filter(slice_.mask(batch, claim.partition))
            for row in meant.to_pylist():
                if row["offset"] >= first:
                    yield _archived(claim.partition, row)


def _batch_size(file: pq.ParquetFile, share: int) -> int:
    """So few records that large values, and all files that are open at once, fit into memory."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=1)
    return max(1, min(BATCH_RECORDS, BATCH_BYTES // max(widest, 1)) // share)


def _archived(partition: int, row: Mapping[str, Any]) -> Archived:
    headers = [(each["name"], each["value"]) for each in row["headers"] or ()]
    return Archived(
        partition, row["offset"], row["timestamp"], row["timestamp_type"], row["key"], row["value"], headers
    )
