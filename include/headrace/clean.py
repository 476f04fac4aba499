"""The clean table: the feed's columns, and the hidden ones that rank a row and keep deleted keys from coming back."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids, index_by_name
from pyiceberg.table import Table
from pyiceberg.table.sorting import NullOrder, SortField, SortOrder
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    YearTransform,
)
from pyiceberg.types import BooleanType, IcebergType, IntegerType, LongType, MapType, NestedField, StructType

from headrace import heads, layout, personal, withheld
from headrace.columns import Column, JsonText, TimeText, Whole, avro_past, columns
from headrace.columns.avro_past import Past, Path
from headrace.columns.field_type import FieldType, struct
from headrace.declaration import Partition
from headrace.evolution import evolve
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.lake import Lake, heads_of, keep_time, noted

HIDDEN_ROW = "_hidden"
"""True for a deleted key: the row stays, hidden, so that a late older version cannot bring it back."""

FROM_PARTITION, FROM_OFFSET = "_from_partition", "_from_offset"
"""The coordinates of the record that made the row; of a record replayed to its own topic, the original's."""

RANK_PARTITION, RANK_OFFSET = "_rank_partition", "_rank_offset"
"""The coordinates that rank the row: those of its record, in a region of their own for what did not come live."""

BOTTOM = -(2**31)
"""The partition that a row ranks by of which no record is left: whatever comes is above it."""

CONTENT = "_content"
"""A hash of what the row shows: two versions of a key with the same one say the same."""

CHANGED = "_changed"
"""The number of the change that last altered what readers see of the row: larger than the sequence number of every
snapshot published before, and no larger than that of the snapshot which brought it."""

HIDDEN = (
    Column(HIDDEN_ROW, BooleanType(), required=True),
    Column(FROM_PARTITION, IntegerType(), required=True),
    Column(FROM_OFFSET, LongType(), required=True),
    Column(RANK_PARTITION, IntegerType(), required=True),
    Column(RANK_OFFSET, LongType(), required=True),
    Column(CONTENT, LongType(), required=True),
    Column(CHANGED, LongType(), required=True),
)

PATCH = "_patch"
"""In a feed that merges by patch: the rank of every field's value, of the newest version and of the newest delete, and
for each partition the highest order that came in it, above which a tombstone there ranks."""

RULES = "headrace.rules"
"""The key in a snapshot summary: by which rules its rows were made."""

ACCOUNTS = "headrace.accounts"
"""The key in a snapshot summary: what became of the records that a run read, as JSON."""

BRANCH = "headrace.branch"
"""The key in a snapshot summary: the run's branch that it was written to."""

WRITTEN = "headrace.written"
"""The key in a snapshot summary, as JSON: how many `rows` a run wrote, how many of these took the place of one that
`stood`, and whether it read records that had been judged `again`."""

TEXTS = "headrace.texts"
"""The table property: a JSON object of the columns whose texts are more than that, `json` or `time`. It stays when the
feed drops the column, whose values a warehouse still has."""

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
    "write.target-file-size-bytes": str(128 * 1024 * 1024),
}

METRICS = "write.metadata.metrics.column."
"""What manifests say of a column. Of texts only the first 16 characters if not told otherwise, and of columns after the
hundredth nothing: then no file could be left out when a key is looked up."""


def telling(feed: Feed) -> dict[str, str]:
    """The properties that follow from the feed, so that files of one partition hold different keys and tell which.

    Each partition is written by one task, in order. A table without any has its rows sorted across tasks instead.
    """
    declared = feed.declaration
    mode = "hash" if declared.partition else "range"
    told = [*declared.key, *declared.sort, *([declared.partition.field] if declared.partition else [])]
    return {
        "write.distribution-mode": mode,
        "write.merge.distribution-mode": mode,
        **{f"{METRICS}{name}": "full" for name in told},
    }


