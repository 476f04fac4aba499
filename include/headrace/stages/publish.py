"""Publish: one atomic switch of the clean table's main branch to what the run checked."""

from dataclasses import dataclass

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.update import AssertRefSnapshotId, RemoveSnapshotRefUpdate, SetSnapshotRefUpdate

from headrace import away, layout
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

    Nothing else may be at the branch's tip by then. None when the branch is gone: it has been published already.
    """
    table, branch = lake.find(layout.clean_table(feed.name)), layout.branch(run)
    if table is None or branch not in table.metadata.refs:
        return None
    main = table.metadata.refs[MAIN_BRANCH].snapshot_id
    if main not in (snapshot.snapshot_id for snapshot in ancestors(table, checked)):
        raise _moved(feed)
    requirements = (
        AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=main),
        AssertRefSnapshotId(ref=branch, snapshot_id=checked),
    )
    updates = (
        SetSnapshotRefUpdate(
            ref_name=MAIN_BRANCH,
            type=SnapshotRefType.BRANCH,
            snapshot_id=checked,
            max_ref_age_ms=None,
            max_snapshot_age_ms=None,
            min_snapshots_to_keep=None,
        ),
        RemoveSnapshotRefUpdate(ref_name=branch),
    )
    try:
        lake.catalog.commit_table(table, requirements, updates)
    except CommitFailedException as error:
        raise _moved(feed) from error
    return Published(checked)


def _moved(feed: Feed) -> BranchMoved:
    return BranchMoved(
        f"clean.{feed.name}: another run published since this one's rows were merged; nothing was switched. "
        f"Clear this run's transform task: transform and check run again on top of what is published now."
    )
