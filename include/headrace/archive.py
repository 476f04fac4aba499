"""The archive's files: envelopes as Parquet under names of their own, committed with the heads in one snapshot."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.types import IcebergType, StringType

from headrace import archive_file, heads, layout, record
from headrace.archive_file import ArchiveFile
from headrace.errors import MovedError, PlanExpired
from headrace.feed import Feed
from headrace.filing import Filing, Limits
from headrace.heads import Heads
from headrace.lake import Lake, keep_time
from headrace.lane import Lane
from headrace.memory import return_large_blocks
from headrace.placing import Placing

FILE_AHEAD_BYTES = 32 * 2**20
"""How far reading may be ahead of filing."""
FILED_BYTES = 4 * 2**20
"""About how much is filed at once. Filing takes many steps, and before each it waits for Python's lock, which reading
keeps most of the time: the larger the steps, the less they wait."""
LARGE = 4 * 2**20
"""The size of a single value from which on memory is given back at once."""
PUT_AHEAD_BYTES = 64 * 2**20
"""How far filing may be ahead of S3; a single file may be larger."""
PUTS = 4
"""How many files are put at once: the more partitions and hours, the smaller they are."""


def boot_time() -> float:
    """Seconds on a clock that nobody sets and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def archive_of(feed: Feed, lake: Lake) -> Table:
    """The feed's archive table, made at its first extract; with one more column for a drained topic, or a stream."""
    name = layout.archive_table(feed.name)
    table = lake.ensure(name, record.SCHEMA, spec=record.SPEC, properties=record.PROPERTIES)
    wanted: dict[str, tuple[IcebergType, str]] = {}
    if feed.declaration.topic.drains:
        wanted[record.AFTER] = (record.AFTER_TYPE, record.AFTER_DOC)
    if feed.declaration.kinesis:
        wanted[record.SEQUENCE] = (StringType(), record.SEQUENCE_DOC)
    lacking = [column for column in wanted if column not in table.schema().column_names]
    if lacking:
        try:
            with table.update_schema() as update:
                for column in lacking:
                    update.add_column(column, wanted[column][0], doc=wanted[column][1])
        except CommitFailedException as error:
            raise MovedError(f"archive of {feed.name}: another extract changed it meanwhile. Run it again.") from error
    return table


@dataclass(frozen=True)
class Archive:
    """The archive's side of an extract: where files go and how they are committed."""

    lake: Lake
    table: Table
    topic: str
    drains: str | None = None
    """The drained topic, whose partitions have mirrored numbers here."""
    drained: Mapping[int, int] = field(default_factory=dict)
    """How far the drained topic is archived with this plan, by mirrored partition."""
    time_limit: timedelta = timedelta(hours=1)
    """How old a plan may be when it is committed: upkeep takes older files that nothing names for orphans."""
    opened: float = field(default_factory=boot_time)
    """When it was planned, which is before its first file is put."""

    def file(self, batches: Iterable[pa.RecordBatch], *, plan: str, limits: Limits) -> list[DataFile]:
        """Put the envelopes of all batches as files, and describe these for the commit.

        Reading goes on in the caller's thread while what was read is encoded in a second and put by others.
        """
        with Lane(ahead=PUT_AHEAD_BYTES, threads=PUTS) as puts, Lane(ahead=FILE_AHEAD_BYTES) as lane:

            def put(key: str, body: bytes) -> None:
                puts.call(archive_file.put, self.lake.s3, self._path(key), body, bytes_=len(body))

            filing = Filing(self.schema, plan=plan, limits=limits, placing=self.placing, put=put)
            for several, bytes_ in gathered(batches):
                lane.call(filing.add, *several, bytes_=bytes_)
            lane.finish()
            files = filing.close()
        return [self.described(file) for file in files]

    @property
    def placing(self) -> Placing:
        return Placing(self.topic, self.drains, self.drained)

    @property
    def schema(self) -> pa.Schema:
        return schema_to_pyarrow(self.table.schema())

    @property
    def location(self) -> str:
        return f"{self.lake.location.rstrip('/')}/archive"

    def _path(self, key: str) -> str:
        return f"{self.location}/{key}"

    def described(self, file: ArchiveFile) -> DataFile:
        return data_file(self.table, self._path(file.key), size=file.size, metadata=file.metadata)

    def commit(self, files: list[DataFile], *, head: Heads) -> None:
        """Add the files and the heads in one commit on top of the very snapshot that was planned from."""
        age = timedelta(seconds=boot_time() - self.opened)
        if age > self.time_limit:
            raise PlanExpired(
                f"archive of {self.topic}: this extract was planned {age} ago, but a run may take {self.time_limit}: "
                f"nothing was committed. Run it again; if it really needs so long, raise runs.time_limit."
            )
        try:
            with self.table.transaction() as transaction:
                properties = {heads.PROPERTY: head.to_json()}
                with transaction.update_snapshot(snapshot_properties=properties).fast_append() as append:
                    for file in files:
                        append.append_data_file(file)
                keep_time(transaction)
        except CommitFailedException as error:
            raise MovedError(
                f"archive of {self.topic}: another extract committed first, nothing of this one landed. Run it again."
            ) from error


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[list[pa.RecordBatch], int]]:
    """Batches and their bytes; small ones together."""
    several: list[pa.RecordBatch] = []
    bytes_ = 0
    for batch in batches:
        if batch.nbytes > LARGE and (pc.max(pc.binary_length(batch["value"])).as_py() or 0) > LARGE:
            return_large_blocks()
        several.append(batch)
        bytes_ += batch.nbytes
        if bytes_ >= FILED_BYTES:
            yield several, bytes_
            several, bytes_ = [], 0
    if several:
        yield several, bytes_


def data_file(table: Table, path: str, *, size: int, metadata: pq.FileMetaData) -> DataFile:
    """What a manifest says about a file, from the footer at hand, so that nothing is read back."""
    schema, spec = table.schema(), table.spec()
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=metadata,
        stats_columns=compute_statistics_plan(schema, table.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=statistics.partition(spec, schema),
        file_size_in_bytes=size,
        sort_order_id=None,
        spec_id=spec.spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
