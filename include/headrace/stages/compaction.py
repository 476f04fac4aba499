"""Compaction, planned: small data files of a table made few large ones, and old rows of quarantine deleted, by Spark.

The plan is all that the job gets. One plan is one piece of work, small enough that a run never waits long for its turn.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from pydantic import BaseModel, ConfigDict
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties

from headrace.layout import Identifier

INPUTS = 5
"""A partition with fewer small files stays as it is: the next merge may write them anew anyway."""

SMALL = 0.75
"""A file below this share of the size that the table's files should have is small."""

PIECE_BYTES = 2 * 2**30
"""About how much one piece of work reads and writes."""

PIECE_FILES = 1000

Spark = Callable[[str], str]
"""Takes a plan as JSON, gives what was done as JSON; raises SparkFailed."""


class CompactionPlan(BaseModel):
    """One piece of work."""

    model_config = ConfigDict(frozen=True)

    catalog: str
    table: Identifier
    strategy: str = "binpack"
    """`sort`, by the table's own order, or `binpack`."""
    files: int = 0
    """At most so many are rewritten; none if zero."""
    inputs: int = INPUTS
    """A partition with fewer small files stays as it is."""
    small: float = SMALL
    target: int
    rows_before: int | None = None
    """Delete what was quarantined before: microseconds since 1970."""
    summary: dict[str, str] = {}
    """What the snapshot of a delete says besides."""


class Compacted(BaseModel):
    """What one piece of work did."""

    model_config = ConfigDict(frozen=True)

    files: int = 0
    """So many were rewritten."""
    into: int = 0
    bytes: int = 0


def target(table: Table) -> int:
    """How large the table's files should be."""
    default = TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT
    return int(table.properties.get(TableProperties.WRITE_TARGET_FILE_SIZE_BYTES, default))


def data_files(table: Table) -> list[DataFile]:
    """Those of main."""
    return [task.file for task in table.scan().plan_files()]


def piece(files: Iterable[DataFile], *, target: int) -> int:
    """How many small files the next piece of work takes; zero when no partition has enough of them."""
    small = [file for file in files if file.file_size_in_bytes < SMALL * target]
    crowded = Counter((file.spec_id, str(file.partition)) for file in small)
    chosen = [file for file in small if crowded[file.spec_id, str(file.partition)] >= INPUTS]
    if not chosen:
        return 0
    mean = sum(file.file_size_in_bytes for file in chosen) / len(chosen)
    return max(INPUTS, min(len(chosen), PIECE_FILES, int(PIECE_BYTES / max(mean, 1))))


def has_rows_before(table: Table, moment: datetime) -> bool:
    """Whether a file may hold rows that were quarantined before."""
    older = table.scan(row_filter=f"quarantined_at < '{moment.isoformat()}'")
    return any(True for _ in older.plan_files())