def hidden(feed: Feed) -> list[Column]:
    """The columns beside the feed's own."""
    if feed.declaration.merge != "patch":
        return list(HIDDEN)
    types = {column.name: column.type for column in columns(feed)}
    order = [FieldType(name, types[name], required=False) for name in feed.declaration.order]
    rank = struct(
        [
            *order,
            FieldType(RANK_PARTITION, IntegerType(), required=False),
            FieldType(RANK_OFFSET, LongType(), required=False),
        ]
    )
    parts = [FieldType("top", rank, required=False), FieldType("deleted", rank, required=False)]
    parts.append(FieldType("fields", _by_number(rank), required=False))
    if order:
        parts.append(FieldType("partitions", _by_number(struct(order)), required=False))
    return [*HIDDEN, Column(PATCH, struct(parts), required=True)]


def _by_number(value: IcebergType) -> MapType:
    return MapType(key_id=0, key_type=IntegerType(), value_id=0, value_type=value, value_required=False)


def shown(feed: Feed, table: Schema) -> StructType:
    """The table's columns without the hidden ones; some of them the feed may have dropped."""
    ours = {*(column.name for column in HIDDEN), PATCH}
    return StructType(*(field for field in table.fields if field.name not in ours))


def leaves(types: Mapping[str, IcebergType], table: Schema) -> dict[int, list[str]]:
    """Where a patch may set a value, by the table's own column numbers, which outlive a renaming: the path to it."""
    return {
        number: path for name, type_ in types.items() for number, path in _leaves(type_, table.find_field(name), [name])
    }


