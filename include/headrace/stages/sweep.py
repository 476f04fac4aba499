"""Sweep: remove what lies in a table's folders and belongs to nothing.

An object is an orphan when three things are so. No live snapshot of the table names it. It is older than any run may
become, by S3's own clock. And no run is at work on it: of an archive it was there before a fence, an empty commit after
which no extract that planned earlier can land; of another table, upkeep has the turn. Each of the last two alone would
be enough; together they forgive a mistake in either. Where the files tell of a table that the catalog does not know,
nothing is an orphan: somebody has to look first.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from headrace import layout, objects
from headrace.errors import ForeignTable, MovedError, UpkeepError
from headrace.feed import Feed
from headrace.history import staging
from headrace.history.staging import STAGING_LIMIT
from headrace.lake import Lake
from headrace.layout import Identifier
from headrace.lineage import is_foreign
from headrace.named import Named, named_by, tips
from headrace.objects import Object, place
from headrace.stages import carrying

BATCH = 1000
"""The most that S3 deletes in one call."""
LISTED = 20
FENCES = 10

ARCHIVED = re.compile(r"\d{20}-\d{20}-(?P<feed>[a-z][a-z0-9_]{0,47})\.[0-9a-f]{12}\.parquet")
"""What extract calls its files; a name that tells no feed could be any archive's, and is left alone."""
WRITTEN = re.compile(r"\d{5}-\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-\d+-\d{5})?\.parquet")
"""What Spark and PyIceberg call theirs."""
METADATA = re.compile(r".+\.(metadata\.json|avro)")

Turn = Callable[[], AbstractContextManager[Table]]
"""Waits for the turn, and gives the table as it is then."""


@dataclass
class Swept:
    """What became of one kind of objects, or in a dry run would."""

    kind: str
    removed: int = 0
    bytes: int = 0
    young: int = 0
    """Nothing names them yet, but a run or an import may: a later upkeep looks again."""
    unknown: int = 0
    """Not called as ours are called: somebody else's, and left alone."""
    first: list[str] = field(default_factory=list)
    """The keys of the first few that were removed."""


