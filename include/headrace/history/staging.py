"""Staging: an import's records on S3, sorted and encoded once, so that a resumed import goes on with the very same.

Below `<lake>/import/<feed>/<import id>/`, each object is written once and never changed:

    <attempt>/00000.parquet …   the records in chunks; gone when the import is done
    <attempt>/rejected.parquet  the rows that are no records: where, which field, why
    manifest.json               which attempt counts; written last, by whoever is first
    begun.json                  where the topic ended before the first record was published
    report.json                 how it ended
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from headrace import layout
from headrace.errors import HistoryError
from headrace.lake import Lake

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PRECONDITION_FAILED, CONFLICT, NOT_FOUND = 412, 409, 404
CHUNK_ROWS = 50_000
CHUNK_BYTES = 32 * 1024 * 1024


class Noted(BaseModel):
    """What is written as one JSON object."""

    model_config = ConfigDict(frozen=True)


class Chunk(Noted):
    """Some of the staged records."""

    name: str
    rows: int


class Manifest(Noted):
    """What was staged: from here on the source is not asked again."""

    attempt: str
    feed: str
    source: str
    schema_id: int
    staged_at: str
    seconds: float
    total: int
    """Rows that were read of the source's snapshot."""
    counted: int | None
    """Rows that the source itself counted in that snapshot, where it could."""
    rows: int
    """Records that are to be published."""
    oldest: int | None
    newest: int | None
    """The lowest and the highest timestamp among them, where rows have one."""
    rejected: Mapping[str, int]
    chunks: tuple[Chunk, ...]


class Begun(Noted):
    """Where the topic ended before the first record."""

    topic_id: str
    ends: Mapping[int, int]


class Report(Noted):
    """How an import ended."""

    import_id: str
    feed: str
    topic: str
    source: str
    total: int
    published: int
    rejected: Mapping[str, int]
    rejected_at: str | None
    proof: str
    """How the published records were counted: `topic`, read back from it, or `acknowledged` by the broker."""
    finished_at: str


@dataclass(frozen=True)
class Staging:
    """One import's folder on S3."""

    lake: Lake
    feed: str
    import_id: str

    @property
    def location(self) -> str:
        return layout.import_location(self.lake.location, self.feed, self.import_id)

    def manifest(self) -> Manifest | None:
        found = self._get("manifest.json")
        return Manifest.model_validate_json(found) if found is not None else None

    def settle(self, manifest: Manifest) -> Manifest:
        """Write the manifest unless another attempt was quicker; the one that counts is given back."""
        self._create("manifest.json", manifest.model_dump_json().encode())
        settled = self.manifest()
        assert settled is not None, "it was written by us or by another"
        return settled

    def begun(self) -> Begun | None:
        found = self._get("begun.json")
        return Begun.model_validate_json(found) if found is not None else None

    def begin(self, begun: Begun) -> Begun:
        """Note where the topic ends, unless that was noted before."""
        self._create("begun.json", begun.model_dump_json().encode())
        noted = self.begun()
        assert noted is not None, "it was written by us or by another"
        return noted

    def report(self) -> Report | None:
        found = self._get("report.json")
        return Report.model_validate_json(found) if found is not None else None

    def finish(self, report: Report) -> None:
        self._create("report.json", report.model_dump_json().encode())

    def write(self, attempt: str, name: str, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", use_dictionary=False)
        self._create(f"{attempt}/{name}", sink.getvalue().to_pybytes())

    def read(self, attempt: str, name: str) -> pa.Table:
        body = self._get(f"{attempt}/{name}")
        if body is None:
            raise HistoryError(f"{self.location}: another run of this import has finished it, and tidied up.")
        return pq.read_table(pa.BufferReader(body))

    def tidy(self, keep: Iterable[str]) -> None:
        """Remove what no manifest names: the chunks of other attempts, or of an import that is done."""
        kept = {self._key(name) for name in (*keep, "manifest.json", "begun.json", "report.json")}
        self._delete([key for key in self._keys("") if key not in kept])

    def remove(self) -> int:
        """Remove all of it, and tell how many objects that were; whoever comes next begins anew."""
        keys = list(self._keys(""))
        # The manifest goes first: without its chunks it would keep others from staging anew.
        self._delete([self._key("manifest.json")])
        self._delete(keys)
        return len(keys)

    @property
    def _s3(self) -> "S3Client":
        return self.lake.s3

    @property
    def _bucket(self) -> str:
        return self.location.removeprefix("s3://").partition("/")[0]

    def _key(self, name: str) -> str:
        return f"{self.location.removeprefix('s3://').partition('/')[2]}/{name}"

    def _keys(self, name: str) -> Iterator[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._key(name))
        return (each["Key"] for page in pages for each in page.get("Contents", ()))

    def _delete(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), 1000):
            objects: Any = [{"Key": key} for key in keys[start : start + 1000]]
            answer = self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
            if left := answer.get("Errors"):
                first = f"{left[0].get('Key')} ({left[0].get('Code')})"
                raise HistoryError(f"{self.location}: S3 did not delete {len(left)} objects, such as {first}.")

    def _get(self, name: str) -> bytes | None:
        try:
            return self._s3.get_object(Bucket=self._bucket, Key=self._key(name))["Body"].read()
        except self._s3.exceptions.NoSuchKey:
            return None

    def _create(self, name: str, body: bytes) -> bool:
        """Whether the object was made; one that is there stays as it is."""
        from botocore.exceptions import ClientError

        try:
            self._s3.put_object(Bucket=self._bucket, Key=self._key(name), Body=body, IfNoneMatch="*")
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in (PRECONDITION_FAILED, CONFLICT):
                return False
            raise
        return True


def generations(lake: Lake, feed: str, name: str) -> list[int]:
    """How often an import was begun, by its numbers."""
    bucket, _, prefix = layout.import_location(lake.location, feed, f"{name}-").removeprefix("s3://").partition("/")
    pages = lake.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    folders = [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", ())]
    return sorted(int(folder.removeprefix(prefix).rstrip("/")) for folder in folders)


def chunked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together to chunks that are bounded in rows and bytes."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for whole in batches:
        for batch in _bounded(whole):
            if waiting and (rows + batch.num_rows > CHUNK_ROWS or size + batch.nbytes > CHUNK_BYTES):
                yield pa.Table.from_batches(waiting)
                waiting, rows, size = [], 0, 0
            waiting.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
    if waiting:
        yield pa.Table.from_batches(waiting)


def _bounded(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in parts that are no larger than a chunk, if single records let it."""
    parts = max(1, -(-batch.nbytes // CHUNK_BYTES))
    step = max(1, min(CHUNK_ROWS, batch.num_rows // parts))
    return (batch.slice(start, step) for start in range(0, batch.num_rows, step))


def dumped(value: Mapping[str, Any]) -> str:
    """JSON in one form, for what is made of it."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
