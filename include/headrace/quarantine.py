"""Quarantine: the records that were rejected, with their bytes, coordinates and the reason."""

from enum import StrEnum

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import BinaryType, IntegerType, LongType, NestedField, StringType, TimestamptzType

from headrace import layout
from headrace.feed import Feed
from headrace.lake import Lake


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


SCHEMA = Schema(
    NestedField(1, "partition", IntegerType()),
    NestedField(2, "offset", LongType()),
    NestedField(3, "timestamp", LongType(), doc="Milliseconds since 1970 in UTC, as Kafka gave them."),
    NestedField(4, "key", BinaryType()),
    NestedField(5, "value", BinaryType()),
    NestedField(6, "schema_id", LongType()),
    NestedField(7, "reason", StringType()),
    NestedField(8, "quarantined_at", TimestamptzType()),
)

PROPERTIES = {
    "write.metadata.metrics.column.key": "none",
    "write.metadata.metrics.column.value": "none",
    "write.merge.mode": "copy-on-write",
}


def quarantine_of(feed: Feed, lake: Lake) -> Table:
    """The feed's quarantine table, made at its first transform."""
    return lake.ensure(layout.quarantine_table(feed.name), SCHEMA, spec=PartitionSpec(), properties=PROPERTIES)
