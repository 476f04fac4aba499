"""The plan: what changed in the feed files and in the registry since the journal was written."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace import feed
from headrace.airflow.authority import Authority
from headrace.airflow.journal import Entry, Journal
from headrace.airflow.stubs import fault_stub, feed_stub

WAIT_S = 10.0
"""How long a service that gave no answer is left alone."""


@dataclass(frozen=True)
class Seen:
    """The file of a feed as its folder shows it; more than one when two files claim the same name."""

    files: tuple[str, ...]
    signature: str
    changed: int
    """In nanoseconds since 1970."""


@dataclass(frozen=True)
class Plan:
    """What there is to do."""

    judge: tuple[str, ...] = ()
    """Feeds whose files are to be judged, the one changed last first."""
    gone: tuple[str, ...] = ()
    """Feeds whose files are gone."""
    offers: bool = False
    """Whether to look through the feeds that the registry offers."""
    orphans: bool = False
    """Whether there are stubs of no feed, as when somebody was killed half-way."""

    def __bool__(self) -> bool:
        return bool(self.judge or self.gone or self.offers or self.orphans)


def scan(schemas: Path) -> dict[str, Seen]:
    """The feeds that a folder's files name: one listing, and a look at each file's time."""
    found: dict[str, Seen] = {}
    for path in feed.files(schemas):
        try:
            state = path.stat()
        except FileNotFoundError:
            continue
        seen = Seen((path.name,), f"{path.name} {state.st_mtime_ns} {state.st_size} {state.st_ino}", state.st_mtime_ns)
        found[path.stem] = _both(found[path.stem], seen) if path.stem in found else seen
    return found


def _both(one: Seen, other: Seen) -> Seen:
    return Seen(
        (*one.files, *other.files), f"{one.signature}, {other.signature}", changed=max(one.changed, other.changed)
    )


def plan(
    seen: Mapping[str, Seen],
    journal: Journal,
    *,
    stubs: frozenset[str],
    mark: str | None,
    authority: Authority,
    now: float,
) -> Plan:
    """What to do about what is seen; a mark of None says that the registry gives no answer."""
    due = [
        name
        for name, file in seen.items()
        if (entry := journal.feeds.get(name)) is None
        or entry.signature != file.signature
        or _is_due(entry, mark=mark, registers=authority.registers, now=now)
        or not _stub(name, entry) <= stubs
    ]
    is_offer_due = mark != journal.mark or _is_offer_due(journal, stubs, opens=authority.opens, now=now)
    return Plan(
        judge=tuple(sorted(due, key=lambda name: -seen[name].changed)),
        gone=tuple(name for name, entry in journal.feeds.items() if name not in seen and not entry.offered),
        offers=mark is not None and is_offer_due,
        orphans=journal.whole and bool(stubs - expected(journal)),
    )


def _is_due(entry: Entry, *, mark: str | None, registers: bool, now: float) -> bool:
    """Whether the same version is judged once more."""
    match entry.verdict:
        case "waiting":
            return mark is not None and now - entry.at > WAIT_S
        case "refused":
            return mark is not None and mark != entry.mark
        case "accepted":
            return mark is not None and registers and not entry.registered
    return False


def _is_offer_due(journal: Journal, stubs: frozenset[str], *, opens: bool, now: float) -> bool:
    offered = ((name, entry) for name, entry in journal.feeds.items() if entry.offered)
    return any(
        _is_due(entry, mark=entry.mark, registers=opens, now=now) or not _stub(name, entry) <= stubs
        for name, entry in offered
    )


def _stub(name: str, entry: Entry) -> frozenset[str]:
    """The stub that a verdict leaves behind."""
    match entry.verdict:
        case "accepted":
            return frozenset([feed_stub(name)])
        case "waiting":
            return frozenset()
    return frozenset([fault_stub(name)])


def expected(journal: Journal) -> frozenset[str]:
    """The stubs that there may be."""
    return frozenset(stub for name in journal.feeds for stub in (feed_stub(name), fault_stub(name)))
