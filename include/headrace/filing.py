"""Filing: envelope batches in, archive files out, cut by partition, hour and size, in bounded memory.

An envelope batch is an Arrow record batch with the columns of `record.SCHEMA` but `hour`, which filing derives; its
partitions are the archive's numbers and each partition's offsets ascend. Rows are encoded a row group at a time, so
that what waits in memory is mostly compressed. Spark's workers run this too, who know no Iceberg.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace import layout
from headrace.archive_file import ArchiveFile, Encoder
from headrace.hours import HOUR_MS, PLAUSIBLE_MS, hour_start
from headrace.placing import AFTER, Placing

GROUP_BYTES = 16 * 2**20
"""After how many envelope bytes a row group is closed."""
HELD_BYTES = 128 * 2**20
"""How much may wait for its file, or one file's worth if that is more; beyond it the largest is put as it is."""
CHUNK_BYTES = 8192
"""What a piece of a batch costs beside its bytes: its columns are buffers of their own."""
RECORD_BYTES = 64
"""What a record counts beside its key, value and headers."""
NO_HOUR = -1

Put = Callable[[str, bytes], None]
"""Writes a file under a key below the archive's prefix, where none may be yet."""
Place = tuple[int, int]
"""A partition, as the archive numbers it, and an hour since 1970 or NO_HOUR."""


@dataclass(frozen=True)
class Limits:
    """When an archive file is closed."""

    file_records: int
    file_bytes: int
    """In envelope bytes, before compression; a file is larger only if its one record is."""


@dataclass
class Drawer:
    """The envelopes of one partition and hour that are to become one file."""

    first: int
    last: int = -1
    records: int = 0
    bytes: int = 0
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_bytes: int = 0
    encoder: Encoder | None = None

    @property
    def held(self) -> int:
        """What it costs in memory."""
        encoded = self.encoder.size if self.encoder else 0
        return encoded + self.waiting_bytes + CHUNK_BYTES * len(self.waiting)


