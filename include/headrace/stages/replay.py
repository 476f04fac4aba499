"""Replay: a slice of the archive back to its topic or to another one, each record once, ranked as it was.

A record goes out with its key, value, headers and timestamp, and one header more: its original coordinates, signed.
Progress is an offset per partition of the archive, committed with the records: the same replay, started again, goes
on where it stopped.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.table import Table

from headrace import archived, away, layout, provenance
from headrace.archived import Archived
from headrace.errors import ForgedError, SliceError, TopicError
from headrace.feed import Feed, refuse_stream
from headrace.filed import Claim
from headrace.heads import Heads, mirrored
from headrace.kafka.delivery import Delivery, Headers, Outgoing, batches
from headrace.kafka.pace import Rate
from headrace.kafka.target import Target, target
from headrace.kafka.topic import Config
from headrace.lake import Lake, heads_of
from headrace.provenance import Header, Origin, SigningKey
from headrace.quarantine import Reason
from headrace.record import filed_hour
from headrace.slice import Slice, kafka_number

Progress = Callable[[int, int], None]
"""Told how many records were published, and how many there may be in all."""


@dataclass(frozen=True)
class Replay:
    """One replay, planned: what of which archive goes where, under which name."""

    name: str
    feed: Feed
    table: Table
    heads: Heads
    slice: Slice
    files: Mapping[int, Sequence[Claim]]
    """By the archive's partition numbers."""
    target: Target
    same_partitions: bool
    signing: SigningKey = field(repr=False)

    @property
    def topic_id(self) -> str:
        """The id of the topic that the records come from."""
        return self.heads.drained_id if self.slice.drained else self.heads.topic_id


@dataclass
class Tally:
    """What a replay did, or would do; counted while it goes."""

    records: int = 0
    bytes: int = 0
    copies: int = 0
    """Left out: copies of records that are in the slice themselves."""
    forged: int = 0
    """Left out: records that say falsely that they were replayed or imported."""
    expired: int = 0
    """Older than the topic keeps records; the broker may delete them before anybody reads them."""
    hours: dict[tuple[int, int | None], tuple[int, int]] = field(default_factory=dict)
    """Records and bytes by the partition, as its topic numbers it, and the hour since 1970."""

    def add(self, record: Archived, message: Outgoing, *, oldest: int | None) -> None:
        self.records += 1
        self.bytes += message.size
        place = (kafka_number(record.partition), filed_hour(record.timestamp))
        count, size = self.hours.get(place, (0, 0))
        self.hours[place] = (count + 1, size + message.size)
        if oldest is not None and record.timestamp is not None and record.timestamp < oldest:
            self.expired += 1


@away.tells
def plan(
    feed: Feed, *, lake: Lake, kafka: Config, slice_: Slice, to: str | None, same_partitions: bool, signing: SigningKey
) -> Replay:
    """Find the slice in the archive, and the topic that it goes to."""
    if to is None:
        refuse_stream(feed, "a replay without another topic to go to (--to)")
    table = lake.find(layout.archive_table(feed.name))
    snapshot = table.current_snapshot() if table else None
    if table is None or snapshot is None:
        raise SliceError(f"feed {feed.name}: nothing of it is archived yet, so there is nothing to replay.")
    heads, found = heads_of(table), target(kafka, to or feed.topic)
    if slice_.drained and not heads.drained_id:
        raise SliceError(f"feed {feed.name}: its archive holds no drained topic's records, which --drained asks for.")
    if to is None and found.id != heads.topic_id:
        raise TopicError(
            f"topic {found.name}: it was deleted and made again since it was archived, so nothing of the archive is "
            f"its own. To publish there all the same, name it: --to {found.name}"
        )
    narrowed = slice_.at(_quarantined(feed, lake, slice_)) if slice_.quarantine is not None else slice_
    own = found.id == heads.topic_id
    files = archived.files(table, snapshot.snapshot_id, slice_=narrowed)
    if same_partitions or own:
        _refuse_narrow(found, files, own=own)
    topic_id = heads.drained_id if slice_.drained else heads.topic_id
    id_ = slice_.identity(feed=feed.name, topic_id=topic_id, to=found.id, secret=signing.secret)
    name = f"headrace.replay.{feed.name}.{id_}"
    return Replay(name, feed, table, heads, narrowed, files, found, same_partitions or own, signing)


def _quarantined(feed: Feed, lake: Lake, slice_: Slice) -> Iterator[tuple[int, int]]:
    """Where the records in quarantine lie in the archive."""
    if slice_.quarantine and slice_.quarantine not in {reason.value for reason in Reason}:
        known = ", ".join(reason.value for reason in Reason)
        raise SliceError(f'nothing is ever quarantined as "{slice_.quarantine}". The reasons are: {known}.')
    table = lake.find(layout.quarantine_table(feed.name))
    if table is None:
        return
    reason = f"reason = '{slice_.quarantine}'" if slice_.quarantine else "true"
    rows = table.scan(row_filter=reason, selected_fields=("partition", "offset")).to_arrow_batch_reader()
    for batch in rows:
        yield from zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True)


