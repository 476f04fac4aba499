"""Forget: a person's records leave the clean table, its history, quarantine and the archive, and stay away.

The keys go on the hold list before anything else is written, and the archive is blanked last: it is what tells where a
person's records are. Killed anywhere, a second forget finds what is left and does it; done twice, it changes nothing
more. All of it happens in the clean table's turn, and main always moves: no run that planned before can publish.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta

from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table

from headrace import away, blanking, forgotten, layout, reconciliation, results, shown
from headrace.errors import MovedError
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.lake import Lake, heads_at, keep_time
from headrace.layout import Identifier
from headrace.lease import Leases, turn
from headrace.provenance import SigningKey
from headrace.scrubbing import scrubber
from headrace.stages import carrying, publish, purge
from headrace.stages.locating import ForgetPlan, Located, Spark, Step
from headrace.stages.purge import Purged
from headrace.stages.sweep import Sweep, s3_time
from headrace.stages.transform import REBUILT, TransformPlan
from headrace.stages.upkeep import allowed_age

PATIENCE = timedelta(minutes=10)
"""How long it waits for a run that is at work on the table."""
TRIES = 10
"""How often it commits anew because somebody was quicker: to the archive an extract, to what was reconciled a run."""

Plan = Callable[[], TransformPlan | None]
"""How the feed's records are read, as of now; None while nothing is archived."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rewritten:
    """What was changed in one store, or in a dry run would be."""

    store: str
    records: int = 0
    """Records blanked, rows deleted, or objects changed."""
    files: int = 0
    """Data files written anew."""
    bytes: int = 0
    """Of these, as they were before."""
    purged: Purged = field(default_factory=Purged)


@dataclass(frozen=True)
class Forgotten:
    """What was done in the lake."""

    feed: str
    keys: int
    heads: Heads
    located: Located = field(repr=False)
    stores: tuple[Rewritten, ...]
    undecoded: int = 0
    """Of the archive's records: those that do not decode, and were told by their Kafka key or their bytes."""


@away.tells_resuming
def forget(
    feed: Feed,
    keys: Sequence[Sequence[str]],
    *,
    lake: Lake,
    plan: Plan,
    spark: Spark,
    signing: SigningKey,
    by: str,
    stagings: Collection[str] = (),
    dry_run: bool = False,
    patience: timedelta = PATIENCE,
) -> Forgotten | None:
    """Forget keys, each told by a text for every field of it; None while nothing is archived.

    `stagings` are the locations besides the lake's at which rows wait for warehouses.
    """
    leases, holder = Leases(lake.database), f"forget {uuid.uuid4().hex[:12]}"

    @contextmanager
    def turn_on(table: Identifier) -> Iterator[None]:
        with turn(leases, layout.lease(table), holder=holder, doing="forgetting keys", patience=patience):
            yield

    with turn_on(layout.clean_table(feed.name)):
        planned = plan()
        if planned is None:
            return None
        work = _Work(feed, lake, spark, planned, keys, _heads(feed, lake, planned))
        located = work.locate()
        if dry_run:
            return work.told(located, (*work.would(located),))
        forgotten.hold(feed.name, located.digests, lake=lake, heads=work.heads, signing=signing, by=by)
        stores = [work.quarantine(located), work.clean(located), *work.scrub(located)]
        with turn_on(layout.archive_table(feed.name)):
            stores.append(work.archive(located))
            stores = [*work.purged(stores), *work.staged({lake.location, *stagings})]
        return work.told(located, tuple(stores))


def _heads(feed: Feed, lake: Lake, planned: TransformPlan) -> Heads:
    return heads_at(lake.catalog.load_table(layout.archive_table(feed.name)), planned.archive_snapshot)


@away.tells
def look_again(
    feed: Feed, keys: Sequence[Sequence[str]], *, lake: Lake, plan: Plan, spark: Spark, upto: Heads
) -> Located:
    """Where records of the keys, of before these heads, still are."""
    planned = plan()
    assert planned is not None, "what was archived is still there"
    return _Work(feed, lake, spark, planned, keys, upto).locate()


