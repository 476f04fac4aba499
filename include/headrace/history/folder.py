"""Where files of history lie: a disk, or a bucket; a file is fetched as it was when it was found."""

import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from headrace.errors import HistoryError, SourceSilent
from headrace.scratch import writing

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

WILD = "*?["
CHUNK_BYTES = 8 * 1024 * 1024
CHANGED = 412
"""What S3 answers when an object is no longer the one that was found."""


@dataclass(frozen=True)
class Stored:
    """A file that was found, and what tells whether it has changed since."""

    name: str
    state: str


class Folder(Protocol):
    """Finds files by a pattern, and brings one at a time onto this machine."""

    def find(self, pattern: str) -> list[Stored]: ...

    def fetch(self, file: Stored, scratch: Path) -> Path: ...

    def require_same(self, file: Stored) -> None: ...


class Disk:
    """Files of this machine."""

    def find(self, pattern: str) -> list[Stored]:
        found = (Path(name) for name in sorted(glob.glob(pattern, recursive=True)))
        return [Stored(str(path), _state(path)) for path in found if path.is_file()]

    def fetch(self, file: Stored, scratch: Path) -> Path:  # noqa: ARG002 - as a bucket has it
        return Path(file.name)

    def require_same(self, file: Stored) -> None:
        if _state(Path(file.name)) != file.state:
            raise _changed(file.name)


def _state(path: Path) -> str:
    found = path.stat()
    return f"{found.st_size} {found.st_mtime_ns}"


def _changed(name: str) -> HistoryError:
    return HistoryError(f"{name}: it was changed while it was read. Import what is finished; then run it again.")


@dataclass(frozen=True)
class Bucket:
    """Objects of S3; what a name means is the same as on a disk."""

    connect: "Callable[[], S3Client]" = field(repr=False)
    """Asked for a client when the first file is: what is staged already, or given up, does not need one."""

    @cached_property
    def s3(self) -> "S3Client":
        return self.connect()

    def find(self, pattern: str) -> list[Stored]:
        bucket, key = _split(pattern)
        prefix = key[: min((key.index(sign) for sign in WILD if sign in key), default=len(key))]
        return [
            Stored(f"s3://{bucket}/{name}", etag)
            for name, etag in sorted(self._listed(bucket, prefix))
            if name == key or (prefix != key and _matches(name.split("/"), key.split("/")))
        ]

    def _listed(self, bucket: str, prefix: str) -> Iterator[tuple[str, str]]:
        with _answering(f"s3://{bucket}/{prefix}"):
            for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                for each in page.get("Contents", ()):
                    yield each["Key"], each["ETag"]

    def fetch(self, file: Stored, scratch: Path) -> Path:
        bucket, key = _split(file.name)
        path = scratch / Path(key).name
        with _answering(file.name), writing(scratch), path.open("wb") as out:
            body = self.s3.get_object(Bucket=bucket, Key=key, IfMatch=file.state)["Body"]
            for chunk in body.iter_chunks(CHUNK_BYTES):
                out.write(chunk)
        return path

    def require_same(self, file: Stored) -> None:
        """It was fetched as it was found; what became of it since does not matter."""


def _matches(name: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a name is one of a pattern, as on a disk: a star ends at a slash, two of them do not."""
    if not pattern or not name:
        return not name and all(part == "**" for part in pattern)
    if pattern[0] == "**":
        return _matches(name, pattern[1:]) or _matches(name[1:], pattern)
    return fnmatchcase(name[0], pattern[0]) and _matches(name[1:], pattern[1:])


def _split(address: str) -> tuple[str, str]:
    bucket, _, key = address.removeprefix("s3://").partition("/")
    if not key:
        raise HistoryError(f"{address}: name a file in the bucket, such as s3://{bucket}/history/*.parquet.")
    return bucket, key


@contextmanager
def _answering(address: str) -> Iterator[None]:
    """Around what asks for files that need not lie where the lake does."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == CHANGED:
            raise _changed(address) from None
        raise HistoryError(f"{address}: S3 refuses it: {error}") from None
    except BotoCoreError as error:
        raise SourceSilent(f"{address}: S3 does not answer: {error}") from None
