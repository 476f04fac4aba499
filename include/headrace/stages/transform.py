"""Transform, planned: what a Spark job needs to turn new archive records into rows on a branch of the clean table.

The plan is all that the job gets, so the same job runs over Spark Connect, by spark-submit, and in tests.
"""

import json
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import (
    IcebergType,
    ListType,
    LongType,
    MapType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace import away, clean, layout, quarantine
from headrace.columns import columns
from headrace.declaration import Delete, Merge
from headrace.errors import RegistryError
from headrace.feed import Feed, SchemaType
from headrace.heads import Heads
from headrace.lake import Lake, heads_of
from headrace.layout import Identifier
from headrace.provenance import SigningKey

REPLAYED = "headrace.replayed"
"""The key in a snapshot summary: the spans of the originals of the replayed records that a run merged."""


class TransformPlan(BaseModel):
    """One transform: which records, how they decode and merge, and where the rows go."""

    model_config = ConfigDict(frozen=True)

    feed: str
    schema_type: SchemaType
    reader: str
    writers: dict[int, str]
    drained: dict[int, str] = {}
    """The writers of the drained topic's records, which are those of partitions below zero."""
    renames: dict[str, str] = {}
    """What drained records call a field: new name to old name."""
    columns: dict[str, str]
    dropped: dict[str, str] = {}
    """Columns of the clean table that the feed no longer has; new rows have nulls there."""
    key: list[str]
    order: list[str]
    merge: Merge
    delete: Delete | None = None
    immutable_partition: str | None
    archive: str
    archive_snapshot: int
    spans: dict[int, tuple[int, int]]
    clean: str
    base: int
    branch: str
    quarantine: str
    heads: str
    signing: list[str] = Field(default=[], repr=False)
    """The keys whose signatures are believed, as hex. A secret: a plan is never logged."""


@away.tells
def plan(
    feed: Feed, *, lake: Lake, writers: Mapping[int, str], drained: Mapping[int, str], signing: SigningKey, run: str
) -> TransformPlan | None:
    """What the clean table lacks of the archive; None when it lacks nothing.

    `writers` are the schemas of the feed's own subject, `drained` those of the subject of the topic that it drains.
    """
    archive = lake.find(layout.archive_table(feed.name))
    snapshot = archive.current_snapshot() if archive else None
    if archive is None or snapshot is None:
        return None
    target = clean.clean_of(feed, lake)
    quarantine.quarantine_of(feed, lake)
    archived, reached = heads_of(archive), heads_of(target)
    spans, base = missing(archived, reached), target.current_snapshot()
    if not spans or base is None:
        return None
    _refuse_unknown(feed, spans=spans, writers=writers, drained=drained)
    partition, drains = feed.declaration.partition, feed.declaration.topic.drains
    wanted = {column.name: spark_type(column.type) for column in columns(feed)}
    return TransformPlan(
        feed=feed.name,
        schema_type=feed.schema_type,
        reader=json.dumps(feed.schema),
        writers=dict(writers),
        drained=dict(drained),
        renames=dict(drains.fields) if drains else {},
        columns=wanted,
        dropped={name: type_ for name, type_ in _types(target).items() if name not in {*wanted, *hidden_types()}},
        key=feed.declaration.key,
        order=feed.declaration.order,
        merge=feed.declaration.merge,
        delete=feed.declaration.delete,
        immutable_partition=partition.field if partition and partition.immutable else None,
        archive=spark_name(lake.name, layout.archive_table(feed.name)),
        archive_snapshot=snapshot.snapshot_id,
        spans=spans,
        clean=spark_name(lake.name, layout.clean_table(feed.name)),
        base=base.snapshot_id,
        branch=layout.branch(run),
        quarantine=spark_name(lake.name, layout.quarantine_table(feed.name)),
        heads=archived.to_json(),
        signing=[secret.hex() for secret in signing.all],
    )


def _refuse_unknown(
    feed: Feed, *, spans: Iterable[int], writers: Mapping[int, str], drained: Mapping[int, str]
) -> None:
    """Records whose subject has no schema at all would all be quarantined; once it is registered, they need not be."""
    if not writers:
        raise RegistryError(f"subject {feed.subject}: it has no version, so nothing can be decoded. headrace register")
    drains = feed.declaration.topic.drains
    if drains and not drained and any(partition < 0 for partition in spans):
        raise RegistryError(
            f"subject {layout.subject(drains.topic)}: it has no version, so records of the drained topic "
            f"{drains.topic} cannot be decoded. Register the schema that they were written with."
        )


@away.tells
def drop_branch(feed: Feed, *, lake: Lake, run: str) -> None:
    """Drop what an earlier try of the run left, when another run has published its records since."""
    table, branch = lake.find(layout.clean_table(feed.name)), layout.branch(run)
    if table is not None and branch in table.metadata.refs:
        table.manage_snapshots().remove_branch(branch).commit()


def missing(archived: Heads, reached: Heads) -> dict[int, tuple[int, int]]:
    """The spans of the archive past another table's heads."""
    return {
        number: (reached.of(number), next_) for number, next_ in archived.next.items() if next_ > reached.of(number)
    }


def originals(snapshot: Snapshot | None) -> dict[int, tuple[int, int]]:
    """The spans of the originals of replayed records that a snapshot merged: outside its heads, yet it changed them."""
    summary = snapshot.summary.additional_properties if snapshot and snapshot.summary else {}
    spans: dict[str, tuple[int, int]] = json.loads(summary.get(REPLAYED, "{}"))
    return {int(number): (first, next_) for number, (first, next_) in spans.items()}


def spark_name(catalog: str, table: Identifier) -> str:
    return ".".join(f"`{part}`" for part in (catalog, *table))


def spark_type(type_: IcebergType) -> str:
    """An Iceberg type in Spark's DDL."""
    match type_:
        case LongType():
            return "bigint"
        case TimestamptzType():
            return "timestamp"
        case TimestampType():
            return "timestamp_ntz"
        case UUIDType():
            return "string"
        case StructType(fields=fields):
            return f"struct<{', '.join(f'`{field.name}`: {spark_type(field.field_type)}' for field in fields)}>"
        case ListType():
            return f"array<{spark_type(type_.element_type)}>"
        case MapType():
            return f"map<{spark_type(type_.key_type)}, {spark_type(type_.value_type)}>"
    return "binary" if str(type_).startswith("fixed") else str(type_).replace(" ", "")


def _types(table: Table) -> dict[str, str]:
    return {field.name: spark_type(field.field_type) for field in table.schema().fields}


def hidden_types() -> dict[str, str]:
    """The clean table's hidden columns in Spark's DDL."""
    return {column.name: spark_type(column.type) for column in clean.HIDDEN}