class Filing:
    """Takes envelope batches and puts files; what waits holds no more than HELD_BYTES and one batch."""

    def __init__(self, schema: pa.Schema, *, plan: str, limits: Limits, placing: Placing, put: Put) -> None:
        """`schema` is the archive's; `plan` is the last part of every file's name."""
        self._schema, self._plan, self._limits = schema, plan, limits
        self._placing, self._put = placing, put
        self._after = schema.field(AFTER) if AFTER in schema.names else None
        self._drawers: dict[Place, Drawer] = {}
        self._held = 0
        self.files: list[ArchiveFile] = []

    def add(self, *batches: pa.RecordBatch) -> None:
        """File batches; files that are full are put."""
        batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        for place, rows in cut(self._placing.placed(batch, after=self._after)):
            for piece, bytes_ in self._pieces(place, rows):
                self._keep(place, piece, bytes_=bytes_)
        while self._held > max(HELD_BYTES, self._limits.file_bytes):
            self._close(max(self._drawers, key=lambda place: self._drawers[place].held))

    def close(self) -> list[ArchiveFile]:
        """Put what still waits; all files that were made."""
        for place in list(self._drawers):
            self._close(place)
        return self.files

    def _pieces(self, place: Place, rows: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The rows, cut where a file becomes full."""
        ends = np.cumsum(sizes(rows))
        start = begun = 0
        while start < len(ends):
            drawer = self._drawers.get(place)
            records, bytes_ = (drawer.records, drawer.bytes) if drawer else (0, 0)
            fitting = int(np.searchsorted(ends, begun + self._limits.file_bytes - bytes_, side="right"))
            if fitting == start and drawer:
                self._close(place)
                continue
            stop = min(max(fitting, start + 1), start + self._limits.file_records - records, len(ends))
            yield rows.slice(start, stop - start), int(ends[stop - 1]) - begun
            start, begun = stop, int(ends[stop - 1])

    def _keep(self, place: Place, piece: pa.RecordBatch, *, bytes_: int) -> None:
        drawer = self._drawers.setdefault(place, Drawer(first=piece["offset"][0].as_py()))
        self._held -= drawer.held
        drawer.last = piece["offset"][-1].as_py()
        drawer.records += piece.num_rows
        drawer.bytes += bytes_
        drawer.waiting.append(piece)
        drawer.waiting_bytes += bytes_
        if drawer.waiting_bytes >= GROUP_BYTES:
            self._encode(place, drawer)
        self._held += drawer.held
        if drawer.records >= self._limits.file_records or drawer.bytes >= self._limits.file_bytes:
            self._close(place)

    def _encode(self, place: Place, drawer: Drawer) -> None:
        """Make a row group of what waits."""
        if drawer.encoder is None:
            drawer.encoder = Encoder(self._schema)
        drawer.encoder.write(whole(drawer.waiting, hour=place[1], schema=self._schema))
        drawer.waiting, drawer.waiting_bytes = [], 0

    def _close(self, place: Place) -> None:
        drawer = self._drawers.pop(place)
        self._held -= drawer.held
        if drawer.waiting:
            self._encode(place, drawer)
        assert drawer.encoder is not None, "a drawer is made for a piece"
        body, footer = drawer.encoder.close()
        topic, partition = self._placing.origin(place[0])
        hour = None if place[1] == NO_HOUR else hour_start(place[1])
        key = layout.archive_key(topic, partition, hour=hour, first=drawer.first, last=drawer.last, plan=self._plan)
        self.files.append(ArchiveFile(key, drawer.records, len(body), footer))
        self._put(key, body)


def cut(batch: pa.RecordBatch) -> Iterator[tuple[Place, pa.RecordBatch]]:
    """The batch by partition and hour, the order of offsets kept.

    Each part has memory of its own: a slice of the batch would keep all of it while another part's file is awaited.
    """
    if not batch.num_rows:
        return
    partitions, hours = batch["partition"].to_numpy(), filed_hours(batch["timestamp"])
    changes = np.flatnonzero((partitions[1:] != partitions[:-1]) | (hours[1:] != hours[:-1])) + 1
    if not len(changes):
        yield (int(partitions[0]), int(hours[0])), batch
        return
    order = np.lexsort((hours, partitions))
    partitions, hours = partitions[order], hours[order]
    changes = np.flatnonzero((partitions[1:] != partitions[:-1]) | (hours[1:] != hours[:-1])) + 1
    for part in np.split(np.arange(len(order)), changes):
        yield (int(partitions[part[0]]), int(hours[part[0]])), batch.take(pa.array(order[part]))


def filed_hours(timestamps: pa.Array) -> np.ndarray:
    """`hours.filed_hour` of every timestamp, NO_HOUR for none."""
    known = pc.fill_null(timestamps, PLAUSIBLE_MS.start - 1).to_numpy()
    plausible = (known >= PLAUSIBLE_MS.start) & (known < PLAUSIBLE_MS.stop)
    return np.where(plausible, known // HOUR_MS, NO_HOUR)


def sizes(batch: pa.RecordBatch) -> np.ndarray:
    """The bytes that each envelope counts."""
    total = np.full(batch.num_rows, RECORD_BYTES, np.int64)
    for name in ("key", "value"):
        total += pc.fill_null(pc.binary_length(batch[name]), 0).to_numpy(zero_copy_only=False)
    headers = batch["headers"]
    pairs = headers.flatten()
    if len(pairs):
        names, values = (pc.fill_null(pc.binary_length(each), 0) for each in pairs.flatten())
        ends = np.concatenate(
            ([0], np.cumsum(names.to_numpy(zero_copy_only=False) + values.to_numpy(zero_copy_only=False)))
        )
        counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False)
        bounds = np.concatenate(([0], np.cumsum(counts)))
        total += ends[bounds[1:]] - ends[bounds[:-1]]
    return total


def whole(batches: list[pa.RecordBatch], *, hour: int, schema: pa.Schema) -> pa.Table:
    """Batches of one place in the archive's schema: with their hour, and nulls for what their reader does not know."""
    table = pa.Table.from_batches(batches)
    count, start = table.num_rows, None if hour == NO_HOUR else hour_start(hour)
    columns = {"hour": pa.repeat(pa.scalar(start, schema.field("hour").type), count)}
    return pa.table(
        [
            columns[each.name]
            if each.name in columns
            else table[each.name].cast(each.type)
            if each.name in table.column_names
            else pa.nulls(count, each.type)
            for each in schema
        ],
        schema=schema,
    )
