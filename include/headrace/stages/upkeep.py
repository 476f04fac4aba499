"""Upkeep: keep a feed's tables quick to read and no larger than they need be; no record and no row is lost by it.

Small data files become few, small manifests too, snapshots expire, branches of dead runs are dropped, and what belongs
to nothing is removed. Each is a commit of its own in a turn of its own: killed anywhere, every table is whole, and the
next upkeep goes on. Who does not get the turn, or commits second, leaves it for the next time and says so.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from headrace import away, duration, layout, reconciliation
from headrace.errors import MovedError, SparkFailed, TurnTaken
from headrace.expiry import dead_branches, expired
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.lake import Lake, heads_of
from headrace.layout import Identifier
from headrace.lease import Leases, turn
from headrace.stages import carrying, compaction, retention
from headrace.stages.compaction import Compacted, CompactionPlan, Spark
from headrace.stages.sweep import Sweep, Swept, s3_time

__all__ = ["Kept", "Swept", "Upkeep", "allowed_age", "branch_age", "upkeep"]

MARGIN = timedelta(hours=1)
"""Beyond the longest run: for a commit that began in time, and for clocks within S3."""
STATES = timedelta(days=1)
"""How long older states of an archive and of quarantine are kept: they hold nothing that is not there now."""
LATE = 4
"""A warehouse that lags keeps snapshots from expiring, but not for longer than this many times their retention."""
PIECES = 50
"""The most pieces of compaction that one upkeep does on one table."""
PATIENCE = timedelta(minutes=2)
"""How long upkeep waits for its turn."""

Clock = Callable[[datetime], datetime]
"""S3's time, as upkeep takes it; tests let it run ahead."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Figures:
    """How much there is of a table."""

    files: int = 0
    bytes: int = 0
    manifests: int = 0
    snapshots: int = 0


@dataclass
class Kept:
    """What upkeep did with one table, or in a dry run would."""

    table: str
    before: Figures = Figures()
    after: Figures = Figures()
    compacted: int = 0
    """Small files that became part of larger ones; in a dry run, those of the first piece."""
    dropped: int = 0
    """Archive files past the feed's retention."""
    branches: list[str] = field(default_factory=list)
    """Those of dead runs."""
    expired: int = 0
    freed: int = 0
    """Files that only expired snapshots named."""
    fenced: bool = False
    swept: tuple[Swept, ...] = ()
    left: list[str] = field(default_factory=list)
    """Why something was left for the next time."""

    @property
    def removed(self) -> int:
        return sum(each.removed for each in self.swept)

    def __str__(self) -> str:
        before, after = self.before, self.after
        dropped = f"{self.dropped} files past retention dropped, " if self.dropped else ""
        return (
            f"{self.table}: files {before.files} → {after.files}, bytes {before.bytes:,} → {after.bytes:,}, "
            f"manifests {before.manifests} → {after.manifests}, snapshots {before.snapshots} → {after.snapshots}: "
            f"{dropped}{self.compacted} files compacted, {self.expired} snapshots expired with "
            f"{self.freed} files, {len(self.branches)} branches dropped, {self.removed} orphans removed"
            + "".join(f"; left for the next time: {each}" for each in self.left)
        )


@dataclass(frozen=True)
class Upkeep:
    """What one upkeep did."""

    feed: str
    older_than: timedelta
    tables: tuple[Kept, ...]
    imports: Swept
    staged: Swept

    @property
    def swept(self) -> tuple[Swept, ...]:
        """What was removed, the archive's first."""
        return (*(each for table in self.tables for each in table.swept), self.staged, self.imports)

    @property
    def removed(self) -> int:
        return sum(each.removed for each in self.swept)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.swept)

    @property
    def fenced(self) -> bool:
        return any(table.fenced for table in self.tables)


def allowed_age(feed: Feed) -> timedelta:
    """How old a file may be while a run of the feed could still commit it: all tries of a task, and a margin."""
    runs = feed.declaration.runs
    tries = duration.parse(runs.time_limit) * (1 + runs.retries)
    return tries + duration.parse(runs.retry_delay) * runs.retries + MARGIN


