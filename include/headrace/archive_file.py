"""An archive file: envelopes of one partition and hour as Parquet, encoded as they come.

Spark's workers run this too, who know no Iceberg: what a manifest says about a file is made of its footer elsewhere.
"""

import base64
import io
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PIECE = 2**20

SMALL = ["partition", "timestamp_type", "leader_epoch", "hour"]
"""Columns of few values. Payloads hardly repeat: a dictionary of them would cost time and save nothing."""
TELLING = ["partition", "offset", "timestamp", "timestamp_type", "leader_epoch", "hour"]
"""Columns whose smallest and largest values are kept. Those of payloads would be personal data in manifests."""


@dataclass(frozen=True)
class ArchiveFile:
    """A file as it was written."""

    key: str
    """Below the archive's prefix."""
    records: int
    size: int
    footer: bytes
    """Its Parquet footer as a file of its own, so that nothing is read back."""

    @property
    def metadata(self) -> pq.FileMetaData:
        return pq.read_metadata(pa.BufferReader(self.footer))


class Encoder:
    """One Parquet file in memory; each table that is written becomes a row group of it."""

    def __init__(self, schema: pa.Schema) -> None:
        self._sink = io.BytesIO()  # Arrow's own buffer doubles when it grows: of a large file, half would be empty
        self._footers: list[pq.FileMetaData] = []
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=SMALL,
            write_statistics=TELLING,
            metadata_collector=self._footers,
        )

    @property
    def size(self) -> int:
        """The bytes of it so far."""
        return self._sink.tell()

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> tuple[bytes, bytes]:
        """The whole file, and its footer."""
        self._writer.close()
        footer = pa.BufferOutputStream()
        self._footers[0].write_metadata_file(footer)
        return self._sink.getvalue(), footer.getvalue().to_pybytes()


def put(client: "S3Client", path: str, body: bytes) -> None:
    """Put a file where none may be yet.

    S3's answer may be lost and the client asks again: then the very same bytes are there, and it is done.
    """
    bucket, _, key = path.removeprefix("s3://").partition("/")
    # A file object, or a checksum that the client makes while it sends, goes out in pieces of 16 kB, and for each of
    # them a thread that puts waits until the one that reads lets go of Python's lock. Bytes go out at once.
    checksum = base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()
    try:
        client.put_object(Bucket=bucket, Key=key, Body=body, ChecksumCRC32=checksum, IfNoneMatch="*")
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("PreconditionFailed", "412"):
            raise
        if not _is_there(client, bucket, key=key, body=body):
            raise


def _is_there(client: "S3Client", bucket: str, *, key: str, body: bytes) -> bool:
    found = client.get_object(Bucket=bucket, Key=key)
    if found["ContentLength"] != len(body):
        return False
    pieces = found["Body"].iter_chunks(PIECE)
    start = 0
    for piece in pieces:
        if piece != body[start : start + len(piece)]:
            return False
        start += len(piece)
    return start == len(body)
