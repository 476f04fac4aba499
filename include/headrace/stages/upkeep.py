"""Upkeep: remove what no snapshot of an archive names and no extract can commit any more, and what imports left.

An object is an orphan when three things are so. No live snapshot of the archive names it. It was there before a fence:
an empty commit, after which no extract that planned earlier can land. And it is older than any extract may become, by
S3's own clock. Each of the last two alone would be enough; together they forgive a mistake in either. Where the files
tell of a table that the catalog does not know, nothing is an orphan: somebody has to look first.

What an import has staged is an orphan when no manifest names it and it is older than staging may take.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from headrace import away, duration, heads, layout, objects
from headrace.errors import ForeignTable, MovedError, UpkeepError
from headrace.feed import Feed
from headrace.history import staging
from headrace.history.staging import STAGING_LIMIT
from headrace.lake import Lake, heads_of, keep_time
from headrace.lineage import is_foreign
from headrace.named import Named, named_by, tips
from headrace.objects import Object, place

MARGIN = timedelta(hours=1)
"""Beyond the longest run: for a commit that began in time, and for clocks within S3."""
BATCH = 1000
"""The most that S3 deletes in one call."""
LISTED = 20
FENCES = 10

DATA = re.compile(r"\d{20}-\d{20}-(?P<feed>[a-z][a-z0-9_]{0,47})\.[0-9a-f]{12}\.parquet")
"""What extract calls its files; a name that tells no feed could be any archive's, and is left alone."""
METADATA = re.compile(r".+\.(metadata\.json|avro)")

Clock = Callable[[datetime], datetime]
"""S3's time, as upkeep takes it; tests let it run ahead."""


@dataclass
class Swept:
    """What upkeep did with one kind of objects, or in a dry run would."""

    kind: str
    removed: int = 0
    bytes: int = 0
    young: int = 0
    """Nothing names them yet, but an extract or an import may: a later upkeep looks again."""
    unknown: int = 0
    """Not called as ours are called: somebody else's, and left alone."""
    first: list[str] = field(default_factory=list)
    """The keys of the first few that were removed."""


@dataclass(frozen=True)
class Upkeep:
    """What one upkeep did."""

    feed: str
    older_than: timedelta
    fenced: bool
    swept: tuple[Swept, ...]

    @property
    def removed(self) -> int:
        return sum(each.removed for each in self.swept)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.swept)


def allowed_age(feed: Feed) -> timedelta:
    """How old a file may be while an extract of the feed could still commit it: all tries of a task, and a margin."""
    runs = feed.declaration.runs
    tries = duration.parse(runs.time_limit) * (1 + runs.retries)
    return tries + duration.parse(runs.retry_delay) * runs.retries + MARGIN


@away.tells
def upkeep(
    feed: Feed, *, lake: Lake, older_than: timedelta | None = None, dry_run: bool = False, clock: Clock | None = None
) -> Upkeep:
    """Remove a feed's orphans; to do so twice, or twice at once, changes nothing more."""
    age = max(older_than or timedelta(), allowed_age(feed))
    now = _now(lake)
    table = lake.find(layout.archive_table(feed.name))
    sweep = _Sweep(feed, lake, before=now, today=clock(now) if clock else now, age=age)
    fenced, swept = _keep_archive(sweep, table, dry_run=dry_run) if table else (False, ())
    return Upkeep(feed.name, age, fenced, (*swept, sweep.imports(remove=not dry_run)))


def _keep_archive(sweep: "_Sweep", table: Table, *, dry_run: bool) -> tuple[bool, tuple[Swept, ...]]:
    """Whether there was a fence, and what was removed behind it."""
    # Most often the newest snapshots name everything: then the others need not be read.
    named = Named(named_by(table, tips(table)))
    suspects = sweep.through(table, named)
    if any(each.removed for each in suspects):
        sweep.refuse_foreign(table, named)
        named = Named(named_by(table, table.metadata.snapshots))
        suspects = sweep.through(table, named)
    if dry_run or not any(each.removed for each in suspects):
        return False, suspects
    fenced, known = fence(sweep.feed, sweep.lake), {each.snapshot_id for each in table.metadata.snapshots}
    since = [each for each in fenced.metadata.snapshots if each.snapshot_id not in known]
    return True, sweep.through(fenced, named.joined(named_by(fenced, since)), remove=True)