def branch_age(feed: Feed) -> timedelta:
    """How old a run's branch may be while the run could still publish it: after checks, and perhaps an approval."""
    return 2 * allowed_age(feed) + duration.parse(feed.declaration.runs.approval)


@away.tells_resuming
def upkeep(
    feed: Feed,
    *,
    lake: Lake,
    spark: Spark | None = None,
    recorded: Collection[int] = (),
    stagings: Collection[str] = (),
    older_than: timedelta | None = None,
    dry_run: bool = False,
    clock: Clock | None = None,
    patience: timedelta = PATIENCE,
) -> Upkeep:
    """Keep a feed's tables; to do so twice, or twice at once, changes nothing more.

    Without `spark` no data file is rewritten. `recorded` are the clean table's snapshots that warehouses hold,
    `stagings` the locations besides the lake's at which rows wait for them.
    """
    age = max(older_than or timedelta(), allowed_age(feed))
    now = s3_time(lake)
    sweep = Sweep(feed, lake, before=now, today=clock(now) if clock else now, age=age, dry_run=dry_run)
    turns = _Turns(Leases(lake.database), holder=f"upkeep {uuid.uuid4().hex[:12]}", patience=patience)
    tables = []
    for keeping in (_Archive, _Clean, _Quarantine, _Reconciled, _Forgotten):
        one = keeping(feed, lake, sweep, turns, spark, frozenset(recorded))
        if lake.find(one.name) is not None:
            tables.append(one.keep())
            log.info("%s%s", "a dry run: " if dry_run else "", tables[-1])
    staged = sweep.staged({lake.location, *stagings})
    return Upkeep(feed.name, age, tuple(tables), sweep.imports(), staged)


@dataclass(frozen=True)
class _Turns:
    """How upkeep waits for those who work on a table."""

    leases: Leases
    holder: str
    patience: timedelta

    def of(self, table: Identifier, doing: str) -> AbstractContextManager[None]:
        return turn(self.leases, layout.lease(table), holder=self.holder, doing=doing, patience=self.patience)


