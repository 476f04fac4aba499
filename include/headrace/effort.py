"""Effort: whether so little is to be read that compiling a query would take Spark longer than running it.

Spark makes Java code of each query, compiles it, and warms it up: seconds for rows that it could have gone through one
by one meanwhile. Decided from what tables say of themselves, before any of it is read.
"""

from collections.abc import Iterable

from pyiceberg.table.snapshots import Snapshot

SMALL = 16 * 1024 * 1024
"""So many bytes of files, and no more, are worth no compiling."""
FEW = 10_000
"""So many records of a larger archive."""
LARGE = 1024 * 1024 * 1024
"""From an archive of this size on, what may have to read all of it is compiled in any case."""


def bytes_of(snapshot: Snapshot | None) -> int:
    """How large the files of a snapshot are; what nobody has noted may be of any size."""
    if snapshot is None:
        return 0
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    return int(summary.get("total-files-size", LARGE))


def is_small(snapshots: Iterable[Snapshot | None]) -> bool:
    """Whether all of these tables together are small."""
    return sum(map(bytes_of, snapshots)) <= SMALL


def is_few(spans: Iterable[tuple[int, int]], *, archive: Snapshot | None) -> bool:
    """Whether so few records are read that the size of their archive is nothing, unless it is very large."""
    return sum(next_ - first for first, next_ in spans) <= FEW and bytes_of(archive) < LARGE