@dataclass(frozen=True)
class _Work:
    """One forget: steps, each of which is whole by itself."""

    feed: Feed
    lake: Lake
    spark: Spark
    planned: TransformPlan = field(repr=False)
    keys: Sequence[Sequence[str]] = field(repr=False)
    heads: Heads

    def locate(self) -> Located:
        return Located.model_validate_json(self._run("locate"))

    def _run(self, step: Step, **more: object) -> str:
        asked = ForgetPlan(
            step=step,
            transform=self.planned,
            keys=[list(texts) for texts in self.keys],
            next=dict(self.heads.next),
            personal=sorted({*self.feed.personal, *self.feed.declaration.key} & set(self.planned.columns)),
            **more,
        )
        return self.spark(asked.model_dump_json())

    def told(self, located: Located, stores: tuple[Rewritten, ...]) -> Forgotten:
        undecoded = sum(place.how != "key" for place in located.archive)
        return Forgotten(self.feed.name, len(self.keys), self.heads, located, stores, undecoded)

    def would(self, located: Located) -> Iterator[Rewritten]:
        """What a forget would change."""
        yield Rewritten(_name(layout.quarantine_table(self.feed.name)), len(located.quarantine))
        yield Rewritten(_name(layout.clean_table(self.feed.name)), located.clean)
        files = [
            file for file, _ in blanking.affected(self._load(layout.archive_table(self.feed.name)), _places(located))
        ]
        bytes_ = sum(file.file_size_in_bytes for file in files)
        yield Rewritten(_name(layout.archive_table(self.feed.name)), len(located.archive), len(files), bytes_)

    def quarantine(self, located: Located) -> Rewritten:
        name = layout.quarantine_table(self.feed.name)
        if located.quarantine:
            places = [place.origin for place in located.quarantine]
            self._run("quarantine", places=places, summary=carrying.without_heads({"forgotten": len(places)}))
        return Rewritten(
            _name(name), len(located.quarantine), *_removed(self._load(name), if_=bool(located.quarantine))
        )

    def clean(self, located: Located) -> Rewritten:
        """Delete the rows on a branch and switch main to it; main moves in any case."""
        name = layout.clean_table(self.feed.name)
        table = self._load(name)
        summary = {**self._summary(table), REBUILT: "true"}
        if located.clean:
            self._run("clean", summary=summary)
            table = self._load(name)
        ref = table.metadata.refs.get(self.planned.branch)
        try:
            if ref is not None and ref.snapshot_id != self.planned.base:
                publish.switch(
                    self.lake, table, branch=self.planned.branch, main=self.planned.base, tip=ref.snapshot_id
                )
            else:
                carrying.commit_empty(table, summary)
        except CommitFailedException as error:
            raise _moved(self.feed) from error
        table = self._load(name)
        changed = _removed(table, if_=bool(located.clean))
        try:
            purge.tell_only_of_the_living(table, self._summary(table))
        except CommitFailedException as error:
            raise _moved(self.feed) from error
        return Rewritten(_name(name), located.clean, *changed)

    def _summary(self, table: Table) -> dict[str, str]:
        """What every snapshot of the clean table says: how far it has come, and by which rules its rows were made."""
        return carrying.with_heads(table, done={"forgotten": len(self.keys)})

    def scrub(self, located: Located) -> Iterator[Rewritten]:
        """Take the keys out of check results and of what reconciliations listed."""
        scrubbed = scrubber(set(map(shown.key, located.shown)))
        yield Rewritten("checks", results.mend(self.feed.name, scrubbed, lake=self.lake))
        if self.lake.find(name := layout.reconciled_table(self.feed.name)):
            yield Rewritten(_name(name), self._mend(scrubbed))

    def _mend(self, scrubbed: Callable[[str], str]) -> int:
        """Until there is nothing left to change: comparisons are kept beside it."""
        changed = 0
        for _ in range(TRIES):
            try:
                more = reconciliation.mend(self.feed.name, scrubbed, lake=self.lake)
            except (CommitFailedException, ValidationException):  # the latter where PyIceberg planned anew itself
                continue
            if not more:
                return changed
            changed += more
        raise MovedError(f"reconciled.{self.feed.name}: others committed {TRIES} times meanwhile. Run it again.")

    def archive(self, located: Located) -> Rewritten:
        """Blank the records: their files are written anew, and take the old ones' places in one commit."""
        name, places = layout.archive_table(self.feed.name), _places(located)
        if not places:
            return Rewritten(_name(name))
        table = self._load(name)
        made = blanking.replacements(self.lake, table, places, feed=self.feed.name, nonce=uuid.uuid4().hex)
        for _ in range(TRIES):
            try:
                landed = replace(table, made)
            except CommitFailedException:  # an extract was quicker
                table = self._load(name)
                continue
            files = sum(each.old.file_size_in_bytes for each in landed)
            return Rewritten(_name(name), sum(each.records for each in landed), len(landed), files)
        raise MovedError(f"archive of {self.feed.name}: extracts committed {TRIES} times meanwhile. Run it again.")

    def purged(self, stores: Sequence[Rewritten]) -> Iterator[Rewritten]:
        """The stores without their histories, and without orphans that nobody can commit any more."""
        now = s3_time(self.lake)
        tables = {
            _name(make(self.feed.name)): make(self.feed.name)
            for make in (layout.archive_table, layout.clean_table, layout.quarantine_table, layout.reconciled_table)
        }
        for store in stores:
            if (name := tables.get(store.store)) is None:
                yield store
                continue
            gone = purge.purge(self.lake, name)
            orphans = self._sweep(name, now=now)
            done = Purged(gone.snapshots, gone.branches, gone.objects + orphans)
            log.info("feed %s: %s: %s", self.feed.name, store.store, done)
            yield Rewritten(store.store, store.records, store.files, store.bytes, done)

    def staged(self, locations: Collection[str]) -> Iterator[Rewritten]:
        """What killed loads have left on its way to warehouses; what a live one may need, the proof looks through."""
        now = s3_time(self.lake)
        swept = Sweep(self.feed, self.lake, before=now, today=now, age=allowed_age(self.feed)).staged(locations)
        if swept.removed:
            yield Rewritten(swept.kind, swept.removed, swept.removed, swept.bytes)

    def _sweep(self, name: Identifier, *, now: object) -> int:
        """An archive's orphans go at once, for a fence shuts out whoever put them; others when they are old."""
        is_archive = name == layout.archive_table(self.feed.name)
        age = timedelta() if is_archive else allowed_age(self.feed)
        sweep = Sweep(self.feed, self.lake, before=now, today=now, age=age)  # type: ignore[arg-type]
        table = self._load(name)
        if is_archive:
            swept = sweep.archive(table, without=(), turn=lambda: nullcontext(table))[1]
        else:
            swept = sweep.written(table, without=(), turn=lambda: nullcontext(self._load(name)))
        return sum(each.removed for each in swept)

    def _load(self, name: Identifier) -> Table:
        return self.lake.catalog.load_table(name)


