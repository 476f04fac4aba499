"""Replay: a slice of the archive back to its topic or to another one, each record once, ranked as it was.

A record goes out with its key, value, headers and timestamp, and one header more: its original coordinates, signed.
Progress is an offset per partition of the archive, committed with the records: the same replay, started again, goes
on where it stopped.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
from pyiceberg.table import Table

from headrace import archived, away, forgotten, layout, provenance, quarantine
from headrace.archived import Archived
from headrace.errors import ForgedError, SliceError, TopicError
from headrace.feed import Feed, refuse_stream
from headrace.filed import Claim
from headrace.heads import Heads, mirrored
from headrace.kafka.delivery import Delivery, Headers, Outgoing, batches
from headrace.kafka.limits import AFTER, BEFORE
from headrace.kafka.pace import Rate
from headrace.kafka.target import Target, Times, target
from headrace.kafka.topic import Config
from headrace.lake import Lake, heads_of
from headrace.provenance import Header, Origin, SigningKey
from headrace.quarantine import Reason
from headrace.record import filed_hour
from headrace.slice import Offsets, Slice, kafka_number

Progress = Callable[[int, int], None]
"""Told how many records of the archive were looked at, and how many are to be."""


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

    @property
    def is_archived(self) -> bool:
        """Whether the feed itself reads the topic that they go to."""
        return self.target.id in {self.heads.topic_id, self.heads.drained_id}


@dataclass
class Tally:
    """What a replay did, or would do; counted while it goes."""

    records: int = 0
    bytes: int = 0
    copies: int = 0
    """Left out: copies of records that are in the slice themselves."""
    forged: int = 0
    """Left out: records that say falsely that they were replayed or imported."""
    forgotten: int = 0
    """Left out: blanked records, of which nothing is there to send."""
    expired: int = 0
    """Older than the topic keeps records; the broker may delete them before anybody reads them."""
    refused: int = 0
    """Older or newer than the topic takes records."""
    hours: dict[tuple[int, int | None], tuple[int, int]] = field(default_factory=dict)
    """Records and bytes by the partition, as its topic numbers it, and the hour since 1970."""

    def add(self, record: Archived, message: Outgoing, *, times: Times) -> None:
        self.records += 1
        self.bytes += message.size
        place = (kafka_number(record.partition), filed_hour(record.timestamp))
        count, size = self.hours.get(place, (0, 0))
        self.hours[place] = (count + 1, size + message.size)
        if record.timestamp:  # what has none, or zero, is sent as of now
            self.expired += times.expires(record.timestamp)
            self.refused += times.refuses(record.timestamp)


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
    narrowed = slice_.at(*_quarantined(feed, lake, slice_)) if slice_.quarantine is not None else slice_
    own = found.id == heads.topic_id
    files = archived.files(table, snapshot.snapshot_id, slice_=narrowed)
    keeps = same_partitions or own
    if keeps:
        _refuse_narrow(found, files, own=own)
    topic_id = heads.drained_id if slice_.drained else heads.topic_id
    # The last key: a new one is put before it, and what was begun goes on.
    id_ = slice_.identity(feed=feed.name, topic_id=topic_id, to=found.id, same_partitions=keeps, secret=signing.all[-1])
    name = f"headrace.replay.{feed.name}.{id_}"
    return Replay(name, feed, table, heads, narrowed, files, found, keeps, signing)


def _quarantined(feed: Feed, lake: Lake, slice_: Slice) -> tuple[npt.NDArray[np.int32], Offsets]:
    """The partitions and offsets of the records in quarantine, as the archive has them."""
    if slice_.quarantine and slice_.quarantine not in {reason.value for reason in Reason}:
        known = ", ".join(reason.value for reason in Reason)
        raise SliceError(f'nothing is ever quarantined as "{slice_.quarantine}". The reasons are: {known}.')
    table = lake.find(layout.quarantine_table(feed.name))
    partitions, offsets = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    if table is not None:
        reason = f" and reason = '{slice_.quarantine}'" if slice_.quarantine else ""
        scan = table.scan(row_filter=f"{quarantine.counted(table)}{reason}", selected_fields=("partition", "offset"))
        for batch in scan.to_arrow_batch_reader():
            partitions.append(batch["partition"].to_numpy())
            offsets.append(batch["offset"].to_numpy())
    return np.concatenate(partitions), np.concatenate(offsets)


def _refuse_narrow(found: Target, files: Mapping[int, Sequence[Claim]], *, own: bool) -> None:
    highest = max(map(kafka_number, files), default=0)
    if highest >= found.partitions:
        whose = "the drained topic's records" if own else "records"
        raise TopicError(
            f"topic {found.name}: it has {found.partitions} partitions, but {whose} lie in partitions up to {highest}. "
            f"{'Send them to another topic' if own else 'Leave --same-partitions out, so that keys decide'}."
        )


def cautions(replay: Replay, *, now: int) -> list[str]:
    """What the topic does to records of the slice, as far as it is known before any is sent; a sentence each."""
    to, said = replay.target, []
    held, times = archived.times(replay.files, slice_=replay.slice), to.times(now)
    if not to.limits.keeps_timestamps:
        said.append(f"Topic {to.name} stamps records itself (LogAppendTime): their timestamps are not kept.")
    if held and held[0] < times.earliest:
        said.append(f"Some of the slice may be older than topic {to.name} takes. Raise its {BEFORE} first.")
    if held and held[1] > times.latest:
        said.append(f"Some of the slice may be newer than topic {to.name} takes. Raise its {AFTER} first.")
    return said + dangers(replay, now=now)


def dangers(replay: Replay, *, now: int) -> list[str]:
    """What readers of the topic may lose by a replay."""
    to, said = replay.target, []
    if to.limits.is_compacted and replay.files:
        said.append(
            f"Topic {to.name} is compacted: of each key it keeps what came last, which is then what was replayed, also "
            f"where it is older. A newer record that was not read yet may go."
        )
    held = archived.times(replay.files, slice_=replay.slice)
    if held and to.times(now).expires(held[0]):
        said.append(
            f"Some of the slice may be of {_day(held[0])}, older than topic {to.name} keeps any (retention.ms): the "
            f"broker may delete it before it is read, and a feed stops where records were lost. Lengthen it meanwhile."
        )
    return said


def _day(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).date().isoformat()


def _require_safe(replay: Replay, *, now: int) -> None:
    """Refuse what may lose records of the feed, or stop it."""
    if replay.is_archived and (said := dangers(replay, now=now)):
        raise TopicError(
            f"topic {replay.target.name}: feed {replay.feed.name} reads it, and may lose by this. "
            f"{' '.join(said)} Send the slice to another topic (--to), or narrow it (--since). All the same: --anyway"
        )


@away.tells
def survey(replay: Replay, *, now: int, lake: Lake) -> Tally:
    """Count what a replay would send, and send nothing."""
    assert lake is not None, "away tells by it which lake does not answer"
    tally, times = Tally(), replay.target.times(now)
    for number in replay.files:
        for _ in _messages(replay, number, first=0, tally=tally, times=times):
            pass
    return tally


@away.tells_resuming
def run(
    replay: Replay,
    *,
    lake: Lake,
    kafka: Config,
    now: int,
    rate: Rate,
    again: int | None = None,
    anyway: bool = False,
    progress: Progress | None = None,
) -> Tally:
    """Send the slice from where an earlier try of the same replay stopped, or from its beginning, once for a number
    that `again` gives to this wish; where the feed may lose by it, only if that is wanted `anyway`."""
    assert lake is not None, "away tells by it which lake does not answer"
    if not anyway:
        _require_safe(replay, now=now)
    tally, to = Tally(), replay.target
    times = to.times(now)
    with Delivery(kafka, replay.name, topic=to.name, largest=to.limits.largest_message, rate=rate) as delivery:
        if again is not None:
            delivery.begin_again(replay.files, wish=again)
        firsts = {number: delivery.reached(number) for number in replay.files}
        delivery.renew()
        looked = _counting(replay, firsts, progress=progress)
        for number, first in firsts.items():
            messages = _messages(replay, number, first=first, tally=tally, times=times, looked=looked)
            for batch, reached in batches(messages, rate):
                delivery.send(batch, reached=reached, lane=number)
    return tally


def _counting(replay: Replay, firsts: Mapping[int, int], *, progress: Progress | None) -> Callable[[int], None]:
    """Sums up how many records were looked at, whether they are sent or not, and tells it with how many are to be."""
    done = 0
    of = sum(
        claim.records for number, claims in replay.files.items() for claim in claims if claim.last >= firsts[number]
    )

    def looked(records: int) -> None:
        nonlocal done
        done += records
        if progress:
            progress(done, of)

    return looked


def _messages(
    replay: Replay,
    number: int,
    *,
    first: int,
    tally: Tally,
    times: Times,
    looked: Callable[[int], None] = lambda _: None,
) -> Iterator[tuple[Outgoing, int]]:
    """One partition's records as they go out, each with the offset that is reached after it."""
    lowest = {partition: claims[0].first for partition, claims in replay.files.items()}
    claimed, io = replay.files[number], replay.table.io
    for record in archived.records(io, claimed, slice_=replay.slice, first=first, looked=looked):
        if forgotten.is_blank(record.key, record.value, record.headers):
            tally.forgotten += 1
            continue
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
        tally.add(record, message, times=times)
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
