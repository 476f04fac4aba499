"""Orphans: what upkeep must have removed from an archive's folders."""

from datetime import timedelta

from planting import archive_table
from workshop import Workshop

from headrace.named import Named, named_by
from headrace.stages import upkeep


def check_no_orphans(shop: Workshop) -> None:
    """After upkeep, the archive's folders hold what its table names, and nothing else."""
    while any(each.young for each in kept(shop).swept):
        pass  # S3 tells seconds: what was put in the very second in which upkeep began waits for the next.
    table, s3 = archive_table(shop), shop.lake.s3
    bucket, _, prefix = shop.lake.location.removeprefix("s3://").partition("/")
    names = Named(named_by(table, table.metadata.snapshots))
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}archive/{shop.feed.topic}/")
    keys = (each["Key"] for page in pages for each in page.get("Contents", []))
    # Arrow marks a folder by an empty object whenever it has deleted a file in it.
    lying = [f"{bucket}/{key}" for key in keys if not key.endswith("/")]
    assert [key for key in lying if key not in names] == []
    assert len(lying) == len(names)
    uploads = s3.list_multipart_uploads(Bucket=bucket, Prefix=f"{prefix}archive/{shop.feed.topic}/")
    assert uploads.get("Uploads", []) == []


def kept(shop: Workshop) -> upkeep.Upkeep:
    return upkeep.upkeep(shop.feed, lake=shop.lake, clock=lambda now: now + timedelta(days=2))
