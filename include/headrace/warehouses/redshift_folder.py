"""A folder on S3 for the rows of one load or one look: each try has its own, and takes it away when it is over."""

import json
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from botocore.exceptions import BotoCoreError, ClientError

from headrace import objects

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

log = logging.getLogger(__name__)

FILE_BYTES = 64 * 1024 * 1024
"""How many bytes of rows, before compression, one file gets: a cluster reads several at once, and we hold one."""
BATCH = 1000
"""The most that S3 deletes in one call."""


@dataclass(frozen=True)
class Staged:
    """Rows that lie on S3."""

    manifest: str
    """Where the list of their files lies."""
    rows: int


@dataclass(frozen=True)
class Folder:
    """One try's own place."""

    s3: "S3Client"
    location: str

    def write(self, name: str, batches: Iterator[pa.RecordBatch], *, schema: pa.Schema) -> Staged:
        """Put rows into files of bounded size, and a manifest that names all of them after them."""
        entries, rows = [], 0
        for number, (body, count) in enumerate(files(batches, schema=schema)):
            key = self._key(f"{name}/{number:05d}.parquet")
            self.s3.put_object(Bucket=self._bucket, Key=key, Body=body)
            url = f"s3://{self._bucket}/{key}"
            entries.append({"url": url, "mandatory": True, "meta": {"content_length": len(body)}})
            rows += count
        manifest = self._key(f"{name}.manifest")
        body = json.dumps({"entries": entries}).encode()
        self.s3.put_object(Bucket=self._bucket, Key=manifest, Body=body)
        return Staged(f"s3://{self._bucket}/{manifest}", rows)

    def prefix(self, name: str) -> str:
        """Where the files of something that Redshift unloads lie."""
        return f"s3://{self._bucket}/{self._key(name)}/"

    def read(self, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of files, one after the other."""
        for found in objects.listed(self.s3, self._bucket, self._key(f"{name}/")):
            body = self.s3.get_object(Bucket=self._bucket, Key=found.key)["Body"].read()
            # Older writers' timestamps would become nanoseconds, which only last from 1677 to 2262.
            yield from pq.ParquetFile(pa.BufferReader(body), coerce_int96_timestamp_unit="us").iter_batches()

    def remove(self) -> None:
        keys = [each.key for each in objects.listed(self.s3, self._bucket, self._key(""))]
        for start in range(0, len(keys), BATCH):
            chunk = [{"Key": key} for key in keys[start : start + BATCH]]
            self.s3.delete_objects(Bucket=self._bucket, Delete={"Objects": chunk, "Quiet": True})  # type: ignore[typeddict-item]

    @property
    def _bucket(self) -> str:
        return objects.place(self.location)[0]

    def _key(self, name: str) -> str:
        return f"{objects.place(self.location)[1]}/{name}".lstrip("/")


@contextmanager
def folder(s3: "S3Client", location: str) -> Iterator[Folder]:
    """A folder below a location that nobody else uses; what a killed try leaves of its own, upkeep removes."""
    own = Folder(s3, f"{location.rstrip('/')}/{uuid.uuid4().hex}")
    try:
        yield own
    finally:
        try:
            own.remove()
        except (BotoCoreError, ClientError) as error:
            log.warning("%s: it is left to upkeep, since S3 did not remove it: %s", own.location, type(error).__name__)


def files(batches: Iterator[pa.RecordBatch], *, schema: pa.Schema) -> Iterator[tuple[bytes, int]]:
    """Batches as Parquet files of bounded size, each with its number of rows."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        size += batch.nbytes
        if size >= FILE_BYTES:
            yield _file(waiting, schema)
            waiting, size = [], 0
    if waiting:
        yield _file(waiting, schema)


def _file(batches: list[pa.RecordBatch], schema: pa.Schema) -> tuple[bytes, int]:
    table, sink = pa.Table.from_batches(batches, schema=schema), pa.BufferOutputStream()
    # What Redshift has read from everybody for longest: 96-bit timestamps and Snappy.
    pq.write_table(table, sink, compression="snappy", use_deprecated_int96_timestamps=True, store_schema=False)
    return sink.getvalue().to_pybytes(), table.num_rows