@dataclass(frozen=True)
class Sweep:
    """One way through a feed's folders, a page of S3's list at a time."""

    feed: Feed
    lake: Lake
    before: datetime
    """Only what was there then can be an orphan."""
    today: datetime
    age: timedelta
    """Only what is older today can be one."""
    dry_run: bool = False

    def archive(self, table: Table, *, without: Collection[int], turn: Turn) -> tuple[bool, tuple[Swept, ...]]:
        """Whether there was a fence, and what was removed behind it; the fence is set in its turn."""
        named, suspects = self._suspects(table, without)
        orphans = sum(each.removed for each in suspects)
        if self.dry_run or not orphans:
            return False, suspects
        with turn():
            fenced = fence(self.feed, self.lake, orphans=orphans)
        return True, self._through(fenced, _named_since(fenced, table, named), remove=True)

    def written(self, table: Table, *, without: Collection[int], turn: Turn) -> tuple[Swept, ...]:
        """The same for a table that Spark writes, whose runs no fence shuts out: what is removed, is so in its turn."""
        named, suspects = self._suspects(table, without)
        if self.dry_run or not any(each.removed for each in suspects):
            return suspects
        with turn() as now:
            return self._through(now, _named_since(now, table, named), remove=True)

    def free(self, before: Table, after: Table) -> int:
        """Remove what only the snapshots named that a table has no more; the number of objects.

        They were committed once, so that no run can commit them any more, and there is no need for a fence. Killed on
        the way, the rest are orphans.
        """
        left = {each.snapshot_id for each in after.metadata.snapshots}
        gone = [each for each in before.metadata.snapshots if each.snapshot_id not in left]
        named = Named(named_by(after, after.metadata.snapshots))
        freed = {path for path in named_by(before, gone) if path not in named}
        keys = sorted(place(path)[1] for path in freed if place(path)[0] == self._bucket)
        for start in range(0, len(keys), BATCH):
            self._remove(keys[start : start + BATCH], really=True)
        return len(keys)

    def imports(self) -> Swept:
        """What imports have left staged: no manifest names it, and it is older than staging may take."""
        swept = Swept("staged for imports")
        oldest = self.today - max(self.age, STAGING_LIMIT)
        found = self._old(staging.orphans(self.lake, self.feed.name), swept, oldest=oldest)
        self._remove_all(found, really=not self.dry_run)
        return swept

    def staged(self, locations: Collection[str]) -> Swept:
        """What loads that were killed have left on its way to warehouses: no other try looks at it again."""
        swept = Swept("staged for warehouses")
        for location in sorted(locations):
            bucket, prefix = place(layout.stagings_location(location, self.feed.name))
            found = self._old(objects.listed(self.lake.s3, bucket, f"{prefix}/"), swept, oldest=self._oldest)
            self._remove_all(found, really=not self.dry_run, bucket=bucket)
        return swept

    def _suspects(self, table: Table, without: Collection[int]) -> tuple[Named, tuple[Swept, ...]]:
        """What seems to be an orphan; `without` are snapshots that a dry run would have expired."""
        live = [each for each in table.metadata.snapshots if each.snapshot_id not in without]
        # Most often the newest snapshots name everything: then the others need not be read.
        named = Named(named_by(table, tips(table)))
        suspects = self._through(table, named)
        if any(each.removed for each in suspects):
            self._refuse_foreign(table, named)
            named = Named(named_by(table, live))
            suspects = self._through(table, named)
        return named, suspects

    def _through(self, table: Table, named: Named, *, remove: bool = False) -> tuple[Swept, ...]:
        """Count the orphans, and remove them if asked to."""
        data, metadata, uploads = Swept("data files"), Swept("metadata files"), Swept("unfinished uploads")
        orphans = chain(
            self._orphans(self._data_files(table, data), named, data),
            self._orphans(self._metadata_files(table, metadata), named, metadata),
        )
        self._remove_all(orphans, really=remove)
        self._abort_uploads(table, uploads, really=remove)
        return data, metadata, uploads

    def _refuse_foreign(self, table: Table, named: Named) -> None:
        """Stop where files may be those of a table that the catalog has lost sight of."""
        name = ".".join(table.name())
        if (bucket := place(table.location())[0]) != self._bucket:
            raise ForeignTable(
                f"{name}: its table lies in the bucket {bucket}, but the lake in {self._bucket}: nothing was removed. "
                f"Upkeep needs both in one."
            )
        for each in self._listed(_folder(table, "metadata")):
            path = f"{self._bucket}/{each.key}"
            if not each.key.endswith(".metadata.json") or path in named or each.modified >= self.before:
                continue
            if is_foreign(table, f"s3://{path}"):
                raise ForeignTable(
                    f"{name}: {path} tells of snapshots that the catalog does not know: nothing was removed. Was the "
                    f"table dropped and made again, or the catalog restored from an older copy, or does another one "
                    f"use this place? Register the table from its newest metadata file, or, if nobody needs what that "
                    f"names, delete the file and run upkeep again."
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

    def _data_files(self, table: Table, swept: Swept) -> Iterator[Object]:
        if _identifier(table) != layout.archive_table(self.feed.name):
            yield from self._called(self._listed(_folder(table, "data")), WRITTEN, swept)
            return
        drains = self.feed.declaration.topic.drains
        for topic in (self.feed.topic, *([drains.topic] if drains else [])):
            for folder in self._partitions(f"{self._prefix}archive/{topic}/"):
                for each in self._called(self._listed(folder), ARCHIVED, swept):
                    name = ARCHIVED.fullmatch(_name(each))
                    if name and name["feed"] == self.feed.name:
                        yield each

    def _metadata_files(self, table: Table, swept: Swept) -> Iterator[Object]:
        return self._called(self._listed(_folder(table, "metadata")), METADATA, swept)

    def _called(self, found: Iterator[Object], pattern: re.Pattern[str], swept: Swept) -> Iterator[Object]:
        for each in found:
            if pattern.fullmatch(_name(each)):
                yield each
            else:
                swept.unknown += 1

    def _partitions(self, folder: str) -> Iterator[str]:
        """The folders of a topic's partitions; the feed's own metadata may lie beside them."""
        for found in objects.folders(self.lake.s3, self._bucket, folder):
            if found.rstrip("/").rpartition("/")[2].isdecimal():
                yield found

    def _listed(self, folder: str) -> Iterator[Object]:
        return objects.listed(self.lake.s3, self._bucket, folder)

    def _remove_all(self, orphans: Iterator[Object], *, really: bool, bucket: str | None = None) -> None:
        batch: list[str] = []
        for orphan in orphans:
            batch.append(orphan.key)
            if len(batch) == BATCH:
                self._remove(batch, really=really, bucket=bucket)
                batch = []
        self._remove(batch, really=really, bucket=bucket)

    def _remove(self, keys: list[str], *, really: bool, bucket: str | None = None) -> None:
        if not keys or not really:
            return
        deleted = self.lake.s3.delete_objects(
            Bucket=bucket or self._bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
        )
        if errors := deleted.get("Errors", []):
            raise UpkeepError(
                f"feed {self.feed.name}: S3 did not delete {len(errors)} of {len(keys)} orphans, the first is "
                f"{errors[0].get('Key')}: {errors[0].get('Code')}. Allow s3:DeleteObject, then run upkeep again."
            )

    def _abort_uploads(self, table: Table, swept: Swept, *, really: bool) -> None:
        """Parts of files that were never finished: S3 lists them nowhere else, and bills them."""
        for upload in chain(self._uploads(_folder(table, "metadata")), self._uploads(_folder(table, "data"))):
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


def s3_time(lake: Lake) -> datetime:
    """S3's own time."""
    answer = lake.s3.list_objects_v2(Bucket=place(lake.location)[0], MaxKeys=1)
    return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])