def replace(table: Table, made: Sequence[blanking.Replacement]) -> list[blanking.Replacement]:
    """Put new files in the old ones' places, as far as these are still there, with the heads as they are."""
    live = {task.file.file_path for task in table.scan().plan_files()}
    landing = [each for each in made if each.old.file_path in live]
    if landing:
        summary = carrying.with_heads(table, done={"forgotten": sum(each.records for each in landing)})
        with table.transaction() as transaction:
            with transaction.update_snapshot(snapshot_properties=summary).overwrite() as overwrite:
                for each in landing:
                    overwrite.delete_data_file(each.old)
                    overwrite.append_data_file(each.new)
            keep_time(transaction)
    return landing


def _places(located: Located) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for place in located.archive:
        found.setdefault(place.partition, set()).add(place.offset)
    return found


def _removed(table: Table, *, if_: bool) -> tuple[int, int]:
    """How many data files the newest snapshot took out, and their bytes."""
    current = table.current_snapshot()
    if not if_ or current is None or current.summary is None:
        return 0, 0
    told = current.summary.additional_properties
    return int(told.get("deleted-data-files", 0)), int(told.get("removed-files-size", 0))


def _moved(feed: Feed) -> MovedError:
    return MovedError(f"clean.{feed.name}: another run published meanwhile. Run it again.")


def _name(table: Identifier) -> str:
    return ".".join(table)
