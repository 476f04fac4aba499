"""Reconcile: prove that a warehouse holds exactly the clean table's rows: their count, their sums, every row's hash."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from headrace import away, layout, reconciliation
from headrace.clean import HIDDEN_ROW
from headrace.errors import ReconcileError, WarehouseBehind
from headrace.feed import Feed
from headrace.lake import Lake
from headrace.masks import MaskKey
from headrace.reckoning import Figures, Shape, Verdict, reckon
from headrace.reconciliation import Scope
from headrace.share import VISIBLE, Share, rows, share_of
from headrace.stages.load import changed_since, contract
from headrace.warehouses.client import WarehouseClient
from headrace.warehouses.load import Load


@dataclass(frozen=True)
class Reconciled:
    """How a warehouse compares with the clean table at a snapshot."""

    warehouse: str
    snapshot: int
    scope: Scope
    verdict: Verdict
    share: Share = field(repr=False)

    @property
    def figures(self) -> Figures:
        return self.verdict.found


@away.tells
def reconcile(
    feed: Feed, *, lake: Lake, warehouse: WarehouseClient, mask_key: MaskKey, full: bool = False
) -> Reconciled:
    """Compare the warehouse with the clean table at the very snapshot that it records; raises where it is behind."""
    with warehouse.reading(feed.name) as session:
        loaded = session.loaded()
        table = lake.find(layout.clean_table(feed.name))
        if table is None or loaded.snapshot is None:
            raise _behind(feed, warehouse, "nothing was loaded yet")
        shared = share_of(feed, warehouse.name, table)
        if why := _lacking(table, loaded, wanted=contract(shared, mask_key, table.schema().schema_id)):
            raise _behind(feed, warehouse, why)
        since = None if full else changed_since(table, session.reconciled(), current=loaded)
        asked = partial(rows, table, shared, snapshot=loaded.snapshot, mask_key=mask_key)
        if since:
            # A deleted row is one of them: its key is looked for, and must not be found.
            session.look_for(shared, (batch.select(shared.key) for batch in asked(where=since)))
        verdict = reckon(
            shape(feed, shared),
            expected=lambda: _visible(asked(where=since or VISIBLE), shared),
            found=lambda: session.rows(shared, looked_for=since is not None),
        )
    if verdict.agrees:
        warehouse.note_reconciled(feed.name, loaded)
    return Reconciled(warehouse.name, loaded.snapshot, "changes" if since else "whole", verdict, shared)


def _lacking(table: Table, loaded: Load, *, wanted: str) -> str | None:
    """Why what a warehouse holds can be held against nothing."""
    if loaded.contract != wanted:
        return "it was loaded before its columns or masks, or the mask's key, became what they are now"
    if table.snapshot_by_id(loaded.snapshot or 0) is None:
        return "the state of the clean table that it holds is no longer kept"
    return None


def _behind(feed: Feed, warehouse: WarehouseClient, why: str) -> WarehouseBehind:
    return WarehouseBehind(
        f"{warehouse.name}.{feed.name} is behind: {why}. The feed's next run loads it, or: "
        f"headrace load {feed.name} {warehouse.name}"
    )


def _visible(batches: Iterator[pa.RecordBatch], share: Share) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        hidden = batch.column(HIDDEN_ROW)
        shown = batch.filter(pc.invert(hidden)) if hidden.true_count else batch
        yield shown.select(share.names)


def shape(feed: Feed, share: Share) -> Shape:
    """What is compared: sums of columns that are shared as they are, by partitions where their field is.

    Neither is told of personal ones: a sum that differs by one row says its value. The checksum covers them.
    """
    plain = [column.name for column in share.columns if not column.pii and column.name not in share.masks]
    partition = feed.declaration.partition
    return Shape(
        share.schema,
        share.key,
        tuple(name for name in feed.declaration.correctness.sum if name in plain),
        partition if partition and partition.field in plain else None,
    )


def judge(done: Reconciled) -> None:
    """Raise where the two disagree, with what differs, where, and in which rows."""
    if not done.verdict.agrees:
        raise ReconcileError(
            f"{done.warehouse}.{done.share.feed} does not agree with clean: {told(done.verdict, done.share)}. "
            f"Clear the run's load task; if they still differ, somebody else writes to the table."
        )


def told(verdict: Verdict, share: Share) -> str:
    """How far the two are apart, and where."""
    sums = {name: (str(total), str(verdict.found.sums[name])) for name, total in verdict.expected.sums.items()}
    apart = reconciliation.differences(verdict, personal=share.has_personal_key)
    return reconciliation.told((verdict.expected.rows, verdict.found.rows), sums, apart)