def fence(feed: Feed, lake: Lake, *, orphans: int = 0) -> Table:
    """Make sure that no extract which has planned before can commit: an empty commit, with the heads as they are.

    Somebody else's new snapshot is as good a fence. A commit that leaves the snapshot as it was, such as that of a
    property, is none.
    """
    for _ in range(FENCES):
        table = lake.catalog.load_table(layout.archive_table(feed.name))
        planned_from = table.current_snapshot()
        try:
            carrying.commit_empty(table, carrying.with_heads(table, done={"fence": True, "orphans": orphans}))
        except CommitFailedException:
            moved = lake.catalog.load_table(layout.archive_table(feed.name))
            if moved.current_snapshot() != planned_from:
                return moved
        else:
            return table
    raise MovedError(f"archive of {feed.name}: others committed {FENCES} times meanwhile. Run upkeep again.")


def _named_since(now: Table, before: Table, named: Named) -> Named:
    """What was named before, and what is by the snapshots that came since."""
    known = {each.snapshot_id for each in before.metadata.snapshots}
    since = [each for each in now.metadata.snapshots if each.snapshot_id not in known]
    return named.joined(named_by(now, since))


def _identifier(table: Table) -> Identifier:
    namespace, name = table.name()[-2:]
    return namespace, name


def _folder(table: Table, name: str) -> str:
    return f"{place(table.location())[1]}/{name}/"


def _name(each: Object) -> str:
    return each.key.rpartition("/")[2]


def _count(swept: Swept, key: str, *, bytes_: int) -> None:
    swept.removed += 1
    swept.bytes += bytes_
    if len(swept.first) < LISTED:
        swept.first.append(key)
