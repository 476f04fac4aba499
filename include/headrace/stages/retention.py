"""Retention of an archive: whole hours of records that are older than the feed keeps them, dropped in one commit.

Only what the clean table has merged may go, and what it leaves behind is noted, so that it is not taken for a loss.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from headrace import dropped
from headrace.dropped import Dropped, Span
from headrace.filed import Claim, claim
from headrace.heads import Heads
from headrace.hours import HOUR_MS, hour_start
from headrace.lake import keep_time
from headrace.stages import carrying


@dataclass(frozen=True)
class Past:
    """An archive's files, parted by a feed's retention."""

    hour: int
    """Hours since 1970: what is filed under an earlier one may go."""
    files: tuple[DataFile, ...]
    gone: tuple[Claim, ...]
    stay: tuple[Claim, ...]


def past(table: Table, *, before: datetime, merged: Heads) -> Past:
    """Which files hold nothing but older records that have been merged; those without an hour never do."""
    hour = int(before.timestamp() * 1000) // HOUR_MS
    files = [task.file for task in table.scan().plan_files()]
    claimed = [(file, claim(file)) for file in files]
    gone = [pair for pair in claimed if may_go(pair[1], hour=hour, merged=merged)]
    paths = {each.path for _, each in gone}
    stay = tuple(each for _, each in claimed if each.path not in paths)
    return Past(hour, tuple(file for file, _ in gone), tuple(each for _, each in gone), stay)


def may_go(claimed: Claim, *, hour: int, merged: Heads) -> bool:
    return claimed.hour is not None and claimed.hour < hour and claimed.last < merged.of(claimed.partition)


def drop(table: Table, old: Past) -> None:
    """Take the files out of the table and note where they lay, with the heads as they are."""
    noted = Dropped(hour_start(old.hour).isoformat(), spans(dropped.dropped_of(table), old.gone, stay=old.stay))
    summary = carrying.with_heads(table, done={"dropped": len(old.files), "before": noted.before})
    with table.transaction() as transaction:
        transaction.set_properties({dropped.PROPERTY: noted.to_json()})
        with transaction.update_snapshot(snapshot_properties=summary).overwrite() as overwrite:
            for file in old.files:
                overwrite.delete_data_file(file)
        keep_time(transaction)


def spans(known: Dropped, gone: Iterable[Claim], *, stay: Iterable[Claim]) -> dict[int, list[Span]]:
    """Where everything lay that was dropped so far, by partition."""
    new, held = _by_partition(gone), _by_partition(stay)
    return {
        number: dropped.joined([*known.of(number), *new.get(number, ())], kept=held.get(number, ()))
        for number in sorted({*known.spans, *new})
    }


def _by_partition(claims: Iterable[Claim]) -> Mapping[int, list[Span]]:
    found: dict[int, list[Span]] = {}
    for each in claims:
        found.setdefault(each.partition, []).append((each.first, each.last + 1))
    return found
