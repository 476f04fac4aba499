"""Release: what lies in a feed's quarantine, and the asking that some of it be judged again by the next run.

Nothing here tells a record's key or value, which may be personal, but to somebody who asks for that one record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from headrace import away, layout, quarantine
from headrace.errors import MovedError, SliceError
from headrace.feed import Feed
from headrace.lake import Lake
from headrace.quarantine import Reason

GROUP = ("reason", "detail", "schema_id")
MOST = 1000
"""How many records may be named one by one."""


@dataclass(frozen=True)
class Place:
    """The coordinates of one record."""

    partition: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> "Place":
        """From `partition/offset`, as it is listed."""
        first, _, second = text.partition("/")
        try:
            return cls(int(first), int(second))
        except ValueError:
            raise SliceError(f'"{text}" is no record: write its partition and offset, such as 0/1742.') from None


@dataclass(frozen=True)
class Group:
    """The records that were rejected for one reason."""

    reason: str
    detail: str | None
    schema_id: int | None
    count: int
    released: int
    first: datetime
    last: datetime


@dataclass(frozen=True)
class Choice:
    """Which records are meant: all, those of a reason, or some by their coordinates."""

    reason: Reason | None = None
    places: Sequence[Place] = ()

    def filter(self) -> str:
        if len(self.places) > MOST:
            raise SliceError(f"{len(self.places)} records are named; {MOST} can be. Choose them by --reason instead.")
        named = " or ".join(f"(partition = {each.partition} and offset = {each.offset})" for each in self.places)
        parts = [f"({named})"] if named else []
        parts += [f"reason = '{self.reason.value}'"] if self.reason else []
        return " and ".join(parts) or "partition is not null"


@away.tells
def groups(feed: Feed, *, lake: Lake) -> list[Group]:
    """What lies in quarantine, counted by reason, the most first."""
    table = lake.find(layout.quarantine_table(feed.name))
    if table is None:
        return []
    told = (*GROUP, "quarantined_at", "released_at")
    rows = table.scan(row_filter=quarantine.counted(table), selected_fields=told).to_arrow()
    counted = rows.group_by(list(GROUP)).aggregate(
        [([], "count_all"), ("released_at", "count"), ("quarantined_at", "min"), ("quarantined_at", "max")]
    )
    found = [
        Group(
            row["reason"],
            row["detail"],
            row["schema_id"],
            row["count_all"],
            row["released_at_count"],
            row["quarantined_at_min"],
            row["quarantined_at_max"],
        )
        for row in counted.to_pylist()
    ]
    return sorted(found, key=lambda group: (-group.count, group.reason))


@away.tells
def records(feed: Feed, *, lake: Lake, choice: Choice, limit: int) -> list[dict[str, Any]]:
    """Some rejected records by their coordinates, without their bytes."""
    table = lake.find(layout.quarantine_table(feed.name))
    if table is None:
        return []
    rows = table.scan(row_filter=f"{choice.filter()} and {quarantine.counted(table)}").to_arrow()
    sized = rows.append_column("bytes", pc.binary_length(rows["value"])).drop_columns(["key", "value"])
    listed: list[dict[str, Any]] = sized.sort_by([("partition", "ascending"), ("offset", "ascending")])[
        :limit
    ].to_pylist()
    return listed


@away.tells
def record(feed: Feed, *, lake: Lake, place: Place) -> dict[str, Any]:
    """One rejected record, whole: for somebody who asked to see it."""
    table = lake.find(layout.quarantine_table(feed.name))
    which = Choice(places=[place]).filter()
    found = table.scan(row_filter=f"{which} and {quarantine.counted(table)}").to_arrow().to_pylist() if table else []
    if not found:
        raise SliceError(
            f"quarantine.{feed.name}: no record {place.partition}/{place.offset} lies there. "
            f"headrace quarantine {feed.name} --list shows those that do."
        )
    one: dict[str, Any] = found[0]
    return one


@away.tells
def release(feed: Feed, *, lake: Lake, choice: Choice, now: datetime | None = None) -> int:
    """Ask that records be judged again by the feed's next run; how many were not released before.

    Each stays in quarantine until a run that found it good is published. To ask twice changes nothing.
    """
    for _ in range(quarantine.TRIES):
        table = lake.find(layout.quarantine_table(feed.name))
        if table is None:
            return 0
        waiting = f"{choice.filter()} and {quarantine.counted(table)} and released_at is null"
        rows = table.scan(row_filter=waiting).to_arrow()
        if not rows.num_rows:
            return 0
        try:
            _mark(table, rows, waiting, at=now or datetime.now(UTC))
        except CommitFailedException:  # a run wrote into quarantine meanwhile: look again
            continue
        return int(rows.num_rows)
    raise MovedError(f"quarantine.{feed.name}: runs commit to it all the time. Try again.")


def _mark(table: Table, rows: pa.Table, which: str, *, at: datetime) -> None:
    place = rows.schema.get_field_index("released_at")
    field = rows.schema.field(place)
    marked = rows.set_column(place, field, pa.array([at] * rows.num_rows, field.type))
    table.overwrite(marked, overwrite_filter=which)
