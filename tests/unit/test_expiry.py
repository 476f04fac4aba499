"""Which snapshots and branches expire, told from what a table's metadata says."""

from datetime import UTC, datetime

from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from headrace import heads
from headrace.expiry import dead_branches, expired


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def snapshot(number: int, parent: int | None = None, *, with_heads: bool = True) -> Snapshot:
    """A snapshot that was made in the second of its number."""
    properties = {heads.PROPERTY: "{}"} if with_heads else {}
    summary = Summary(Operation.APPEND, **properties)
    return Snapshot(
        snapshot_id=number, parent_snapshot_id=parent, timestamp_ms=number * 1000, manifest_list="", summary=summary
    )


def line(*numbers: int, without_heads: tuple[int, ...] = ()) -> list[Snapshot]:
    parents = (None, *numbers)
    return [
        snapshot(number, parent, with_heads=number not in without_heads)
        for number, parent in zip(numbers, parents, strict=False)
    ]


def branch(number: int) -> SnapshotRef:
    return SnapshotRef(snapshot_id=number, snapshot_ref_type=SnapshotRefType.BRANCH)


def test_what_is_older_expires_and_the_tip_never_does() -> None:
    assert expired(line(1, 2, 3, 4), {"main": branch(4)}, before=at(3)) == [1, 2]
    assert expired(line(1, 2, 3, 4), {"main": branch(4)}, before=at(9)) == [1, 2, 3]


def test_what_a_branch_or_a_tag_names_stays() -> None:
    tag = SnapshotRef(snapshot_id=1, snapshot_ref_type=SnapshotRefType.TAG)
    assert expired(line(1, 2, 3), {"main": branch(3), "audit": tag}, before=at(9)) == [2]


def test_the_way_to_the_heads_stays() -> None:
    """Iceberg's own procedures write none: until they are carried on, an older snapshot has them."""
    snapshots = line(1, 2, 3, 4, without_heads=(3, 4))
    assert expired(snapshots, {"main": branch(4)}, before=at(9)) == [1]
    assert expired(snapshots, {"main": branch(4)}, before=at(9), needs_heads=False) == [1, 2, 3]


def test_a_store_that_lags_can_tell_what_came_since() -> None:
    snapshots, refs = line(1, 2, 3, 4, 5), {"main": branch(5)}
    assert expired(snapshots, refs, before=at(9), recorded={2, 4}) == [1]
    assert expired(snapshots, refs, before=at(9), recorded={7}) == [1, 2, 3, 4]


def test_a_table_without_a_snapshot_has_nothing_to_expire() -> None:
    assert expired([], {}, before=at(9)) == []
    assert dead_branches([], {}, before=at(9)) == []


def test_the_branch_of_a_run_that_ended_long_ago_is_dead() -> None:
    snapshots = [*line(1, 2), snapshot(3, 2), snapshot(8, 2)]
    refs = {"main": branch(2), "run_dead": branch(3), "run_new": branch(8), "mine": branch(3)}
    assert dead_branches(snapshots, refs, before=at(5)) == ["run_dead"]


def test_a_branch_without_a_commit_is_as_old_as_main_has_moved_on() -> None:
    """It was made when its snapshot was main's newest, which may have been so for days."""
    snapshots = line(1, 6)
    assert dead_branches(snapshots, {"main": branch(6), "run_a": branch(1)}, before=at(5)) == []
    assert dead_branches(snapshots, {"main": branch(6), "run_a": branch(1)}, before=at(7)) == ["run_a"]
    assert dead_branches(line(1), {"main": branch(1), "run_a": branch(1)}, before=at(9)) == []