def _refuse_narrow(found: Target, files: Mapping[int, Sequence[Claim]], *, own: bool) -> None:
    highest = max(map(kafka_number, files), default=0)
    if highest >= found.partitions:
        whose = "the drained topic's records" if own else "records"
        raise TopicError(
            f"topic {found.name}: it has {found.partitions} partitions, but {whose} lie in partitions up to {highest}. "
            f"{'Send them to another topic' if own else 'Leave --same-partitions out, so that keys decide'}."
        )


@away.tells
def survey(replay: Replay, *, now: int, lake: Lake) -> Tally:
    """Count what a replay would send, and send nothing."""
    assert lake is not None, "away tells by it which lake does not answer"
    tally = Tally()
    for number in replay.files:
        for _ in _messages(replay, number, first=0, tally=tally, now=now):
            pass
    return tally


@away.tells
def run(
    replay: Replay,
    *,
    lake: Lake,
    kafka: Config,
    now: int,
    rate: Rate,
    again: int | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Send the slice from where an earlier try of the same replay stopped, or from its beginning, once for a number
    that `again` gives to this wish."""
    assert lake is not None, "away tells by it which lake does not answer"
    tally, sent = Tally(), 0
    with Delivery(kafka, replay.name, topic=replay.target.name, rate=rate) as delivery:
        if again is not None:
            delivery.begin_again(replay.files, wish=again)
        firsts = {number: delivery.reached(number) for number in replay.files}
        of = sum(
            claim.records for number, claims in replay.files.items() for claim in claims if claim.last >= firsts[number]
        )
        for number, first in firsts.items():
            messages = _messages(replay, number, first=first, tally=tally, now=now)
            for batch, reached in batches(messages, rate):
                delivery.send(batch, reached=reached, lane=number)
                sent += len(batch)
                if progress:
                    progress(sent, of)
    return tally


def _messages(replay: Replay, number: int, *, first: int, tally: Tally, now: int) -> Iterator[tuple[Outgoing, int]]:
    """One partition's records as they go out, each with the offset that is reached after it."""
    limits = replay.target.limits
    oldest = now - limits.retention if limits.retention is not None and limits.keeps_timestamps else None
    lowest = {partition: claims[0].first for partition, claims in replay.files.items()}
    for record in archived.records(replay.table.io, replay.files[number], slice_=replay.slice, first=first):
        try:
            headers, copied = _headers(replay, record)
        except ForgedError:
            # One that an operator picks by that very reason is believed from now on.
            if replay.slice.quarantine != Reason.FORGED.value:
                tally.forged += 1
                continue
            kept = [header for header in record.headers if not provenance.is_ours(header)]
            headers, copied = [*kept, _origin(replay, record)], None
        if copied is not None and _is_in_slice(replay, copied, record, lowest=lowest):
            tally.copies += 1
            continue
        partition = kafka_number(number) if replay.same_partitions else None
        message = Outgoing(record.key, record.value, headers, record.timestamp, partition)
        tally.add(record, message, oldest=oldest)
        yield message, record.offset + 1


def _headers(replay: Replay, record: Archived) -> tuple[Headers, Origin | None]:
    """The record's headers and our own; a copy keeps that of the first original, whose coordinates are told too."""
    proven = provenance.read(record.headers, key=record.key, value=record.value, signing=replay.signing)
    if proven.origin is not None:
        return record.headers, proven.origin
    return [*record.headers, _origin(replay, record)], None


def _origin(replay: Replay, record: Archived) -> Header:
    """The record's own coordinates, signed."""
    origin = Origin(replay.topic_id, kafka_number(record.partition), record.offset)
    return provenance.replayed(origin, key=record.key, value=record.value, signing=replay.signing)


def _is_in_slice(replay: Replay, origin: Origin, copy: Archived, *, lowest: Mapping[int, int]) -> bool:
    """Whether the original of a copy is archived, and goes out by itself."""
    places = {replay.heads.topic_id: origin.partition, replay.heads.drained_id: mirrored(origin.partition)}
    number = places.get(origin.topic_id)
    if number is None or number not in lowest or origin.offset < lowest[number]:
        return False
    if replay.slice.by_time and copy.timestamp_type == "append":
        return False  # the broker stamped the copy: it does not tell the original's time
    return replay.slice.has(number, origin.offset, timestamp=copy.timestamp, key=copy.key)
