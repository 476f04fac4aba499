"""Publish: one atomic switch of the clean table's main branch to what the run checked."""

from dataclasses import dataclass

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.update import AssertRefSnapshotId, RemoveSnapshotRefUpdate, SetSnapshotRefUpdate

from headrace import away, clean, layout, quarantine
from headrace.errors import BranchMoved
from headrace.feed import Feed
from headrace.lake import Lake, ancestors


@dataclass(frozen=True)
class Published:
    """The snapshot that readers see from now on."""

    snapshot: int


@away.tells
def publish(feed: Feed, *, lake: Lake, run: str, checked: int) -> Published | None:
    """Fast-forward main to the snapshot that was checked and drop the branch, in one commit.

    Nothing else may be at the branch's tip by then. None when it has been published already.
    """
    table, branch = lake.find(layout.clean_table(feed.name)), layout.branch(run)
    if table is None:
        return None
    main = table.metadata.refs[MAIN_BRANCH].snapshot_id
    if branch not in table.metadata.refs:
        # A branch that waited long for its approval may have been dropped as a dead run's: then its rows are not there.
        if checked in (snapshot.snapshot_id for snapshot in ancestors(table, main)):
            quarantine.settle(feed, lake=lake, branch=branch)  # whoever published it may have died before
            return None
        raise moved(feed)
    if not is_whole(table, checked):
        raise moved(feed)
    try:
        switch(lake, table, branch=branch, main=main, tip=checked)
    except CommitFailedException as error:
        raise moved(feed) from error
    # Should this not come to pass, the next try does so, or the next run.
    quarantine.settle(feed, lake=lake, branch=branch)
    return Published(checked)


def switch(lake: Lake, table: Table, *, branch: str, main: int, tip: int) -> None:
    """Bring main from one snapshot to another and drop the branch that has it; raises where either has moved."""
    requirements = (
        AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=main),
        AssertRefSnapshotId(ref=branch, snapshot_id=tip),
    )
    updates = (
        SetSnapshotRefUpdate(
            ref_name=MAIN_BRANCH,
            type=SnapshotRefType.BRANCH,
            snapshot_id=tip,
            max_ref_age_ms=None,
            max_snapshot_age_ms=None,
            min_snapshots_to_keep=None,
        ),
        RemoveSnapshotRefUpdate(ref_name=branch),
    )
    lake.catalog.commit_table(table, requirements, updates)


def is_whole(table: Table, tip: int) -> bool:
    """Whether a branch stands on what is published, and one transform alone has written to it.

    A try that was taken for dead may still have written beside its successor, by the same branch: then rows may be
    there twice.
    """
    main, transforms = table.metadata.refs[MAIN_BRANCH].snapshot_id, 0
    for snapshot in ancestors(table, tip):
        if snapshot.snapshot_id == main:
            return transforms <= 1
        transforms += clean.ACCOUNTS in snapshot.summary.additional_properties
    return False


def moved(feed: Feed) -> BranchMoved:
    return BranchMoved(
        f"clean.{feed.name}: another run published since this one's rows were merged, or an earlier try of this run "
        f"wrote to its branch too; nothing was switched. Clear this run's transform task: transform and check run "
        f"again on top of what is published now."
    )
