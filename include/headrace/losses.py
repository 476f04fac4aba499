"""Losses: what a broker deleted before it was archived, and who said that the feed may go on without it.

They stand in a property of the archive's table, which outlives every snapshot, and once more in the summary of the
snapshot that moved the heads.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from pyiceberg.table import Table

log = logging.getLogger(__name__)

PROPERTY = "headrace.losses"
"""The key in an archive's table properties: every accepted loss, the oldest first."""

SNAPSHOT = "headrace.loss"
"""The key in the summary of a snapshot: the losses that it accepted."""


@dataclass(frozen=True)
class Loss:
    """A span that was lost, and the word of whoever accepted that."""

    partition: int
    """The archive's number for it: mirrored for a drained topic's."""
    first: int
    next: int
    at: str
    """When it was accepted, in ISO 8601."""
    by: str
    why: str
    between: str = ""
    """For a Kinesis stream, which tells no number: the time in which records may have come and gone."""

    @property
    def count(self) -> int:
        """At most so many records: a span may have had holes."""
        return self.next - self.first


def losses_of(table: Table) -> tuple[Loss, ...]:
    """What an archive is known to lack."""
    return read(table.properties)


def remind(table: Table, *, feed: str) -> None:
    """Say in the log what an archive lacks: a warning right after it was accepted, a plain line from then on."""
    known, current = losses_of(table), table.current_snapshot()
    if not known:
        return
    fresh = current is not None and SNAPSHOT in current.summary.additional_properties  # type: ignore[union-attr]
    level, last = logging.WARNING if fresh else logging.INFO, known[-1]
    told = f"feed {feed}: its archive lacks what {len(known)} accepted losses name, the last by {last.by} at {last.at}"
    log.log(level, "%s: %s. See: headrace losses %s", told, last.why, feed)


def read(properties: Mapping[str, str]) -> tuple[Loss, ...]:
    return tuple(Loss(**each) for each in json.loads(properties.get(PROPERTY, "[]")))


def to_json(losses: Iterable[Loss]) -> str:
    return json.dumps([asdict(loss) for loss in losses], ensure_ascii=False)
