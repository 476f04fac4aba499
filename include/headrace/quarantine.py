"""Quarantine: the records that were rejected, with their bytes, coordinates and the reason."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import BinaryType, IntegerType, LongType, NestedField, StringType, TimestamptzType

from headrace import layout
from headrace.clean import BRANCH
from headrace.declaration import Quarantine
from headrace.errors import MovedError, QuarantineFull
from headrace.feed import Feed
from headrace.lake import Lake, ancestors


class Reason(StrEnum):
    """Why a record was rejected."""

    FORGED = "forged"  # says that it was replayed or imported, but is not signed with our key
    UNFRAMED = "unframed"  # no magic byte and schema id in front of the value
    UNKNOWN_ID = "unknown_id"  # the id is not one of this subject's
    UNDECODABLE = "undecodable"  # the bytes are not what the schema says
    INVALID = "invalid"  # decodes, but breaks the JSON Schema
    KEYLESS = "keyless"  # a key field is null, or a tombstone has no key
    TOMBSTONE = "tombstone"  # append: there is nothing to delete in a feed that keeps the first record
    CONFLICT = "conflict"  # append: the same key with other content
    CHECK = "check"  # breaks a check whose severity is quarantine


TRIES = 5
JUDGING = ("settled_by", "rejected_by")

SCHEMA = Schema(
    NestedField(1, "partition", IntegerType()),
    NestedField(2, "offset", LongType()),
    NestedField(3, "timestamp", LongType(), doc="Milliseconds since 1970 in UTC, as Kafka gave them."),
    NestedField(4, "key", BinaryType()),
    NestedField(5, "value", BinaryType()),
    NestedField(6, "schema_id", LongType()),
    NestedField(7, "reason", StringType()),
    NestedField(8, "quarantined_at", TimestamptzType()),
    NestedField(9, "detail", StringType(), doc="Which check it breaks, for the reason check."),
    NestedField(10, "released_at", TimestamptzType(), doc="When somebody asked that it be judged again."),
    NestedField(11, "settled_by", StringType(), doc="The run's branch on which it was found good; it goes with it."),
    NestedField(12, "rejected_by", StringType(), doc="The run's branch that takes its row out; it counts with it."),
)

PROPERTIES = {
    "write.metadata.metrics.column.key": "none",
    "write.metadata.metrics.column.value": "none",
    "write.merge.mode": "copy-on-write",
}


def quarantine_of(feed: Feed, lake: Lake) -> Table:
    """The feed's quarantine table, made at its first transform."""
    table = lake.ensure(layout.quarantine_table(feed.name), SCHEMA, spec=PartitionSpec(), properties=PROPERTIES)
    with table.update_schema() as update:
        update.union_by_name(SCHEMA)
    return table


def released(table: Table) -> dict[int, tuple[int, int]]:
    """The span of each partition that the released records lie in."""
    scan = table.scan(row_filter="released_at is not null", selected_fields=("partition", "offset"))
    spans: dict[int, tuple[int, int]] = {}
    for row in scan.to_arrow().group_by("partition").aggregate([("offset", "min"), ("offset", "max")]).to_pylist():
        spans[row["partition"]] = (row["offset_min"], row["offset_max"] + 1)
    return spans


def holds(table: Table, spans: Mapping[int, tuple[int, int]]) -> bool:
    """Whether something lies there of these spans."""
    parts = (
        f"(partition = {number} and offset >= {first} and offset < {next_})" for number, (first, next_) in spans.items()
    )
    return bool(spans) and table.scan(" or ".join(parts), selected_fields=("offset",), limit=1).to_arrow().num_rows > 0


def counted(table: Table) -> str:
    """The verdicts that count, as a filter: one on a record that is merged does so once its run is published."""
    return "rejected_by is null" if "rejected_by" in table.schema().column_names else "partition is not null"


def settle(feed: Feed, *, lake: Lake, branch: str) -> None:
    """Now that a run's rows are published, take away what it found good, and let count what it rejected."""
    rejected = f"rejected_by = '{branch}'"
    _change(feed, lake, f"settled_by = '{branch}'", rejected, keep=rejected)


def tidy(feed: Feed, table: Table, *, lake: Lake, clean: Table, branch: str) -> None:
    """Settle what runs published and did not live to settle; take back what dead ones and this one's tries rejected."""
    judging = table.scan("settled_by is not null or rejected_by is not null", selected_fields=JUDGING).to_arrow()
    branches = {each for name in JUDGING for each in judging[name].unique().to_pylist()} - {None}
    waiting = set(clean.metadata.refs) - {branch}
    if not branches - waiting:
        return
    current = clean.current_snapshot()
    past = ancestors(clean, current.snapshot_id if current else None)
    published = {each.summary.additional_properties.get(BRANCH) for each in past}
    for each in sorted(branches - waiting):
        if each in published and each not in clean.metadata.refs:
            settle(feed, lake=lake, branch=each)
        else:
            _change(feed, lake, f"rejected_by = '{each}'")
    table.refresh()


def _change(feed: Feed, lake: Lake, *which: str, keep: str | None = None) -> None:
    """Take rows out of quarantine; those to be kept come back as ones that count."""
    for _ in range(TRIES):
        table = lake.find(layout.quarantine_table(feed.name))
        there = [each for each in which if table and table.scan(each, limit=1).to_arrow().num_rows]
        if table is None or not there:
            return
        kept = table.scan(keep).to_arrow_batch_reader() if keep else ()
        with suppress(CommitFailedException), table.transaction() as transaction:  # somebody released meanwhile
            for each in there:  # one by one: of two columns PyIceberg would spare every row that has a null in one
                transaction.delete(each)
            for batch in kept:
                place = batch.schema.get_field_index("rejected_by")
                nothing = pa.nulls(batch.num_rows, batch.schema.field(place).type)
                transaction.append(pa.Table.from_batches([batch.set_column(place, "rejected_by", nothing)]))
            return
    raise MovedError(f"quarantine.{feed.name}: others committed {TRIES} times in a row. Clear the task.")


def refuse_too_many(
    rejected: int, read: int, *, feed: str, limit: Quarantine, reasons: Callable[[], Mapping[str, int]]
) -> None:
    """Stop a run that would reject more of the new records it read than its feed allows.

    `reasons` counts what for, and is asked only then. Records that are judged again tell nothing of what comes in.
    """
    too_many = limit.count is not None and rejected > limit.count
    too_large = limit.share is not None and rejected > limit.share * read
    if not (too_many or too_large):
        return
    allowed = f"{limit.count} records" if too_many else f"{limit.share:.1%} of them"
    told = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons().items()))
    raise QuarantineFull(
        f"feed {feed}: {rejected} of {read} new records would go to quarantine ({told}), and its limit is {allowed}. "
        f"Nothing was changed: readers still see the rows before this run. Mend the producer or the schema, or raise "
        f"the limit in the feed file (quarantine), then clear the transform task."
    )
