"""Verify: hold an archive against its topics, record by record, and against what its own manifests say of it.

Each partition is read once on either side, in the order of offsets. The topic sets the pace: for every batch of it the
archive's files are read as far, so that memory holds a batch, and of the files around it one imprint per record.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException
from pyiceberg.table import Table

from headrace import away, forgotten, imprint, layout
from headrace.comparison import compare, doubles, holes, runs
from headrace.dropped import Dropped, dropped_of, outside
from headrace.errors import TopicError, TopicMissing
from headrace.feed import Feed
from headrace.filed import Claim, claims, examine
from headrace.findings import LISTED, Account
from headrace.heads import Heads, mirrored
from headrace.imprint import NOTHING, Imprints, imprints
from headrace.kafka import topic
from headrace.kafka.compaction import is_compacted
from headrace.kafka.span import Span, read
from headrace.kafka.topic import Config, Topic
from headrace.lake import Lake, heads_at
from headrace.losses import Loss, losses_of

ENDLESS = 2**63 - 1

Progress = Callable[[int, int], None]
"""Told how many offsets of all are done."""


@dataclass(frozen=True)
class Verification:
    """What was found, partition by partition."""

    feed: str
    snapshot: int | None
    accounts: tuple[Account, ...]
    losses: tuple[Loss, ...] = ()
    is_whole: bool = True
    """Whether everything was compared, not only what came last."""
    reached: Heads = field(default_factory=Heads)
    """How far the archive was compared."""

    @property
    def is_equal(self) -> bool:
        return not any(account.differences for account in self.accounts)


@dataclass(frozen=True)
class Source:
    """One of the topics that an archive holds, as the broker tells of it now; nothing where it is gone."""

    name: str
    found: Topic | None
    compacted: bool = False
    dense: bool = False
    """Whether an offset without a record is a record too few: so it is where we count the records ourselves."""

    def reach(self, partition: int) -> tuple[int, int] | None:
        known = self.found.partitions.get(partition) if self.found else None
        return (known.start, known.end) if known else None


@away.tells
def verify(
    feed: Feed, *, lake: Lake, kafka: Config, since: Heads | None = None, progress: Progress | None = None
) -> Verification:
    """Compare what is archived of a feed's topics with what the broker holds of it.

    All of it, or what came `since` the archive had these heads: all of it too where they tell nothing of it.
    """
    table = lake.find(layout.archive_table(feed.name))
    current = table.current_snapshot() if table else None
    snapshot = current.snapshot_id if current else None
    head = heads_at(table, snapshot) if table else Heads()
    floor = _floor(since, head) if since else Heads()
    losses = losses_of(table) if table else ()
    dropped = dropped_of(table) if table else Dropped()
    blanked = forgotten.reach(forgotten.entries(feed.name, lake=lake))
    files = _by_partition(claims(table, snapshot), floor) if table and snapshot else {}
    sources = _sources(feed, head, kafka=kafka)
    numbers = sorted({*head.next, *files, *_partitions(sources)}, key=lambda number: (number < 0, abs(number)))
    length = sum(_length(number, head, sources, files=files, floor=floor) for number in numbers)
    steps = _Steps(progress or (lambda *_: None), length)
    accounts = [
        _Partition(
            lake,
            kafka,
            sources[number < 0],
            table=table,
            losses=losses,
            dropped=dropped,
            steps=steps,
            blank_before=blanked.of(number),
            floor=floor.next.get(number),
        ).verify(number, head=head, files=files.get(number, []))
        for number in numbers
    ]
    return Verification(feed.name, snapshot, tuple(accounts), losses, is_whole=since is None, reached=head)


def _floor(since: Heads, head: Heads) -> Heads:
    """Where each partition was, if its topic is still the same and it has not gone back since."""
    same = {False: since.topic_id == head.topic_id, True: since.drained_id == head.drained_id}
    known = {number: next_ for number, next_ in since.next.items() if same[number < 0] and next_ <= head.of(number)}
    return Heads(next=known)


def _by_partition(every: Iterable[Claim], floor: Heads) -> dict[int, list[Claim]]:
    by_partition: dict[int, list[Claim]] = {}
    for each in every:
        if each.last < floor.of(each.partition):
            continue
        by_partition.setdefault(each.partition, []).append(each)
    return by_partition


def _sources(feed: Feed, head: Heads, *, kafka: Config) -> dict[bool, Source]:
    """The own topic, and under True the drained one."""
    if feed.declaration.kinesis:
        # A stream cannot be asked by our offsets; so its archive is only held against itself.
        return {False: Source(feed.topic, None, dense=True)}
    drains = feed.declaration.topic.drains
    sources = {False: _source(feed.topic, head.own, kafka=kafka)}
    if drains is not None or head.drained.next:
        name = drains.topic if drains else ""
        sources[True] = _source(name, head.drained, kafka=kafka)
    return sources


def _source(name: str, head: Heads, *, kafka: Config) -> Source:
    try:
        found = topic.describe(kafka, name) if name else None
    except TopicMissing:
        found = None
    if found is None:
        return Source(name, None)
    if head.topic_id and head.topic_id != found.id:
        raise TopicError(
            f"topic {name}: its id is {found.id}, but the archive was copied from {head.topic_id}: the topic was "
            f"deleted and made again, so there is nothing to compare the archive with."
        )
    return Source(name, found, is_compacted(kafka, name))


def _partitions(sources: Mapping[bool, Source]) -> Iterator[int]:
    for is_drained, source in sources.items():
        for number in source.found.partitions if source.found else ():
            yield mirrored(number) if is_drained else number


def _length(
    number: int, head: Heads, sources: Mapping[bool, Source], *, files: Mapping[int, list[Claim]], floor: Heads
) -> int:
    reach = sources[number < 0].reach(_own(number)) or (0, 0)
    begun = head.drained_id if number < 0 else head.topic_id
    first = min((each.first for each in files.get(number, ())), default=reach[0])
    return max(0, head.of(number) - max(head.first.get(number, 0) if begun else first, floor.of(number)))


def _own(number: int) -> int:
    """Kafka's own number of a partition of the archive."""
    return mirrored(number) if number < 0 else number


