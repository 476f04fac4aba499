"""Archived records, read back from an archive's files: each partition in the order of its offsets, little at a time."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.table import Table

from headrace.filed import Claim, claims
from headrace.slice import Slice, kafka_number

BATCH_RECORDS = 2_000
BATCH_BYTES = 4 * 1024 * 1024
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


def records(io: FileIO, claimed: Sequence[Claim], *, slice_: Slice, first: int = 0) -> Iterator[Archived]:
    """The records of a slice in one partition's files from an offset on, in the order of offsets.

    Records of one hour share files, so that files of late records overlap others: those are read side by side.
    """
    waiting = deque(claim for claim in claimed if claim.last >= first)
    open_: list[tuple[int, int, Archived, Iterator[Archived]]] = []
    turns = count()
    while True:
        while waiting and (not open_ or waiting[0].first <= open_[0][0]):
            _push(open_, _rows(io, waiting.popleft(), slice_=slice_, first=first), turn=next(turns))
        if not open_:
            return
        _, turn, row, rows = heappop(open_)
        yield row
        _push(open_, rows, turn=turn)


def _push(open_: list[tuple[int, int, Archived, Iterator[Archived]]], rows: Iterator[Archived], *, turn: int) -> None:
    if (row := next(rows, None)) is not None:
        heappush(open_, (row.offset, turn, row, rows))


def _rows(io: FileIO, claim: Claim, *, slice_: Slice, first: int) -> Iterator[Archived]:
    with io.new_input(claim.path).open() as stream, pq.ParquetFile(stream) as file:
        for batch in file.iter_batches(_batch_size(file), columns=COLUMNS, use_threads=False):
            meant = batch.filter(slice_.mask(batch, claim.partition))
            for row in meant.to_pylist():
                if row["offset"] >= first:
                    yield _archived(claim.partition, row)


def _batch_size(file: pq.ParquetFile) -> int:
    """So few records that large values fit into memory."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=1)
    return max(1, min(BATCH_RECORDS, BATCH_BYTES // max(widest, 1)))


def _archived(partition: int, row: Mapping[str, Any]) -> Archived:
    headers = [(each["name"], each["value"]) for each in row["headers"] or ()]
    return Archived(
        partition, row["offset"], row["timestamp"], row["timestamp_type"], row["key"], row["value"], headers
    )
