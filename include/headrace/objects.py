"""Objects on S3: where a location lies, and what is listed below it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class Object:
    """One object as S3 lists it."""

    key: str
    bytes: int
    modified: datetime
    """By S3's own clock."""


def place(location: str) -> tuple[str, str]:
    """The bucket of a location and what comes after it, without slashes around."""
    bucket, _, prefix = re.sub(r"^\w+://", "", location).partition("/")
    return bucket, prefix.strip("/")


def listed(s3: "S3Client", bucket: str, prefix: str) -> Iterator[Object]:
    """What lies below a prefix, a page of S3's list at a time."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for found in page.get("Contents", []):
            if not found["Key"].endswith("/"):  # Arrow marks a folder so whenever it has deleted a file in it.
                yield Object(found["Key"], found["Size"], found["LastModified"])


def folders(s3: "S3Client", bucket: str, prefix: str) -> Iterator[str]:
    """The folders right below a prefix, each with the prefix and a slash at its end."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/"):
        for found in page.get("CommonPrefixes", []):
            yield found["Prefix"]