@dataclass
class _Steps:
    progress: Progress
    of: int
    done: int = 0

    def go(self, offsets: int) -> None:
        self.done += offsets
        self.progress(min(self.done, self.of), self.of)


@dataclass
class _Partition:
    """One partition, compared from where its archive began to its head."""

    lake: Lake
    kafka: Config
    source: Source
    table: Table | None
    losses: tuple[Loss, ...]
    dropped: Dropped
    steps: _Steps
    blank_before: int
    """Records before this may have been blanked, as somebody was forgotten."""
    floor: int | None = None
    """Where it begins, if not at the archive's own beginning."""
    files: deque[Claim] = field(default_factory=deque)
    waiting: Imprints = NOTHING
    account: Account = field(default_factory=lambda: Account("", 0))
    reached: int | None = None
    """Everything below is compared; None where no extract has begun, so that nothing is promised."""

    def verify(self, number: int, *, head: Heads, files: list[Claim]) -> Account:
        reach, next_ = self.source.reach(_own(number)), head.of(number)
        self.account = Account(self.source.name, number, reach, next_)
        self.files = deque(sorted(files, key=lambda each: (each.first, each.last)))
        begun = bool(head.drained_id if number < 0 else head.topic_id)
        self.reached = max(head.first.get(number, 0), self.floor or 0) if begun else None
        self._known_losses()
        start, end = reach or (ENDLESS, 0)
        self._gone(min(start, next_))
        if begun and reach and next_ < start:
            self.account.find("deleted", [(next_, start)])
        self._held(min(end, next_))
        self._rest(next_)
        return self.account

    def _known_losses(self) -> None:
        for loss in self.losses:
            if loss.partition == self.account.partition:
                self.account.find("lost", [(loss.first, loss.next)], about=f"accepted by {loss.by} at {loss.at}")
        about = f"older than {self.dropped.before}"
        self.account.find("dropped", self.dropped.of(self.account.partition), about=about)

    def _gone(self, start: int) -> None:
        """The part that the broker no longer has: only the archive can be asked."""
        while self.files and self.files[0].first < start:
            self._load(self.files.popleft())
            self._alone(min(start, self.files[0].first if self.files else start))
        self._alone(start, close=self.reached is not None)

    def _alone(self, upto: int, *, close: bool = False) -> None:
        found = self._take(upto).in_order()
        self._sum(found)
        blank = imprint.forgotten(found) & (found.offsets < self.blank_before)
        self.account.find("forgotten", runs(np.unique(found.offsets[blank])))
        for first, next_ in holes(found.offsets, reached=self.reached, upto=upto if close else None):
            self.account.find("gap" if self.source.dense else "hole", self._not_accepted(first, next_))
        if len(found):
            last = int(found.offsets[-1]) + 1
            self._went(last)
        if close:
            self._went(upto)

    def _not_accepted(self, first: int, next_: int) -> list[tuple[int, int]]:
        """What no accepted loss covers of a span, and no retention."""
        known = [(each.first, each.next) for each in self.losses if each.partition == self.account.partition]
        return outside(first, next_, [*known, *self.dropped.of(self.account.partition)])

    def _held(self, end: int) -> None:
        """The part that both have: every record of the topic must be in the archive as it is."""
        if self.account.on_broker is None:
            return
        start = max(self.account.on_broker[0], self.reached or 0)
        for batch in self._read(start, end):
            found = imprints(batch)
            upto = int(found.offsets[-1]) + 1
            self._compare(found, upto=upto)
        self._compare(NOTHING, upto=end)

    def _read(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The topic's records, from its new start on where the broker deletes some meanwhile."""
        number = _own(self.account.partition)
        while start < end:
            try:
                for batch in read(self.kafka, self.source.name, spans={number: Span(start, end)}):
                    yield batch
                    start = self.reached or start
                return
            except KafkaException as error:
                if error.args[0].code() not in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
                    raise
            moved = topic.describe(self.kafka, self.source.name).partitions[number]
            if start > moved.end:
                raise TopicError(
                    f"topic {self.source.name}: partition {number} ends at {moved.end}, not past {start} any more: it "
                    f"was made anew, or lost records, while it was compared. Verify again."
                )
            if moved.start <= start:
                continue
            self.account.on_broker = (moved.start, self.account.on_broker[1] if self.account.on_broker else moved.end)
            self._gone(min(moved.start, end))
            start = max(moved.start, self.reached or 0)

    def _compare(self, found: Imprints, *, upto: int) -> None:
        while self.files and self.files[0].first < upto:
            self._load(self.files.popleft())
        result = compare(found, self._take(upto), listed=LISTED, blank_before=self.blank_before)
        account, before = self.account, self.account.differences
        account.equal += result.equal
        account.checksum += result.checksum
        dropped = self.dropped.of(account.partition)
        account.find("gap", (each for run in runs(result.missing) for each in outside(*run, dropped)))
        account.find("double", _each(result.doubled))
        account.find("forgotten", runs(result.forgotten))
        account.find("compacted" if self.source.compacted else "surplus", runs(result.surplus))
        for first, next_ in _each(result.altered):
            account.find("altered", [(first, next_)], about=", ".join(result.differing.get(first, ())))
        if account.differences != before:  # what the topic has dropped since, or the archive on purpose, is none
            account.apart += result.apart
        self._went(upto)

    def _rest(self, head: int) -> None:
        """What lies past the head, or past the end of a topic that has become shorter."""
        while self.files:
            self._load(self.files.popleft())
        rest = self._take(ENDLESS).in_order()
        self.account.find("double", _each(doubles(rest.offsets)))
        self.account.checksum += rest.checksum
        self.account.apart -= rest.checksum
        beyond = np.unique(rest.offsets)
        if self.account.on_broker is not None:
            self.account.find("surplus", runs(beyond[beyond < head]))
        self.account.find("ahead", runs(beyond[beyond >= head]))

    def _sum(self, alone: Imprints) -> None:
        """Reckon with records that the topic cannot tell of: each should be there once."""
        self.account.find("double", _each(doubles(alone.offsets)))
        again = np.r_[False, alone.offsets[1:] == alone.offsets[:-1]][: len(alone)]
        self.account.checksum += alone.checksum
        self.account.apart -= alone.where(again).checksum

    def _load(self, claimed: Claim) -> None:
        """Read a file of the archive, hold it against its claim, and let its imprints wait for their turn."""
        assert self.table is not None, "a file is of a table"
        prefix = f"{self.lake.location.rstrip('/')}/archive/{self.source.name}/{_own(claimed.partition)}"
        examined = examine(self.table.io, claimed, prefix=prefix)
        rows = examined.rows if self.floor is None else examined.rows.where(examined.rows.offsets >= self.floor)
        self.account.records += len(rows)
        for wrong in examined.misplaced:
            span = (wrong.first, wrong.first + 1)
            self.account.find("misplaced", [span], about=f"{wrong.why}: {claimed.name}", count=wrong.count)
        for fault in examined.faults:
            self.account.find("file", [(claimed.first, claimed.last + 1)], about=f"{claimed.name}: {fault}", count=1)
        if len(rows):
            offsets = rows.offsets
            self.account.archive_reaches(int(offsets.min()), int(offsets.max()) + 1)
            # A file whose statistics hide its first rows is read too late for them: they are then a gap, and told.
            self.waiting = Imprints.joined([self.waiting, rows])

    def _take(self, upto: int) -> Imprints:
        below = self.waiting.offsets < upto
        taken, self.waiting = self.waiting.where(below), self.waiting.where(~below)
        return taken

    def _went(self, upto: int) -> None:
        if self.reached is None or upto > self.reached:
            self.steps.go(upto - self.reached if self.reached is not None else 0)
            self.reached = upto


def _each(offsets: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Iterator[tuple[int, int]]:
    return ((offset, offset + 1) for offset in offsets.tolist())
