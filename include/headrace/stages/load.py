"""Load: bring a warehouse's table to the clean table's current snapshot, in one transaction that records it."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from headrace import away, heads, layout
from headrace.clean import CHANGED
from headrace.errors import FeedError
from headrace.feed import Feed
from headrace.lake import Lake, ancestors
from headrace.masks import MaskKey
from headrace.share import EVERY_ROW, VISIBLE, Share, name_faults, rows, share_of
from headrace.stages.transform import REBUILT
from headrace.warehouses.client import WarehouseClient
from headrace.warehouses.load import Counts, Load, Way

NONE = Counts()


@dataclass(frozen=True)
class Loaded:
    """What one load did; `way` is None where there was nothing to do."""

    snapshot: int | None
    staged: int = 0
    way: Way | None = None
    counts: Counts = NONE

    @property
    def whole(self) -> bool:
        """Whether every row was looked at, not only those that have changed."""
        return self.way in ("anew", "whole")


@away.tells
def load(feed: Feed, *, lake: Lake, warehouse: WarehouseClient, mask_key: MaskKey, anew: bool = False) -> Loaded:
    """Merge the rows that changed since the snapshot that the warehouse records, or all where that cannot be told.

    A table that is new, or has another key, is filled aside and switched to; so is one that somebody has dropped, or
    that is asked for `anew`.
    """
    with warehouse.loading(feed.name) as session:
        last = session.loaded()
        # Read main only under the lock: a load that waited must never take the table back.
        table = lake.find(layout.clean_table(feed.name))
        snapshot = table.current_snapshot() if table else None
        if table is None or snapshot is None:
            return Loaded(None)
        shared = share_of(feed, warehouse.name, table)
        if faults := list(name_faults(feed, shared)):
            raise FeedError.of(faults)
        published = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
        current = Load(snapshot.snapshot_id, contract(shared, mask_key, table.schema().schema_id), published)
        if last == current and not anew and session.standing():
            return Loaded(current.snapshot)
        wanted = partial(rows, table, shared, snapshot=snapshot.snapshot_id, mask_key=mask_key)
        since = changed_since(table, last, current=current)
        way: Way
        if anew or not session.keeps(shared, last):
            way, staged = "anew", 0
            counts = session.fill(shared, (batch.select(shared.names) for batch in wanted(where=VISIBLE)))
        else:
            way, redefined = "changes" if since else "whole", last.contract != current.contract
            if redefined:
                session.vet(shared)
            staged = session.stage(shared, wanted(where=since or EVERY_ROW))
            if redefined:
                session.define(shared)  # last: who reads the table waits from here to the end
            counts = session.merge(shared, whole=since is None)
        session.record(shared, current, way, counts)
        return Loaded(current.snapshot, staged or counts.inserted, way, counts)


def contract(share: Share, mask_key: MaskKey, schema: int) -> str:
    """A digest of all that shapes the table besides the snapshot: columns, docs, masks and the mask's key.

    The clean table's `schema` is part of it: its defaults fill columns of rows that nothing has changed.
    """
    key = hashlib.sha256(b"headrace.contract" + mask_key).hexdigest()
    docs = [share.doc, *(column.doc for column in share.columns)]
    types = [f"{name} {type_!r}" for name, type_ in share.types.items()]
    masks = [sorted(share.masks.items()), key if share.masks else ""]
    shape = [types, masks, share.key, docs, share.indexes, share.distribution, share.sort, schema]
    return hashlib.sha256(json.dumps(shape).encode()).hexdigest()


def changed_since(table: Table, last: Load, *, current: Load) -> str | None:
    """The rows whose change the last load did not see; None when only a compare of everything can tell."""
    if last.snapshot is None or last.contract != current.contract:
        return None
    for snapshot in ancestors(table, current.snapshot):
        if snapshot.snapshot_id == last.snapshot:
            return f"{CHANGED} > {snapshot.sequence_number}"
        if not _is_numbered(snapshot):
            return None
    return None


def _is_numbered(snapshot: Snapshot) -> bool:
    """Whether every row that a snapshot changed, and none else, has a number of its own or stayed as it was."""
    summary = snapshot.summary
    if summary is None or REBUILT in summary.additional_properties:
        return False
    # Who compacts rewrites files and no row; who edits the table by hand leaves no heads.
    return summary.operation is Operation.REPLACE or heads.PROPERTY in summary.additional_properties
