"""Purge: a table's older states removed for good, with every file that only they name.

What goes is read from the metadata files that the table itself names as its former ones: each of them was once
committed, and so was whatever it names, so that no run can commit it any more. They go last: killed on the way, a
second purge finds them and goes on. What was never committed is an orphan, and the sweep's affair.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import ManifestEntryStatus, ManifestFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles

from headrace.errors import MovedError, UpkeepError
from headrace.lake import Lake, keep_time
from headrace.layout import Identifier
from headrace.named import Named, named_by
from headrace.objects import place

TRIES = 10
BATCH = 1000
"""The most that S3 deletes in one call."""


@dataclass(frozen=True)
class Purged:
    """What went."""

    snapshots: int = 0
    branches: tuple[str, ...] = ()
    """Branches and tags other than main."""
    objects: int = 0


def purge(lake: Lake, name: Identifier) -> Purged:
    """Leave nothing of a table but its main branch as it is."""
    branches, snapshots = _expire(lake, name)
    return Purged(snapshots, branches, _free(lake, lake.catalog.load_table(name)))


def _expire(lake: Lake, name: Identifier) -> tuple[tuple[str, ...], int]:
    for _ in range(TRIES):
        table = lake.catalog.load_table(name)
        current = table.current_snapshot()
        others = tuple(ref for ref in table.metadata.refs if ref != MAIN_BRANCH)
        known = (each.snapshot_id for each in table.metadata.snapshots)
        gone = [number for number in known if current and number != current.snapshot_id]
        if not (others or gone):
            return (), 0
        try:
            if others:
                _drop(table, others)
                table = lake.catalog.load_table(name)
            if gone:
                table.maintenance.expire_snapshots().by_ids(gone).commit()
        except CommitFailedException:
            continue
        return others, len(gone)
    raise MovedError(f"{'.'.join(name)}: others committed {TRIES} times meanwhile. Run it again.")


def _drop(table: Table, refs: Iterable[str]) -> None:
    dropping = table.manage_snapshots()
    for ref in refs:
        is_tag = table.metadata.refs[ref].snapshot_ref_type == SnapshotRefType.TAG
        dropping = dropping.remove_tag(ref) if is_tag else dropping.remove_branch(ref)
    dropping.commit()


def _free(lake: Lake, table: Table) -> int:
    """Remove what only former states name: data files, then manifests, lists and at last the metadata."""
    named = Named(_named_now(table))
    former = [(path, metadata) for path in _former(table) if (metadata := _read(table, path))]
    lists = {
        snapshot.manifest_list: snapshot
        for _, metadata in former
        for snapshot in metadata.snapshots
        if snapshot.manifest_list not in named
    }
    manifests: dict[str, ManifestFile] = {}
    for snapshot in lists.values():
        try:
            manifests |= {each.manifest_path: each for each in snapshot.manifests(table.io)}
        except FileNotFoundError:  # a purge before this one came so far
            continue
    unnamed = {path: each for path, each in manifests.items() if path not in named}
    data = {path for each in unnamed.values() for path in _data(table, each) if path not in named}
    gone = 0
    for paths in (data, unnamed, lists, [path for path, _ in former]):
        gone += delete(lake, paths)
    return gone


def _named_now(table: Table) -> Iterator[str]:
    """All that live snapshots name; not the former metadata."""
    former = {entry.metadata_file for entry in table.metadata.metadata_log}
    return (path for path in named_by(table, table.metadata.snapshots) if path not in former)


def _former(table: Table) -> list[str]:
    return [
        entry.metadata_file for entry in table.metadata.metadata_log if entry.metadata_file != table.metadata_location
    ]


def _read(table: Table, path: str) -> TableMetadata | None:
    try:
        return FromInputFile.table_metadata(table.io.new_input(path))
    except FileNotFoundError:
        return None


def _data(table: Table, manifest: ManifestFile) -> Iterator[str]:
    """The files that a manifest tells of, those too that its snapshot took out."""
    try:
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            yield entry.data_file.file_path
    except FileNotFoundError:
        return


def delete(lake: Lake, paths: Iterable[str]) -> int:
    """Remove objects of the lake's bucket; one that is gone already is as good."""
    bucket = place(lake.location)[0]
    keys = sorted(place(path)[1] for path in paths if place(path)[0] == bucket)
    for start in range(0, len(keys), BATCH):
        asked = [{"Key": key} for key in keys[start : start + BATCH]]
        answer = lake.s3.delete_objects(Bucket=bucket, Delete={"Objects": asked, "Quiet": True})  # type: ignore[typeddict-item]
        if errors := answer.get("Errors", []):
            raise UpkeepError(
                f"S3 did not delete {len(errors)} of {len(asked)} objects, the first is {errors[0].get('Key')}: "
                f"{errors[0].get('Code')}. Allow s3:DeleteObject, then run it again."
            )
    return len(keys)


class _Living(_FastAppendFiles):
    """A commit without new files, whose manifests tell of no file that is gone: they would tell its smallest key."""

    def _existing_manifests(self) -> list[ManifestFile]:
        return [self._living(manifest) for manifest in super()._existing_manifests()]

    def _living(self, manifest: ManifestFile) -> ManifestFile:
        if not manifest.deleted_files_count:
            return manifest
        with self.new_manifest_writer(self.spec(manifest.partition_spec_id)) as writer:
            for entry in manifest.fetch_manifest_entry(self._io, discard_deleted=False):
                if entry.status != ManifestEntryStatus.DELETED:
                    writer.existing(entry)
        return writer.to_manifest_file()


def tell_only_of_the_living(table: Table, summary: dict[str, str]) -> None:
    """Commit main as it is, with manifests that name nothing but its files."""
    with table.transaction() as transaction:
        with _Living(Operation.APPEND, transaction, table.io, snapshot_properties=summary):
            pass  # no file
        keep_time(transaction)
