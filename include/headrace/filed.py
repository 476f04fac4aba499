"""Filed: an archive's data file as its manifest claims it to be, and as its rows show it to be."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.types import PrimitiveType

from headrace import layout, record
from headrace.away import ARROW
from headrace.imprint import PARTS, Imprints, imprints

BATCH_BYTES = 16 * 1024 * 1024
BATCH_RECORDS = 65_536
HOUR_US = record.HOUR_MS * 1000
BOUNDED = ("partition", "offset", "timestamp", "hour")
"""The columns by whose statistics readers leave files out."""

Bounds = tuple[Any, Any]


@dataclass(frozen=True)
class Claim:
    """What a manifest says of a data file."""

    path: str
    partition: int
    hour: int | None
    """In hours since 1970."""
    records: int
    bounds: Mapping[str, Bounds]

    @property
    def first(self) -> int:
        return int(self.bounds["offset"][0])

    @property
    def last(self) -> int:
        return int(self.bounds["offset"][1])

    @property
    def name(self) -> str:
        """The end of its path, which tells its place and nothing personal."""
        return self.path.rpartition("/archive/")[2]


@dataclass(frozen=True)
class Misplaced:
    """Rows that a file should not hold."""

    partition: int
    first: int
    count: int
    why: str


@dataclass(frozen=True)
class Examined:
    """What a file holds: the imprints of the rows that belong there, the rows that do not, what else is wrong."""

    rows: Imprints
    misplaced: list[Misplaced]
    faults: list[str]


def claims(table: Table, snapshot: int) -> Iterator[Claim]:
    """What the manifests of a snapshot say of every data file; one that is named twice comes twice."""
    scan = table.scan(snapshot_id=snapshot)
    for task in scan.plan_files():
        yield claim(task.file)


def claim(file: DataFile) -> Claim:
    hour = file.partition[1]
    return Claim(
        path=file.file_path,
        partition=int(file.partition[0]),
        hour=None if hour is None else int(hour) // HOUR_US,
        records=file.record_count,
        bounds={name: _bounds(file, name) for name in BOUNDED},
    )


def _bounds(file: DataFile, name: str) -> Bounds:
    field = record.SCHEMA.find_field(name)
    assert isinstance(field.field_type, PrimitiveType)
    low, high = (file.lower_bounds or {}).get(field.field_id), (file.upper_bounds or {}).get(field.field_id)
    # Without statistics a reader must look into the file: it claims every offset there is.
    unknown = (0, 2**63 - 1) if name == "offset" else (None, None)
    if low is None or high is None:
        return unknown
    return from_bytes(field.field_type, low), from_bytes(field.field_type, high)


def examine(io: FileIO, claimed: Claim, *, prefix: str) -> Examined:
    """Read a file whole and hold it against its claim; `prefix` is the folder of its topic's partition."""
    kept: list[Imprints] = []
    misplaced: list[Misplaced] = []
    seen: dict[str, Bounds] = {}
    records = 0
    try:
        for batch in _batches(io, claimed.path):
            records += len(batch)
            wrong = _wrong(batch, claimed)
            misplaced.extend(_misplaced(batch, wrong))
            belongs = ~np.logical_or.reduce(list(wrong.values()))
            kept.append(imprints(batch.select(["offset", *PARTS])).where(belongs))
            seen = _widened(seen, batch)
    except FileNotFoundError:
        return Examined(Imprints.joined(kept), misplaced, ["the file is not there"])
    except (pa.ArrowInvalid, OSError) as error:
        if ARROW in str(error):  # S3 itself does not answer, or refuses: of the file that says nothing.
            raise
        return Examined(Imprints.joined(kept), misplaced, [f"the file cannot be read: {type(error).__name__}"])
    return Examined(Imprints.joined(kept), misplaced, list(_faults(claimed, prefix, seen=seen, records=records)))


def _batches(io: FileIO, path: str) -> Iterator[pa.RecordBatch]:
    """A file's rows, so few at once that large values fit into memory."""
    with io.new_input(path).open() as stream, pq.ParquetFile(stream) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=1)
        size = max(1, min(BATCH_RECORDS, BATCH_BYTES // max(widest, 1)))
        yield from file.iter_batches(size, columns=["partition", "offset", "hour", *PARTS], use_threads=False)


def _wrong(batch: pa.RecordBatch, claimed: Claim) -> dict[str, npt.NDArray[np.bool_]]:
    """By what is wrong with them: which rows do not belong into the file."""
    partition, offset = batch["partition"].to_numpy(), batch["offset"].to_numpy()
    hours = {"by its timestamp": _filed(batch["timestamp"]), "by its own hour": _hours(batch["hour"])}
    expected = _NO_HOUR if claimed.hour is None else claimed.hour
    return {
        f"its row is not of partition {claimed.partition}": partition != claimed.partition,
        "its offset is not one of the file's": (offset < claimed.first) | (offset > claimed.last),
        **{f"it belongs to another hour {how}": hour != expected for how, hour in hours.items()},
    }


_NO_HOUR = -(2**62)


def _filed(timestamps: pa.Array) -> npt.NDArray[np.int64]:
    """`record.filed_hour` of every timestamp, the implausible ones under a number of their own."""
    known = pc.fill_null(timestamps, record.PLAUSIBLE_MS.start - 1).to_numpy()
    plausible = (known >= record.PLAUSIBLE_MS.start) & (known < record.PLAUSIBLE_MS.stop)
    return np.where(plausible, known // record.HOUR_MS, _NO_HOUR)


def _hours(hours: pa.Array) -> npt.NDArray[np.int64]:
    micros = pc.cast(hours, pa.int64())
    whole = np.asarray(pc.fill_null(micros, _NO_HOUR).to_numpy())
    return np.where(whole == _NO_HOUR, _NO_HOUR, whole // HOUR_US)


def _misplaced(batch: pa.RecordBatch, wrong: Mapping[str, npt.NDArray[np.bool_]]) -> Iterator[Misplaced]:
    for why, rows in wrong.items():
        if count := int(rows.sum()):
            at = int(np.argmax(rows))
            yield Misplaced(batch["partition"][at].as_py(), batch["offset"][at].as_py(), count, why)


def _widened(seen: Mapping[str, Bounds], batch: pa.RecordBatch) -> dict[str, Bounds]:
    found = dict(seen)
    for name in BOUNDED:
        column = pc.cast(batch[name], pa.int64())
        ends = pc.min_max(column).as_py()
        if ends["min"] is not None:
            low, high = found.get(name, (ends["min"], ends["max"]))
            found[name] = (min(low, ends["min"]), max(high, ends["max"]))
    return found


def _faults(claimed: Claim, prefix: str, *, seen: Mapping[str, Bounds], records: int) -> Iterator[str]:
    if records != claimed.records:
        yield f"the file holds {records} rows, but its manifest says {claimed.records}"
    for name in BOUNDED:
        if (known := claimed.bounds[name]) != (found := seen.get(name, (None, None))):
            yield f"{name} runs from {found[0]} to {found[1]}, but its manifest says {known[0]} to {known[1]}"
    hour = record.hour_start(claimed.hour) if claimed.hour is not None else None
    place = layout.archive_key("", 0, hour=hour, first=claimed.first, last=claimed.last, plan="")
    expected = prefix + place.removeprefix("/0").removesuffix(".parquet")
    if not claimed.path.startswith(expected):
        yield f"its name should begin with {expected.rpartition('/archive/')[2]}"
