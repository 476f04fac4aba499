"""A replay as people ask for it, on the command line and in Airflow's form, made with the connections at hand."""

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace import feed as feeds
from headrace.errors import SliceError
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.kafka.pace import Rate
    from headrace.slice import Slice
    from headrace.stages.replay import Progress, Replay, Tally

LINE_S = 10.0


@dataclass(frozen=True)
class Request:
    """What was asked for, as it was told."""

    feed: str
    since: str | None = None
    until: str | None = None
    offsets: Sequence[str] = ()
    partitions: Sequence[int] = ()
    keys: Sequence[str] = field(default=(), repr=False)
    quarantine: bool = False
    reason: str | None = None
    drained: bool = False
    to: str | None = None
    same_partitions: bool = False
    rate: float | None = None
    bytes_rate: float | None = None
    again: bool = False
    anyway: bool = False

    def limit(self) -> "Rate":
        """How fast it may go."""
        from headrace.kafka.pace import Rate

        return Rate(self.rate, self.bytes_rate)

    def slice(self) -> "Slice":
        """The slice that is meant."""
        from headrace import slice

        if self.reason and not self.quarantine:
            raise SliceError(f'the reason "{self.reason}" is one of quarantine. Ask for quarantine too.')
        since, until = slice.moment(self.since), slice.moment(self.until)
        if since is not None and until is not None and since >= until:
            raise SliceError(f"the slice is to begin at {self.since} and to end at {self.until}, which is not later.")
        return slice.Slice(
            since=since,
            until=until,
            offsets=slice.spans(self.offsets),
            partitions=frozenset(self.partitions),
            keys=frozenset(map(slice.key, self.keys)),
            drained=self.drained,
            quarantine=(self.reason or "") if self.quarantine else None,
        )


def plan(request: Request) -> "Replay":
    """Find what is asked for."""
    from headrace.airflow import connections
    from headrace.stages import replay

    return replay.plan(
        feeds.named(request.feed, Settings().schemas),
        lake=connections.lake(Settings()),
        kafka=connections.kafka(),
        slice_=request.slice(),
        to=request.to or None,
        same_partitions=request.same_partitions,
        signing=connections.signing_key(),
    )


def cautions(planned: "Replay") -> list[str]:
    """What somebody should know before anything of it is sent, a sentence each."""
    from headrace.stages import replay

    return replay.cautions(planned, now=_now())


def survey(planned: "Replay") -> "Tally":
    """Count it."""
    from headrace.airflow import connections
    from headrace.stages import replay

    return replay.survey(planned, now=_now(), lake=connections.lake(Settings()))


def run(planned: "Replay", request: Request, *, progress: "Progress | None" = None, wish: str | None = None) -> "Tally":
    """Send it; of several tries of one wish to begin again, only the first does."""
    from headrace.airflow import connections
    from headrace.stages import replay

    return replay.run(
        planned,
        lake=connections.lake(Settings()),
        kafka=connections.kafka(),
        now=_now(),
        rate=request.limit(),
        again=_number(wish or secrets.token_hex()) if request.again else None,
        anyway=request.anyway,
        progress=progress,
    )


def lines(say: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> "Progress":
    """Progress as lines, not more than one in ten seconds."""
    last = clock()

    def progress(done: int, of: int) -> None:
        nonlocal last
        if clock() - last >= LINE_S:
            last = clock()
            say(f"{done:,} of {of:,} records looked at")

    return progress


def keys_in(path: Path) -> list[str]:
    """One key a line, as it stands there; no key at all would mean every record."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SliceError(
            f"{path}: it is not UTF-8 text. Give one key a line, or name the records by offsets."
        ) from error
    keys = text.removesuffix("\n").split("\n") if text else []
    if not any(keys):
        raise SliceError(f"{path}: it holds no key, and without one every record is meant. Put one key on each line.")
    if not all(keys):
        raise SliceError(f"{path}: line {keys.index('') + 1} is empty. Put one key on each line, and nothing else.")
    return keys


def told(planned: "Replay", tally: "Tally") -> dict[str, Any]:
    """What a replay did, for programs; never with a key."""
    return {
        "replay": planned.name,
        "feed": planned.feed.name,
        "topic": planned.target.name,
        "records": tally.records,
        "bytes": tally.bytes,
        "copies": tally.copies,
        "forged": tally.forged,
        "expired": tally.expired,
        "refused": tally.refused,
    }


def remarks(planned: "Replay", tally: "Tally") -> list[str]:
    """What came of it that somebody should know, a sentence each."""
    target, said = planned.target, []
    if not (tally.records or tally.copies or tally.forged or tally.forgotten):
        said.append("Nothing of the slice is left to send: it is empty, or was sent before. Once more: again.")
    if tally.copies:
        said.append(f"{tally.copies:,} copies were left out: their originals are in the slice.")
    if tally.forged:
        said.append(f"{tally.forged:,} records were left out that say falsely that they were replayed or imported.")
    if tally.forgotten:
        said.append(f"{tally.forgotten:,} records were left out that are forgotten: nothing is left of them.")
    if tally.expired:
        said.append(
            f"{tally.expired:,} records are older than topic {target.name} keeps any (retention.ms): the broker may "
            f"delete them before they are read. Lengthen it while they are."
        )
    if tally.refused:
        said.append(
            f"{tally.refused:,} records are older or newer than topic {target.name} takes any: the broker refuses "
            f"them, and a replay stops. Raise message.timestamp.before.max.ms or message.timestamp.after.max.ms."
        )
    return said


def _number(wish: str) -> int:
    """A wish as a number that Kafka takes for an offset, which is never the zero of no wish."""
    return 1 + int.from_bytes(hashlib.sha256(wish.encode()).digest()[:7], "big")


def _now() -> int:
    return time.time_ns() // 1_000_000