@dataclass
class _Keeping:
    """The upkeep of one table: steps, each of which is whole by itself."""

    feed: Feed
    lake: Lake
    sweep: Sweep
    turns: _Turns
    spark: Spark | None
    recorded: frozenset[int]

    strategy = "binpack"
    has_heads = True

    def __post_init__(self) -> None:
        self.kept = Kept(".".join(self.name))
        self.gone: list[int] = []

    @property
    def name(self) -> Identifier:
        raise NotImplementedError

    @property
    def lease(self) -> Identifier:
        """Whose turn it takes."""
        return self.name

    @property
    def steps(self) -> tuple[Callable[[], None], ...]:
        raise NotImplementedError

    @property
    def states(self) -> timedelta | None:
        """How long its older states are kept; None for ever."""
        declared = duration.lasting(self.feed.declaration.retention.snapshots)
        return min(STATES, declared or STATES)

    def keep(self) -> Kept:
        self.kept.before = self.kept.after = self._figures()
        for step in self.steps:
            try:
                step()
            except (TurnTaken, SparkFailed) as error:
                self.kept.left.append(str(error))
            except (CommitFailedException, MovedError):
                self.kept.left.append("somebody else committed first")
        self.kept.after = self._figures()
        return self.kept

    @contextmanager
    def turn(self, doing: str) -> Iterator[Table]:
        """The table as it is now, in its turn."""
        with self.turns.of(self.lease, doing):
            yield self.load()

    def load(self) -> Table:
        return self.lake.catalog.load_table(self.name)

    @property
    def is_dry(self) -> bool:
        return self.sweep.dry_run

    def compact(self) -> None:
        """Make small files few, piece by piece, each in a turn of its own, so that a run never waits long."""
        if self.is_dry:
            self.kept.compacted = _piece(self.load())
            return
        for _ in range(PIECES):
            if self.spark is None or not _piece(self.load()):
                return
            with self.turn("compacting small files") as table:
                done = self.run(CompactionPlan(**self.asked(table), files=_piece(table)))
                self.kept.compacted += done.files
                if done.files and self.has_heads:
                    summary = carrying.with_heads(self.load(), done={"compacted": done.model_dump()})
                    carrying.commit_empty(self.load(), summary)
            if done.into >= done.files:  # nothing was done, or it makes no headway
                return

    def asked(self, table: Table) -> dict[str, object]:
        """What every plan for Spark says."""
        return {
            "catalog": self.lake.name,
            "table": self.name,
            "strategy": self.strategy,
            "target": compaction.target(table),
            "inputs": compaction.INPUTS,
        }

    def run(self, plan: CompactionPlan) -> Compacted:
        assert self.spark is not None, "nobody plans for a Spark that is not there"
        return Compacted.model_validate_json(self.spark(plan.model_dump_json()))

    def gather(self) -> None:
        """Make small manifests few, and carry the heads on where the newest snapshot lacks them."""
        if self.is_dry or not self._wants_commit(self.load()):
            return
        with self.turn("gathering manifests") as table:
            done = {"manifests": len(carrying.manifests(table))}
            summary = carrying.with_heads(table, done=done) if self.has_heads else carrying.without_heads(done)
            carrying.gather_manifests(table, summary)

    def _wants_commit(self, table: Table) -> bool:
        lacks_heads = self.has_heads and table.current_snapshot() is not None and not carrying.has_heads(table)
        return lacks_heads or carrying.has_many_manifests(table)

    def expire(self) -> None:
        """Forget older states, and remove what only they named."""
        self.gone = self._expired(self.load())
        if self.gone and not self.is_dry:
            with self.turn("expiring snapshots") as before:
                self.gone = self._expired(before)
                if self.gone:
                    self.load().maintenance.expire_snapshots().by_ids(self.gone).commit()
            self.kept.freed = self.sweep.free(before, self.load())
        self.kept.expired = len(self.gone)

    def _expired(self, table: Table) -> list[int]:
        if self.states is None:
            return []
        # No run may read a state longer than its tries take.
        kept_for = max(self.states, allowed_age(self.feed))
        oldest = (self.sweep.today - LATE * kept_for).timestamp() * 1000
        return expired(
            table.metadata.snapshots,
            table.metadata.refs,
            before=self.sweep.today - kept_for,
            recorded={
                each.snapshot_id
                for each in table.metadata.snapshots
                if each.snapshot_id in self.recorded and each.timestamp_ms >= oldest
            },
            needs_heads=self.has_heads,
        )

    def remove_orphans(self) -> None:
        without, turn = self.gone if self.is_dry else (), lambda: self.turn("removing orphans")
        self.kept.swept = self.sweep.written(self.load(), without=without, turn=turn)

    def _figures(self) -> Figures:
        table = self.load()
        current = table.current_snapshot()
        summary = current.summary.additional_properties if current and current.summary else {}
        return Figures(
            files=int(summary.get("total-data-files", 0)),
            bytes=int(summary.get("total-files-size", 0)),
            manifests=len(carrying.manifests(table)),
            snapshots=len(table.metadata.snapshots),
        )


class _Archive(_Keeping):
    """Its data files stay as they were written: their names tell what they hold, and verify holds them to it."""

    @property
    def name(self) -> Identifier:
        return layout.archive_table(self.feed.name)

    @property
    def steps(self) -> tuple[Callable[[], None], ...]:
        return self.drop_old_hours, self.gather, self.expire, self.remove_orphans

    def drop_old_hours(self) -> None:
        """Drop what is past the feed's retention, if it declares one."""
        kept_for = duration.lasting(self.feed.declaration.retention.archive)
        if kept_for is None:
            return
        clean = self.lake.find(layout.clean_table(self.feed.name))
        merged, before = heads_of(clean) if clean else Heads(), self.sweep.today - kept_for
        old = retention.past(self.load(), before=before, merged=merged)
        if old.files and not self.is_dry:
            with self.turn("dropping what is past its retention") as table:
                old = retention.past(table, before=before, merged=merged)
                retention.drop(table, old)
        self.kept.dropped = len(old.files)

    def remove_orphans(self) -> None:
        without, turn = self.gone if self.is_dry else (), lambda: self.turn("fencing off orphans")
        self.kept.fenced, self.kept.swept = self.sweep.archive(self.load(), without=without, turn=turn)


