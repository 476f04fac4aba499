"""Accounting: what runs say became of their records, held against what the tables themselves count.

A run notes with its rows how many records it read and what each became. The archive counts what there was to read, and
the clean table what was written: at the cost of what changed, and of no recomputation.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from headrace import away, layout
from headrace.clean import ACCOUNTS, CHANGED, WRITTEN
from headrace.columns import columns
from headrace.dropped import Span, dropped_of
from headrace.feed import Feed
from headrace.filed import claims
from headrace.heads import Heads
from headrace.lake import Lake, ancestors, heads_at
from headrace.reckoning import Figures, Shape, figures
from headrace.share import Share, SharedColumn, rows
from headrace.stages.transform import REBUILT, Spans, missing

JUDGED = ("decoded", "quarantined", "forgotten")
"""What a record that a run reads is taken for: exactly one of these."""
BECAME = ("duplicates", "superseded", "inserted", "updated", "deleted")
"""What becomes of a record that decodes: exactly one of these."""
SEEN = ("inserted", "updated", "deleted", "withdrawn")
"""What readers see of a row that a run changes."""
TOTAL = "total-records"


@dataclass(frozen=True)
class Line:
    """Two counts that must be the same."""

    about: str
    snapshot: int
    expected: int
    found: int

    @property
    def agrees(self) -> bool:
        return self.expected == self.found


@dataclass(frozen=True)
class Accounted:
    """The accounts of one run or more."""

    snapshot: int
    lines: tuple[Line, ...]
    expected: Figures
    found: Figures

    @property
    def agrees(self) -> bool:
        return all(line.agrees for line in self.lines)


@away.tells
def account(feed: Feed, *, lake: Lake, since: int | None) -> Accounted | None:
    """Hold the accounts of what was published since a snapshot against the tables; None where nothing was.

    Without one, the last publishing is looked at; since one that is not known any more, all that still are.
    """
    table, archive = lake.find(layout.clean_table(feed.name)), lake.find(layout.archive_table(feed.name))
    current = table.current_snapshot() if table else None
    if table is None or archive is None or current is None:
        return None
    published = _published(table, current, since)
    if not published:
        return None
    lines: list[Line] = []
    expected = found = Figures()
    for snapshot in published:
        run = _Run(feed, table, archive, snapshot)
        marked = run.marked()
        lines += [
            *run.lines(),
            Line("rows marked as changed", snapshot.snapshot_id, run.seen, marked.rows),
            Line("different keys of these", snapshot.snapshot_id, run.seen, marked.unique),
        ]
        expected, found = expected + Figures(run.seen, run.seen), found + marked
    return Accounted(current.snapshot_id, tuple(lines), expected, found)


def _published(table: Table, current: Snapshot, since: int | None) -> list[Snapshot]:
    """What runs published since a snapshot, the oldest first."""
    line = list(ancestors(table, current.snapshot_id))
    known = [each.snapshot_id for each in line]
    newer = line[: known.index(since)] if since in known else line
    runs = [each for each in newer if _noted(each, WRITTEN) and _is_placed(table, each)]
    return runs[:1] if since is None else runs[::-1]


def _is_placed(table: Table, snapshot: Snapshot) -> bool:
    """Whether the table still knows what a snapshot was made from; else nothing tells what has changed in it."""
    parent = snapshot.parent_snapshot_id
    return parent is None or table.snapshot_by_id(parent) is not None


def _noted(snapshot: Snapshot, name: str) -> Mapping[str, Any]:
    noted = snapshot.summary.additional_properties.get(name) if snapshot.summary else None
    return json.loads(noted) if noted else {}


@dataclass(frozen=True)
class _Run:
    """One run, as the snapshot that it published tells."""

    feed: Feed
    table: Table
    archive: Table
    snapshot: Snapshot

    @property
    def accounts(self) -> Mapping[str, int]:
        return _noted(self.snapshot, ACCOUNTS)

    @property
    def is_anew(self) -> bool:
        return self.snapshot.summary is not None and REBUILT in self.snapshot.summary.additional_properties

    @property
    def before(self) -> Snapshot | None:
        parent = self.snapshot.parent_snapshot_id
        return self.table.snapshot_by_id(parent) if parent is not None else None

    @property
    def seen(self) -> int:
        return sum(self.accounts.get(name, 0) for name in SEEN)

    def lines(self) -> Iterator[Line]:
        """The run's own sums, what the archive has of what it read, and the rows that its writer has counted."""
        told, id_ = self.accounts, self.snapshot.snapshot_id
        yield Line("records judged", id_, told["read"], sum(told.get(name, 0) for name in JUDGED))
        yield Line("records merged", id_, told["decoded"], sum(told[name] for name in BECAME))
        spans = self._spans()
        dropped = dropped_of(self.archive).spans
        # Who judges records again reads others too, and what was dropped since cannot be counted any more.
        if self.before and not _noted(self.snapshot, WRITTEN)["again"] and not _meet(spans, dropped):
            yield Line("records archived", id_, archived(self.archive, spans), told["read"])
        written = _noted(self.snapshot, WRITTEN)
        stayed = 0 if self.is_anew else _total(self.before) - written["stood"]
        yield Line("rows in all", id_, stayed + written["rows"], _total(self.snapshot))

    def marked(self) -> Figures:
        """The rows that carry the run's number, and their different keys."""
        last = self.before.sequence_number if self.before else 0
        key, where = tuple(self.feed.declaration.key), f"{CHANGED} > {last or 0}"
        known = [column for column in columns(self.feed) if column.name in key]
        shared = tuple(SharedColumn(**vars(column), path=(column.name,)) for column in known)
        share = Share(self.feed.name, "clean", "", key, shared, masks={})
        found = rows(self.table, share, snapshot=self.snapshot.snapshot_id, where=where, mask_key=b"")
        return figures(Shape(share.schema, key), lambda: (batch.select(share.names) for batch in found))

    def _spans(self) -> Spans:
        reached = heads_at(self.table, self.snapshot.snapshot_id)
        base = Heads() if self.is_anew or not self.before else heads_at(self.table, self.before.snapshot_id)
        return missing(reached, base)


def _total(snapshot: Snapshot | None) -> int:
    summary = snapshot.summary if snapshot else None
    return int(summary.additional_properties.get(TOTAL, 0)) if summary else 0


def _meet(spans: Spans, others: Mapping[int, Sequence[Span]]) -> bool:
    return any(
        low < next_ and high > first for number, (first, next_) in spans.items() for low, high in others.get(number, ())
    )


def archived(table: Table, spans: Spans) -> int:
    """How many records an archive holds of some spans; only files that a span cuts are read."""
    current = table.current_snapshot()
    if current is None or not spans:
        return 0
    count, cut = 0, False
    for each in claims(table, current.snapshot_id):
        first, next_ = spans.get(each.partition, (0, 0))
        if each.first >= first and each.last < next_:
            count += each.records
        elif each.first < next_ and each.last >= first:
            cut = True
    return int(table.scan(row_filter=_within(spans)).count()) if cut else count


def _within(spans: Spans) -> str:
    parts = (
        f"(partition = {number} and offset >= {first} and offset < {next_})" for number, (first, next_) in spans.items()
    )
    return " or ".join(parts)
