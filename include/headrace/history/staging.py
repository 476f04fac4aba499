"""Staging: an import's records on S3, sorted and encoded once, so that a resumed import goes on with the very same.

Below `<lake>/import/<feed>/<import id>/`, each object is written once and never changed:

    <attempt>/00000.parquet …   the records in chunks; gone when the import is done
    <attempt>/rejected.parquet  the rows that are no records: where, which field, why
    <attempt>/begun.json        where the topic ended before the attempt's first record was published
    manifest.json               which attempt counts; written after its chunks, by whoever is first
    report.json                 how it ended
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from headrace import layout, objects
from headrace.errors import HistoryError
from headrace.lake import Lake
from headrace.objects import Object

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PRECONDITION_FAILED, CONFLICT = 412, 409
CREATE_TRIES = 5
"""How often an object is put while another's put of the same name is under way."""
CREATE_PAUSE_S = 0.2
REJECTED, BEGUN = "rejected.parquet", "begun.json"
STAGING_LIMIT = timedelta(days=7)
"""How long staging may take: upkeep removes older chunks that no manifest names."""
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
    bytes: int = 0
    """What they take in the topic, before compression."""
    rejected: Mapping[str, int]
    chunks: tuple[Chunk, ...]

    @property
    def names(self) -> list[str]:
        """What the attempt has staged."""
        listed = [REJECTED] if self.rejected else []
        return [f"{self.attempt}/{name}" for name in (*(chunk.name for chunk in self.chunks), *listed)]


class Begun(Noted):
    """Where the topic ended before an attempt's first record."""

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
    wish: str | None = None
    """Who asked for it, if it was somebody who may ask the same twice: a run of the DAG, which tries again."""


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
        # Whoever was quicker has tidied up behind us; else only a discard takes chunks away.
        if not {self._key(name) for name in manifest.names} <= set(self._keys()) and self.manifest() is None:
            raise self._given_up()
        self._create("manifest.json", manifest.model_dump_json().encode())
        if (settled := self.manifest()) is None:
            raise self._given_up()
        return settled

    def begun(self, attempt: str) -> Begun | None:
        found = self._get(f"{attempt}/{BEGUN}")
        return Begun.model_validate_json(found) if found is not None else None

    def begin(self, attempt: str, begun: Begun) -> Begun:
        """Note where the topic ends, unless that was noted before."""
        self._create(f"{attempt}/{BEGUN}", begun.model_dump_json().encode())
        if (noted := self.begun(attempt)) is None:
            raise self._given_up()
        return noted

    def report(self) -> Report | None:
        found = self._get("report.json")
        return Report.model_validate_json(found) if found is not None else None

    def finish(self, report: Report) -> Report:
        """Write how it ended, unless another run did; the one that counts is given back."""
        self._create("report.json", report.model_dump_json().encode())
        return self.report() or report

    def write(self, attempt: str, name: str, table: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", use_dictionary=False)
        self._create(f"{attempt}/{name}", sink.getvalue().to_pybytes())

    def read(self, attempt: str, name: str) -> pa.Table:
        body = self._get(f"{attempt}/{name}")
        if body is None and self.report() is not None:
            raise HistoryError(f"{self.location}: another run of this import has finished it, and tidied up.")
        if body is None:
            raise self._given_up()
        return pq.read_table(pa.BufferReader(body))

    def tidy(self, keep: Iterable[str]) -> None:
        """Remove what no manifest names: the chunks of other attempts, or of an import that is done."""
        kept = {self._key(name) for name in (*keep, "manifest.json", "report.json")}
        self._delete([key for key in self._keys() if key not in kept])

    def remove(self) -> int:
        """Remove all of it, and tell how many objects that were; whoever comes next begins anew."""
        keys = list(self._keys())
        # The manifest goes first: without its chunks it would keep others from staging anew.
        self._delete([self._key("manifest.json")])
        self._delete(keys)
        return len(keys)

    def _given_up(self) -> HistoryError:
        return HistoryError(
            f"{self.location}: what was staged is gone, as after a --discard while this ran. Give up what is left of "
            f"it with --discard, then import once more."
        )

    @property
    def _s3(self) -> "S3Client":
        return self.lake.s3

    @property
    def _bucket(self) -> str:
        return objects.place(self.location)[0]

    def _key(self, name: str) -> str:
        return f"{objects.place(self.location)[1]}/{name}"

    def _keys(self) -> Iterator[str]:
        return (each.key for each in objects.listed(self._s3, self._bucket, self._key("")))

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

        for left in reversed(range(CREATE_TRIES)):
            try:
                self._s3.put_object(Bucket=self._bucket, Key=self._key(name), Body=body, IfNoneMatch="*")
                return True
            except ClientError as error:
                status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
                if status == PRECONDITION_FAILED:
                    return False
                # Another's put is under way, and may fail yet: only the next try tells whether the object is there.
                if status != CONFLICT or not left:
                    raise
            time.sleep(CREATE_PAUSE_S)
        raise AssertionError("the last try returns or raises")


def orphans(lake: Lake, feed: str) -> Iterator[Object]:
    """What no manifest names: of attempts that died, came second or are under way. Other chunks await their import."""
    bucket, prefix = objects.place(layout.imports_location(lake.location, feed))
    for folder in objects.folders(lake.s3, bucket, f"{prefix}/"):
        manifest = Staging(lake, feed, folder.rstrip("/").rpartition("/")[2]).manifest()
        for attempt in objects.folders(lake.s3, bucket, folder):
            if manifest is None or attempt != f"{folder}{manifest.attempt}/":
                yield from objects.listed(lake.s3, bucket, attempt)


def generations(lake: Lake, feed: str, name: str) -> list[int]:
    """How often an import was begun, by its numbers."""
    bucket, prefix = objects.place(layout.import_location(lake.location, feed, f"{name}-"))
    found = objects.folders(lake.s3, bucket, prefix)
    return sorted(int(folder.removeprefix(prefix).rstrip("/")) for folder in found)


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
