"""Named: every object that an Iceberg table's live snapshots and metadata name, in eight bytes each."""

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b

import numpy as np
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot


class Named:
    """A set of paths, kept as hashes: two that collide would spare an object, never cost one."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._hashes = np.unique(np.fromiter(map(_hash, paths), np.uint64))

    def joined(self, paths: Iterable[str]) -> "Named":
        """These and more."""
        more = Named(paths)
        more._hashes = np.union1d(self._hashes, more._hashes)
        return more

    def __contains__(self, path: str) -> bool:
        wanted = np.uint64(_hash(path))
        at = int(np.searchsorted(self._hashes, wanted))
        return at < len(self._hashes) and bool(self._hashes[at] == wanted)

    def __len__(self) -> int:
        return len(self._hashes)


def _hash(path: str) -> int:
    """Of where an object is; s3 and s3a say the same."""
    return int.from_bytes(blake2b(re.sub(r"^\w+://", "", path).encode(), digest_size=8).digest(), "big")


def tips(table: Table) -> list[Snapshot]:
    """The newest snapshot of every branch and tag: what nearly every live file is named by."""
    newest = {ref.snapshot_id for ref in table.metadata.refs.values()}
    return [snapshot for snapshot in table.metadata.snapshots if snapshot.snapshot_id in newest]


def named_by(table: Table, snapshots: Iterable[Snapshot]) -> Iterator[str]:
    """Data files and manifests, of these snapshots; metadata, statistics and lists of manifests, of the whole table."""
    metadata = table.metadata
    yield table.metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (statistics.statistics_path for statistics in metadata.statistics)
    yield from (statistics.statistics_path for statistics in metadata.partition_statistics)
    yield from (snapshot.manifest_list for snapshot in metadata.snapshots)
    seen: set[str] = set()
    for snapshot in snapshots:
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            yield manifest.manifest_path
            # What a snapshot has deleted it no longer reads: only an older one may still name it.
            for entry in manifest.fetch_manifest_entry(table.io):
                yield entry.data_file.file_path