def _now(lake: Lake) -> datetime:
    """S3's own time."""
    answer = lake.s3.list_objects_v2(Bucket=place(lake.location)[0], MaxKeys=1)
    return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])


def fence(feed: Feed, lake: Lake) -> Table:
    """Make sure that no extract which has planned before can commit: an empty commit, with the heads as they are.

    Somebody else's new snapshot is as good a fence. A commit that leaves the snapshot as it was, such as that of a
    property, is none.
    """
    for _ in range(FENCES):
        table = lake.catalog.load_table(layout.archive_table(feed.name))
        planned_from = table.current_snapshot()
        properties = {heads.PROPERTY: heads_of(table).to_json(), "headrace.upkeep": "fence"}
        try:
            with table.transaction() as transaction:
                with transaction.update_snapshot(snapshot_properties=properties).fast_append():
                    pass
                keep_time(transaction)
        except CommitFailedException:
            moved = lake.catalog.load_table(layout.archive_table(feed.name))
            if moved.current_snapshot() != planned_from:
                return moved
        else:
            return table
    raise MovedError(f"archive of {feed.name}: others committed {FENCES} times meanwhile. Run upkeep again.")


@dataclass(frozen=True)
class _Sweep:
    """One way through all folders of a feed, a page of S3's list at a time."""

    feed: Feed
    lake: Lake
    before: datetime
    """Only what was there then can be an orphan."""
    today: datetime
    age: timedelta
    """Only what is older today can be one."""

    def through(self, table: Table, named: Named, *, remove: bool = False) -> tuple[Swept, ...]:
        """Count the orphans, and remove them if asked to."""
        data, metadata, uploads = Swept("data files"), Swept("metadata files"), Swept("unfinished uploads")
        orphans = chain(
            self._orphans(self._data_files(data), named, data),
            self._orphans(self._metadata_files(table, metadata), named, metadata),
        )
        self._remove_all(orphans, really=remove)
        self._abort_uploads(table, uploads, really=remove)
        return data, metadata, uploads

    def imports(self, *, remove: bool) -> Swept:
        """Count what imports have left staged, and remove it if asked to."""
        swept = Swept("staged for imports")
        oldest = self.today - max(self.age, STAGING_LIMIT)
        self._remove_all(self._old(staging.orphans(self.lake, self.feed.name), swept, oldest=oldest), really=remove)
        return swept

    def refuse_foreign(self, table: Table, named: Named) -> None:
        """Stop where files may be those of a table that the catalog has lost sight of."""
        if (bucket := place(table.location())[0]) != self._bucket:
            raise ForeignTable(
                f"archive of {self.feed.name}: its table lies in the bucket {bucket}, but the lake in {self._bucket}: "
                f"nothing was removed. Upkeep needs both in one."
            )
        for each in self._listed(self._metadata_folder(table)):
            path = f"{self._bucket}/{each.key}"
            if not each.key.endswith(".metadata.json") or path in named or each.modified >= self.before:
                continue
            if is_foreign(table, f"s3://{path}"):
                raise ForeignTable(
                    f"archive of {self.feed.name}: {path} tells of snapshots that the catalog does not know: nothing "
                    f"was removed. Was the table dropped and made again, or the catalog restored from an older copy, "
                    f"or does another one use this place? Register the table from its newest metadata file, or, if "
                    f"nobody needs what that names, delete the file and run upkeep again."
                )

    def _orphans(self, found: Iterator[Object], named: Named, swept: Swept) -> Iterator[Object]:
        unnamed = (each for each in found if f"{self._bucket}/{each.key}" not in named)
        return self._old(unnamed, swept, oldest=self._oldest)

    def _old(self, found: Iterator[Object], swept: Swept, *, oldest: datetime) -> Iterator[Object]:
        """Those that are old enough to go, counted."""
        for each in found:
            if each.modified >= self.before or each.modified > oldest:
                swept.young += 1
                continue
            _count(swept, each.key, bytes_=each.bytes)
            yield each

    def _data_files(self, swept: Swept) -> Iterator[Object]:
        drains = self.feed.declaration.topic.drains
        for topic in (self.feed.topic, *([drains.topic] if drains else [])):
            for folder in self._partitions(f"{self._prefix}archive/{topic}/"):
                for each in self._listed(folder):
                    if not (name := DATA.fullmatch(each.key.rpartition("/")[2])):
                        swept.unknown += 1
                    elif name["feed"] == self.feed.name:
                        yield each

    def _metadata_files(self, table: Table, swept: Swept) -> Iterator[Object]:
        for each in self._listed(self._metadata_folder(table)):
            if METADATA.fullmatch(each.key.rpartition("/")[2]):
                yield each
            else:
                swept.unknown += 1

    def _metadata_folder(self, table: Table) -> str:
        return f"{place(table.location())[1]}/metadata/"

    def _partitions(self, folder: str) -> Iterator[str]:
        """The folders of a topic's partitions; the feed's own metadata may lie beside them."""
        for found in objects.folders(self.lake.s3, self._bucket, folder):
            if found.rstrip("/").rpartition("/")[2].isdecimal():
                yield found

    def _listed(self, folder: str) -> Iterator[Object]:
        return objects.listed(self.lake.s3, self._bucket, folder)

    def _remove_all(self, orphans: Iterator[Object], *, really: bool) -> None:
        batch: list[str] = []
        for orphan in orphans:
            batch.append(orphan.key)
            if len(batch) == BATCH:
                self._remove(batch, really=really)
                batch = []
        self._remove(batch, really=really)

    def _remove(self, keys: list[str], *, really: bool) -> None:
        if not keys or not really:
            return
        deleted = self.lake.s3.delete_objects(
            Bucket=self._bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
        )
        if errors := deleted.get("Errors", []):
            raise UpkeepError(
                f"feed {self.feed.name}: S3 did not delete {len(errors)} of {len(keys)} orphans, the first is "
                f"{errors[0].get('Key')}: {errors[0].get('Code')}. Allow s3:DeleteObject, then run upkeep again."
            )

    def _abort_uploads(self, table: Table, swept: Swept, *, really: bool) -> None:
        """Parts of files that were never finished: S3 lists them nowhere else, and bills them."""
        for upload in self._uploads(self._metadata_folder(table)):
            if upload["Initiated"] >= self.before or upload["Initiated"] > self._oldest:
                swept.young += 1
                continue
            _count(swept, upload["Key"], bytes_=0)
            if really:
                self.lake.s3.abort_multipart_upload(Bucket=self._bucket, Key=upload["Key"], UploadId=upload["UploadId"])

    def _uploads(self, folder: str) -> Iterator[Mapping[str, Any]]:
        pages = self.lake.s3.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket, Prefix=folder)
        for page in pages:
            yield from page.get("Uploads", [])

    @property
    def _oldest(self) -> datetime:
        return self.today - self.age

    @property
    def _bucket(self) -> str:
        return place(self.lake.location)[0]

    @property
    def _prefix(self) -> str:
        prefix = place(self.lake.location)[1]
        return f"{prefix}/" if prefix else ""


def _count(swept: Swept, key: str, *, bytes_: int) -> None:
    swept.removed += 1
    swept.bytes += bytes_
    if len(swept.first) < LISTED:
        swept.first.append(key)