class _Clean(_Keeping):
    """Rows are never dropped."""

    strategy = "sort"

    @property
    def name(self) -> Identifier:
        return layout.clean_table(self.feed.name)

    @property
    def steps(self) -> tuple[Callable[[], None], ...]:
        if waiting := self.turns.leases.holder(layout.approval_lease(self.feed.name)):
            # Its branch stays, and so does main: else it would be merged and checked again before it is published.
            self.kept.left.append(f"{waiting.holder} waits for approval until {waiting.until:%Y-%m-%d %H:%M %Z}")
            return self.expire, self.remove_orphans
        return self.drop_branches, self.compact, self.gather, self.expire, self.remove_orphans

    @property
    def states(self) -> timedelta | None:
        return duration.lasting(self.feed.declaration.retention.snapshots)

    def drop_branches(self) -> None:
        """Drop the branches of dead runs, which nobody waits for any more."""
        self.kept.branches = self._dead(self.load())
        if not self.kept.branches or self.is_dry:
            return
        with self.turn("dropping branches of dead runs") as table:
            self.kept.branches = self._dead(table)
            dropping = table.manage_snapshots()
            for branch in self.kept.branches:
                dropping = dropping.remove_branch(branch)
            dropping.commit()

    def _dead(self, table: Table) -> list[str]:
        before = self.sweep.today - branch_age(self.feed)
        return dead_branches(table.metadata.snapshots, table.metadata.refs, before=before)


class _Quarantine(_Keeping):
    """Written by runs in the clean table's turn."""

    has_heads = False

    @property
    def name(self) -> Identifier:
        return layout.quarantine_table(self.feed.name)

    @property
    def lease(self) -> Identifier:
        return layout.clean_table(self.feed.name)

    @property
    def steps(self) -> tuple[Callable[[], None], ...]:
        return self.delete_old_rows, self.compact, self.gather, self.expire, self.remove_orphans

    def delete_old_rows(self) -> None:
        """Delete what is past the feed's retention, if it declares one."""
        kept_for = duration.lasting(self.feed.declaration.retention.quarantine)
        if kept_for is None or self.spark is None or self.is_dry:
            return
        before = self.sweep.today - kept_for
        if compaction.has_rows_before(self.load(), before):
            told = carrying.without_heads({"before": before.isoformat()})
            micros = int(before.timestamp() * 1_000_000)
            with self.turn("deleting quarantined records past their retention") as table:
                self.run(CompactionPlan(**self.asked(table), rows_before=micros, summary=told))


class _Reconciled(_Keeping):
    """Every run adds a few rows, whenever it likes: who is second adds again."""

    has_heads = False

    @property
    def name(self) -> Identifier:
        return layout.reconciled_table(self.feed.name)

    @property
    def steps(self) -> tuple[Callable[[], None], ...]:
        return self.delete_old_rows, self.compact, self.gather, self.expire, self.remove_orphans

    def delete_old_rows(self) -> None:
        """Delete what nobody looks back to any more."""
        before = self.sweep.today - reconciliation.KEPT
        if not self.is_dry and reconciliation.has_rows_before(self.load(), before):
            with self.turn("deleting old comparisons") as table:
                reconciliation.delete_rows_before(table, before)


class _Forgotten(_Keeping):
    """The hold list, to which a forget adds a few rows."""

    has_heads = False

    @property
    def name(self) -> Identifier:
        return layout.forgotten_table(self.feed.name)

    @property
    def steps(self) -> tuple[Callable[[], None], ...]:
        return self.compact, self.gather, self.expire, self.remove_orphans


def _piece(table: Table) -> int:
    return compaction.piece(compaction.data_files(table), target=compaction.target(table))
