"""The clean table: the feed's columns, and the hidden ones that rank a row and keep deleted keys from coming back."""

from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.types import BooleanType, IntegerType, LongType, NestedField

from headrace import heads, layout
from headrace.columns import Column, columns
from headrace.declaration import Partition
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.lake import Lake

HIDDEN_ROW = "_hidden"
"""True for a deleted key: the row stays, hidden, so that a late older version cannot bring it back."""

FROM_PARTITION, FROM_OFFSET = "_from_partition", "_from_offset"
"""The coordinates of the record that made the row; of a record replayed to its own topic, the original's."""

RANK_PARTITION, RANK_OFFSET = "_rank_partition", "_rank_offset"
"""The coordinates that rank the row: those of its record, in a region of their own for what did not come live."""

HIDDEN = (
    Column(HIDDEN_ROW, BooleanType(), required=True),
    Column(FROM_PARTITION, IntegerType(), required=True),
    Column(FROM_OFFSET, LongType(), required=True),
    Column(RANK_PARTITION, IntegerType(), required=True),
    Column(RANK_OFFSET, LongType(), required=True),
)

TRANSFORMS: dict[str, Transform[Any, Any]] = {
    "hour": HourTransform(),
    "day": DayTransform(),
    "month": MonthTransform(),
    "year": YearTransform(),
}

# A merge rewrites whole files, so that readers need no delete files and every file stays sorted.
PROPERTIES = {
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
    "write.distribution-mode": "hash",
    "write.merge.distribution-mode": "hash",
    "write.target-file-size-bytes": str(128 * 1024 * 1024),
}


def schema(feed: Feed) -> Schema:
    """The columns as a table's schema; all may be null, since a hidden row holds little more than its key."""
    fields = [
        NestedField(number, column.name, column.type, required=False, doc=column.doc)
        for number, column in enumerate([*columns(feed), *HIDDEN], start=1)
    ]
    # As the catalog gives it back: a text with a meaning of its own is a string there.
    return Schema.model_validate_json(assign_fresh_schema_ids(Schema(*fields)).model_dump_json())


def spec(table: Schema, partition: Partition | None) -> PartitionSpec:
    if partition is None:
        return PartitionSpec()
    source = table.find_field(partition.field).field_id
    name = f"{partition.field}_{partition.by}"
    return PartitionSpec(PartitionField(source, 1000, TRANSFORMS[partition.by], name))


def order(table: Schema, key: list[str]) -> SortOrder:
    return SortOrder(*(SortField(table.find_field(name).field_id, IdentityTransform()) for name in key))


def clean_of(feed: Feed, lake: Lake) -> Table:
    """The feed's clean table, made at its first transform with an empty snapshot: a branch needs one to start from."""
    columns_ = schema(feed)
    table = lake.ensure(
        layout.clean_table(feed.name),
        columns_,
        spec=spec(columns_, feed.declaration.partition),
        order=order(columns_, feed.declaration.key),
        properties=PROPERTIES,
    )
    follow(table, columns_)
    return table if table.current_snapshot() else begin(table)


def follow(table: Table, wanted: Schema) -> None:
    """Add and widen columns as a new version of the feed asks; nothing is rewritten, and what it dropped stays."""
    with table.update_schema() as update:
        update.union_by_name(wanted)


def begin(table: Table) -> Table:
    """Commit that nothing has been merged yet; when another run does so at the same time, one of the two wins."""
    try:
        with table.transaction() as transaction:
            transaction.update_snapshot(snapshot_properties={heads.PROPERTY: Heads().to_json()}).fast_append().commit()
    except CommitFailedException:
        table.refresh()
    return table
