"""Expiry: which snapshots and branches of a table nobody needs any more. Nothing is removed here."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from headrace import heads, layout

Snapshots = Mapping[int, Snapshot]
"""A table's, by their ids."""


def expired(
    snapshots: Iterable[Snapshot],
    refs: Mapping[str, SnapshotRef],
    *,
    before: datetime,
    recorded: Collection[int] = (),
    needs_heads: bool = True,
) -> list[int]:
    """The snapshots that are older, but for what a branch, a tag or a store still needs.

    Spared are the tips; what lies between main's tip and a snapshot that a store records, so that the store can tell
    what came since; and, of a table with heads, the way from each that stays to the heads that count for it.
    """
    known = {each.snapshot_id: each for each in snapshots}
    kept = {number for number, each in known.items() if each.timestamp_ms >= before.timestamp() * 1000}
    kept |= {ref.snapshot_id for ref in refs.values()}
    if MAIN_BRANCH in refs:
        kept |= _down_to(recorded, known, tip=refs[MAIN_BRANCH].snapshot_id)
    if needs_heads:
        for number in tuple(kept):
            kept |= _to_heads(known, number)
    return [number for number in known if number not in kept]


def _down_to(recorded: Collection[int], snapshots: Snapshots, *, tip: int) -> set[int]:
    line = [each.snapshot_id for each in _line(snapshots, tip)]
    found = [place for place, number in enumerate(line) if number in recorded]
    return set(line[: max(found) + 1]) if found else set()


def _to_heads(snapshots: Snapshots, number: int) -> set[int]:
    way = set()
    for each in _line(snapshots, number):
        way.add(each.snapshot_id)
        if each.summary and heads.PROPERTY in each.summary.additional_properties:
            break
    return way


def dead_branches(snapshots: Iterable[Snapshot], refs: Mapping[str, SnapshotRef], *, before: datetime) -> list[str]:
    """The branches of runs that ended before and were never published.

    A branch without a commit of its own stands on an old snapshot of main, but was made before main moved on from
    there. While main has not, it costs nothing and may have been made a moment ago.
    """
    known = {each.snapshot_id: each for each in snapshots}
    main = refs[MAIN_BRANCH].snapshot_id if MAIN_BRANCH in refs else None
    left = {each.parent_snapshot_id: each.timestamp_ms for each in _line(known, main)}
    return [
        name
        for name, ref in refs.items()
        if ref.snapshot_ref_type == SnapshotRefType.BRANCH
        and name.startswith(layout.RUN_BRANCH)
        and ref.snapshot_id != main
        and left.get(ref.snapshot_id, known[ref.snapshot_id].timestamp_ms) < before.timestamp() * 1000
    ]


def _line(snapshots: Snapshots, number: int | None) -> Iterator[Snapshot]:
    """A snapshot and those before it, the newest first."""
    while number is not None and (found := snapshots.get(number)):
        yield found
        number = found.parent_snapshot_id