def _leaves(type_: IcebergType, field: NestedField, path: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The table forgets which structs are one value, so the feed's own type tells."""
    if not isinstance(type_, StructType) or isinstance(type_, Whole) or not isinstance(field.field_type, StructType):
        yield field.field_id, path
        return
    known = {member.name: member for member in field.field_type.fields}
    for member in type_.fields:
        yield from _leaves(member.field_type, known[member.name], [*path, member.name])


def schema(feed: Feed) -> Schema:
    """The columns as a table's schema; all may be null, since a hidden row holds little more than its key."""
    fields = [
        NestedField(number, column.name, column.type, required=False, doc=column.doc)
        for number, column in enumerate([*columns(feed), *hidden(feed)], start=1)
    ]
    # As the catalog gives it back: a text with a meaning of its own is a string there.
    return Schema.model_validate_json(assign_fresh_schema_ids(Schema(*fields)).model_dump_json())


def lacks(table: Table, feed: Feed) -> bool:
    """Whether a version of the feed has brought columns, or what is nested in them, that the table has not got yet."""
    own = Schema(*shown(feed, schema(feed)).fields)
    return not index_by_name(own).keys() <= index_by_name(table.schema()).keys()


def spec(table: Schema, partition: Partition | None) -> PartitionSpec:
    if partition is None:
        return PartitionSpec()
    source = table.find_field(partition.field).field_id
    name = f"{partition.field}_{partition.by}"
    return PartitionSpec(PartitionField(source, 1000, TRANSFORMS[partition.by], name))


def order(table: Schema, names: list[str]) -> SortOrder:
    return SortOrder(*(SortField(table.find_field(name).field_id, IdentityTransform()) for name in names))


def rules(feed: Feed, table: Schema) -> str:
    """What must be the same for all rows of a table, by its column numbers, which outlive a renaming."""

    def numbers(names: Iterable[str]) -> list[int]:
        return [table.find_field(name).field_id for name in names]

    declared, partition = feed.declaration, feed.declaration.partition
    made = {"key": numbers(declared.key), "order": numbers(declared.order), "merge": declared.merge}
    return json.dumps({**made, "partition": [*numbers([partition.field]), partition.by] if partition else None})


def arrange(table: Table, feed: Feed) -> None:
    """Have what is written from now on lie in the feed's partitions, in its order; what is there stays as it is."""
    declared, wanted = feed.declaration, spec(table.schema(), feed.declaration.partition)
    with table.update_spec() as update:
        if not table.spec().compatible_with(wanted):
            for field in table.spec().fields:
                update.remove_field(field.name)
            if partition := declared.partition:
                update.add_field(partition.field, TRANSFORMS[partition.by], f"{partition.field}_{partition.by}")
    if table.sort_order().fields != order(table.schema(), declared.sort or declared.key).fields:
        with table.update_sort_order() as update_:
            for name in declared.sort or declared.key:
                update_.asc(name, IdentityTransform(), NullOrder.NULLS_FIRST)


def clean_of(feed: Feed, lake: Lake) -> Table:
    """The feed's clean table, made at its first transform with an empty snapshot: a branch needs one to start from."""
    columns_ = schema(feed)
    table = lake.ensure(
        layout.clean_table(feed.name),
        columns_,
        spec=spec(columns_, feed.declaration.partition),
        order=order(columns_, feed.declaration.sort or feed.declaration.key),
        properties={**PROPERTIES, **telling(feed)},
    )
    follow(table, columns_, past(feed))
    describe(table, feed)
    return table if table.current_snapshot() else begin(table)


def describe(table: Table, feed: Feed) -> None:
    """Set the properties that follow from the feed, and drop those of columns that are called otherwise now."""
    there, known = table.properties, {f"{METRICS}{name}" for name in table.schema().column_names}
    texts = {**json.loads(there.get(TEXTS, "{}")), **text_kinds(feed)}
    wanted = {
        personal.PROPERTY: personal.note(feed, there.get(personal.PROPERTY)),
        withheld.PROPERTY: withheld.note(feed, there.get(withheld.PROPERTY)),
        TEXTS: json.dumps(texts, sort_keys=True),
        **telling(feed),
    }
    stale = [name for name in there if name.startswith(METRICS) and name not in known]
    if stale or any(there.get(name) != value for name, value in wanted.items()):
        with table.transaction() as transaction:
            transaction.set_properties(wanted)
            transaction.remove_properties(*stale)


def text_kinds(feed: Feed) -> dict[str, str]:
    """The columns whose texts are JSON, or times."""
    named: dict[type[IcebergType], str] = {JsonText: "json", TimeText: "time"}
    return {column.name: named[type(column.type)] for column in columns(feed) if type(column.type) in named}


def past(feed: Feed) -> dict[Path, Past]:
    """What the feed's schema says of older records; JSON Schema says nothing."""
    if feed.schema_type != "AVRO":
        return {}
    found = avro_past.past(feed.schema)
    # The ranks of a patch have members of their own for the order fields.
    ranks = ((PATCH, "top"), (PATCH, "deleted"), (PATCH, "fields", "value"), (PATCH, "partitions", "value"))
    named = {(*rank, name): Past(found[name,].aliases) for rank in ranks for name in feed.declaration.order}
    return {**found, **named}


def follow(table: Table, wanted: Schema, past: Mapping[Path, Past]) -> None:
    """Change the columns as a new version of the feed asks, in one commit; nothing is rewritten.

    The commit has a snapshot, without new rows: who reads a snapshot sees the columns that the table had then.
    """
    with table.transaction() as transaction:
        if evolve(transaction, wanted, past) and table.current_snapshot():
            made_by = noted(table, RULES)
            properties = {heads.PROPERTY: heads_of(table).to_json()} | ({RULES: made_by} if made_by else {})
            transaction.update_snapshot(snapshot_properties=properties).fast_append().commit()
            keep_time(transaction)


def begin(table: Table) -> Table:
    """Commit that nothing has been merged yet; when another run does so at the same time, one of the two wins."""
    try:
        with table.transaction() as transaction:
            transaction.update_snapshot(snapshot_properties={heads.PROPERTY: Heads().to_json()}).fast_append().commit()
    except CommitFailedException:
        table.refresh()
    return table
