"""What was published when: the snapshots that readers saw, from the table's own log of its main branch."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from pyiceberg.table import Table

from headrace.clean import ACCOUNTS
from headrace.errors import ReadError
from headrace.lake import ancestors


@dataclass(frozen=True)
class Published:
    """A snapshot, when readers began to see it, and what the run that made it did."""

    snapshot: int
    at: datetime
    accounts: Mapping[str, int]

    def __str__(self) -> str:
        return f"snapshot {self.snapshot}, published {shown(self.at)}"


def history(table: Table) -> list[Published]:
    """Everything that was published and has not expired, the newest first."""
    return list(_backwards(table))


def _backwards(table: Table) -> Iterator[Published]:
    # The log has the moment of the switch. A snapshot's own time is older: it waited on a branch for its checks.
    for entry in reversed(table.metadata.snapshot_log):
        snapshot = table.snapshot_by_id(entry.snapshot_id)
        if snapshot is not None:
            summary = snapshot.summary.additional_properties if snapshot.summary else {}
            at = datetime.fromtimestamp(entry.timestamp_ms / 1000, UTC)
            yield Published(entry.snapshot_id, at, json.loads(summary.get(ACCOUNTS, "{}")))


def chosen(table: Table, feed: str, *, as_of: datetime | str | None, snapshot: int | None) -> Published:
    """What a reader means: a snapshot, what was current at a time, or what is current now."""
    known = history(table)
    if not known:
        raise ReadError(f"clean.{feed}: nothing was published yet. Run the feed: airflow dags trigger {feed}")
    if as_of is not None and snapshot is not None:
        raise ReadError(f"clean.{feed}: as_of and snapshot were both given; give one of them.")
    if snapshot is not None:
        return _of_snapshot(table, feed, snapshot=snapshot, known=known)
    return known[0] if as_of is None else _of_time(table, feed, at=moment(as_of), known=known)


def _of_snapshot(table: Table, feed: str, *, snapshot: int, known: list[Published]) -> Published:
    if found := next((each for each in known if each.snapshot == snapshot), None):
        return found
    if table.snapshot_by_id(snapshot) is not None:
        why = "was never published: it waits on a run's branch, or was a step on one"
    else:
        why = "is not there: it has expired, or never was"
    raise ReadError(f"clean.{feed}: snapshot {snapshot} {why}. The oldest that can be read: {known[-1]}.")


def _of_time(table: Table, feed: str, *, at: datetime, known: list[Published]) -> Published:
    later: Published | None = None
    for each in known:
        if each.at > at:
            later = each
        elif later is None or each.at == at or _follows(table, later, each):
            return each
        else:
            raise ReadError(
                f"clean.{feed}: what readers saw at {shown(at)} has expired. What can be read of before and after: "
                f"{each}; {later}."
            )
    raise ReadError(
        f"clean.{feed}: what readers saw at {shown(at)} has expired, or nothing was published by then. "
        f"The oldest that can be read: {known[-1]}."
    )


def _follows(table: Table, later: Published, earlier: Published) -> bool:
    """Whether nothing is missing between the two: a tag or a branch keeps a snapshot longer than those after it."""
    if any(each.snapshot_id == earlier.snapshot for each in ancestors(table, later.snapshot)):
        return True
    return _number(table, later) < _number(table, earlier)  # main was rolled back


def _number(table: Table, published: Published) -> int:
    snapshot = table.snapshot_by_id(published.snapshot)
    return (snapshot.sequence_number if snapshot else None) or 0


def moment(as_of: datetime | date | str) -> datetime:
    """A time as people write it; without a zone it is UTC, and a day is its beginning."""
    if isinstance(as_of, str):
        try:
            as_of = datetime.fromisoformat(as_of)
        except ValueError:
            raise ReadError(f"{as_of!r} is no time. Write it as 2026-01-31T08:00, in UTC, or with its zone.") from None
    if not isinstance(as_of, datetime):
        as_of = datetime.combine(as_of, time())
    return as_of.astimezone(UTC) if as_of.tzinfo else as_of.replace(tzinfo=UTC)


def shown(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")
