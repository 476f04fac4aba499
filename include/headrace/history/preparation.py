"""Preparation: a source read once, its rows encoded, sorted and staged; or, for a look at it, only some of them."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from headrace import scratch
from headrace.errors import HistoryError
from headrace.feed import Feed
from headrace.history import sorting
from headrace.history.encoding import Encoder
from headrace.history.mapping import ColumnMap, map_columns
from headrace.history.rejected import Rejected
from headrace.history.source import Reading, Source
from headrace.history.staging import REJECTED, STAGING_LIMIT, Chunk, Manifest, Staging, chunked

Progress = Callable[[str, int, int | None], None]
"""Told what is being done, how many rows of it are, and of how many if that is known."""

Judge = Callable[[int | None, int | None, int], None]
"""Given the lowest and the highest timestamp and all bytes before anything is staged, raises where the topic would not
keep them."""

REJECTED_SCHEMA = pa.schema(
    [
        ("origin", pa.string()),
        ("row", pa.int64()),
        ("fault", pa.string()),
        ("field", pa.string()),
        ("why", pa.string()),
    ]
)
REJECTED_MOST = 1_000_000
"""More rejected rows than this are counted, and not listed: then everything is wrong."""
SAMPLE_ROWS = 20_000
HEADER_BYTES = 100
"""About what the signed header adds to a record."""


@dataclass(frozen=True)
class Order:
    """How a source is to become records."""

    renames: Mapping[str, str] = field(default_factory=dict)
    """Fields whose column has another name."""
    timestamp: str | None = None
    """The column that gives records their Kafka timestamp; else they are of the time of publishing."""
    strict: bool = False
    """Stop at the first row that is no record."""
    memory: int = sorting.MEMORY
    scratch: Path | None = None
    """A folder with room for all of it, encoded; else the machine's own for such things."""


@dataclass(frozen=True)
class Preview:
    """What an import would do, told from the first rows."""

    mapping: ColumnMap
    total: int | None
    read: int
    problems: Mapping[tuple[str, str, str], int]
    """How many of the rows read have a problem, by fault, field and why."""
    largest: int


class _Tally:
    """What has been read so far."""

    def __init__(self, *, source: Source, strict: bool) -> None:
        self._source, self._strict = source, strict
        self.total = self.bytes = 0
        self.rejected: list[Rejected] = []
        self.faults: Counter[str] = Counter()
        self.stamps: tuple[int | None, int | None] = (None, None)

    def add(self, records: pa.RecordBatch, rejected: list[Rejected], count: int) -> None:
        self.total += count
        for each in rejected:
            if self._strict:
                where = f"{each.origin} row {each.row}".strip()
                raise HistoryError(f"{self._source.told}: {where}: {each.field}: {each.why} ({each.fault}).")
            self.faults[each.fault] += 1
            if len(self.rejected) < REJECTED_MOST:
                self.rejected.append(each)
        self.bytes += records.num_rows * HEADER_BYTES
        for name in ("key", "value"):
            self.bytes += pc.sum(pc.binary_length(records.column(name))).as_py() or 0
        known = pa.array([*self.stamps, *pc.min_max(records.column("timestamp")).as_py().values()], pa.int64())
        bounds = pc.min_max(known).as_py()
        self.stamps = bounds["min"], bounds["max"]


def prepare(
    feed: Feed,
    source: Source,
    *,
    order: Order,
    staging: Staging,
    schema_id: int,
    largest: int,
    judge: Judge,
    progress: Progress,
) -> Manifest:
    """Stage all of the source; what counts in the end is whatever attempt was first to be whole."""
    started, attempt = time.monotonic(), uuid4().hex[:12]
    tally = _Tally(source=source, strict=order.strict)
    chunks: list[Chunk] = []
    with scratch.folder(order.scratch) as room:
        with source.reading() as reading:
            encoder = Encoder(feed, _mapped(feed, reading, order), schema_id, largest)
            counted = reading.total
            encoded = _encoded(reading, encoder, tally, lambda done: progress("read", done, counted))
            ordered = sorting.in_order(encoded, encoder.schema, scratch=room, memory=order.memory)
            # The first batch comes when the last row has been read: the source is let go before anything is written.
            first = next(ordered, None)
        if counted is not None and counted != tally.total:
            raise HistoryError(f"{source.told}: it counted {counted:,} rows but gave {tally.total:,}. Run it again.")
        judge(*tally.stamps, tally.bytes)
        for table in chunked(_chain(first, ordered)):
            chunks.append(Chunk(name=f"{len(chunks):05d}.parquet", rows=table.num_rows))
            staging.write(attempt, chunks[-1].name, table.drop_columns(["position"]))
            progress("stage", sum(chunk.rows for chunk in chunks), tally.total)
    if tally.rejected:
        staging.write(attempt, REJECTED, _rejected_table(tally.rejected))
    if (took := timedelta(seconds=time.monotonic() - started)) > STAGING_LIMIT:
        raise HistoryError(f"{source.told}: staging took {took}, but may take {STAGING_LIMIT}. Import it in parts.")
    oldest, newest = tally.stamps
    return staging.settle(
        Manifest(
            attempt=attempt,
            feed=feed.name,
            source=source.told,
            schema_id=schema_id,
            staged_at=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - started, 3),
            total=tally.total,
            counted=counted,
            rows=sum(chunk.rows for chunk in chunks),
            oldest=oldest,
            newest=newest,
            bytes=tally.bytes,
            rejected=dict(tally.faults),
            chunks=tuple(chunks),
        )
    )


def preview(feed: Feed, source: Source, *, order: Order, schema_id: int, largest: int) -> Preview:
    """Read some rows and tell; nothing is written anywhere."""
    problems: Counter[tuple[str, str, str]] = Counter()
    read = widest = 0
    with source.reading() as reading:
        encoder, total = Encoder(feed, _mapped(feed, reading, order), schema_id, largest), reading.total
        for rows in reading.rows(encoder.mapping.columns):
            encoded = encoder.encode(rows, position=read + 1)
            problems.update((each.fault.value, each.field, each.why) for each in encoded.rejected)
            lengths = pc.max(pc.binary_length(encoded.records.column("value"))).as_py()
            read, widest = read + len(rows.numbers) + len(rows.unread), max(widest, lengths or 0)
            if read >= SAMPLE_ROWS:
                break
        return Preview(encoder.mapping, total, read, problems, widest)


def _mapped(feed: Feed, reading: Reading, order: Order) -> ColumnMap:
    return map_columns(feed, reading.columns, renames=order.renames, timestamp=order.timestamp, is_open=reading.is_open)


def _encoded(
    reading: Reading, encoder: Encoder, tally: _Tally, progress: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    for rows in reading.rows(encoder.mapping.columns):
        made = encoder.encode(rows, position=tally.total + 1)
        tally.add(made.records, list(made.rejected), len(rows.numbers) + len(rows.unread))
        progress(tally.total)
        yield made.records


def _chain(first: pa.RecordBatch | None, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if first is not None:
        yield first
        yield from rest


def _rejected_table(rejected: list[Rejected]) -> pa.Table:
    columns = {
        "origin": [each.origin for each in rejected],
        "row": [each.row for each in rejected],
        "fault": [each.fault.value for each in rejected],
        "field": [each.field for each in rejected],
        "why": [each.why for each in rejected],
    }
    return pa.Table.from_pydict(columns, schema=REJECTED_SCHEMA)
