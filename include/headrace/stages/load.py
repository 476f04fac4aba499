"""Load: bring a warehouse's table to the clean table's current snapshot, in one transaction that records it."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.table import Table

from headrace import away, heads, layout
from headrace.clean import FROM_OFFSET, FROM_PARTITION, HIDDEN_ROW
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.lake import Lake, ancestors, heads_at
from headrace.masks import MaskKey
from headrace.share import EVERY_ROW, Share, rows, share
from headrace.stages.transform import originals
from headrace.warehouses.postgres import Load, PostgresWarehouse


@dataclass(frozen=True)
class Loaded:
    """What one load did."""

    snapshot: int | None
    staged: int
    whole: bool


@away.tells
def load(feed: Feed, *, lake: Lake, warehouse: PostgresWarehouse, mask_key: MaskKey) -> Loaded:
    """Merge the rows that changed since the snapshot that the warehouse records, or all where that cannot be told."""
    shared = share(feed, warehouse.name)
    warehouse.prepare()
    with warehouse.transaction() as session:
        last = session.locked(feed.name)
        # Read main only under the lock: a load that waited must never take the table back.
        table = lake.find(layout.clean_table(feed.name))
        snapshot = table.current_snapshot() if table else None
        if table is None or snapshot is None:
            return Loaded(None, 0, whole=False)
        current = Load(snapshot.snapshot_id, contract(shared, mask_key))
        if last == current:
            return Loaded(current.snapshot, 0, whole=False)
        since = changed_since(table, last, current=current)
        if last.contract != current.contract:
            session.define(shared)
        batches = rows(table, shared, snapshot=snapshot.snapshot_id, where=since or EVERY_ROW, mask_key=mask_key)
        staged = session.stage(shared.schema.append(pa.field(HIDDEN_ROW, pa.bool_())), batches)
        if since is None:
            session.remove_unstaged(shared)
        session.merge(shared)
        session.record(feed.name, current)
        return Loaded(current.snapshot, staged, whole=since is None)


def contract(share: Share, mask_key: MaskKey) -> str:
    """A digest of all that shapes the table besides the snapshot: columns, docs, masks and the mask's key."""
    key = hashlib.sha256(b"headrace.contract" + mask_key).hexdigest()
    docs = [share.doc, *(column.doc for column in share.columns)]
    types = [f"{name} {type_!r}" for name, type_ in share.types.items()]
    shape = [types, sorted(share.masks.items()), share.key, docs, key if share.masks else ""]
    return hashlib.sha256(json.dumps(shape).encode()).hexdigest()


def changed_since(table: Table, last: Load, *, current: Load) -> str | None:
    """The rows that came after the last load; None when only a compare of everything can tell."""
    if last.snapshot is None or last.contract != current.contract:
        return None
    if not _only_merges(table, last.snapshot, current.snapshot):
        return None
    after = past(heads_at(table, last.snapshot), heads_at(table, current.snapshot))
    return " or ".join([after, *_replayed(table, last.snapshot, current.snapshot)])


def _replayed(table: Table, last: int, current: int | None) -> Iterator[str]:
    """The rows that replayed records may have made meanwhile, which lie where the originals do."""
    for snapshot in ancestors(table, current):
        if snapshot.snapshot_id == last:
            return
        for number, (first, next_) in originals(snapshot).items():
            yield f"({FROM_PARTITION} = {number} and {FROM_OFFSET} >= {first} and {FROM_OFFSET} < {next_})"


def _only_merges(table: Table, last: int, current: int | None) -> bool:
    """Whether every snapshot after the last one is a merge of new records, whose rows their offsets tell."""
    for snapshot in ancestors(table, current):
        if snapshot.snapshot_id == last:
            return True
        if heads.PROPERTY not in snapshot.summary.additional_properties:
            return False
    return False


def past(before: Heads, now: Heads) -> str:
    """The rows made by records from one heads on, as a filter; offset statistics leave out files that hold none."""
    spans = [f"({FROM_PARTITION} = {number} and {FROM_OFFSET} >= {before.of(number)})" for number in now.next]
    return " or ".join(spans)
