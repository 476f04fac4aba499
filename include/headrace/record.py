"""The envelope: a Kafka record as the archive keeps it, whole and byte for byte.

One archive may hold two topics: the feed's own and the older one that it drains. The sign of `partition` tells which.
Zero and above is the own topic's partition; below zero, −1 − partition is the drained topic's. Which topic that is, the
feed file says (`topic.drains`), and so does every file's key, which begins with the topic's name and Kafka's own
partition number. Whoever brings records back to Kafka, or counts them against a broker, must ask that first.
"""

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from headrace.hours import HOUR_MS, PLAUSIBLE_MS, filed_hour, hour_start

__all__ = [
    "AFTER",
    "AFTER_DOC",
    "AFTER_TYPE",
    "HOUR_MS",
    "PLAUSIBLE_MS",
    "PROPERTIES",
    "SCHEMA",
    "SPEC",
    "filed_hour",
    "hour_start",
]

_HEADER = StructType(
    NestedField(11, "name", StringType(), required=True), NestedField(12, "value", BinaryType(), required=False)
)

SCHEMA = Schema(
    NestedField(
        1, "partition", IntegerType(), required=True, doc="As Kafka numbers it; −1 − that for a drained topic's record."
    ),
    NestedField(2, "offset", LongType(), required=True),
    NestedField(3, "timestamp", LongType(), doc="Milliseconds since 1970 in UTC, as Kafka gave them."),
    NestedField(4, "timestamp_type", StringType(), doc="create, append or none."),
    NestedField(5, "leader_epoch", IntegerType()),
    NestedField(6, "key", BinaryType()),
    NestedField(7, "value", BinaryType(), doc="Null for a tombstone, which is not the same as empty."),
    NestedField(8, "headers", ListType(element_id=10, element_type=_HEADER, element_required=True)),
    NestedField(9, "hour", TimestamptzType(), doc="The hour of the timestamp; null when it is implausible."),
)

AFTER = "after"
"""A column that only an archive of two topics has; ids are given when it is added."""

AFTER_TYPE = MapType(key_id=1, key_type=IntegerType(), value_id=2, value_type=LongType(), value_required=True)
AFTER_DOC = (
    "For a tombstone of the own topic: the drained topic's heads, by mirrored partition, when it was archived. "
    "Everything before them came before it, whatever the two topics' offsets say."
)

SEQUENCE = "sequence"
"""A column that only the archive of a Kinesis stream has."""

SEQUENCE_DOC = "The record's sequence number in its shard, as Kinesis gave it; offset counts them."

SPEC = PartitionSpec(
    PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="partition"),
    PartitionField(source_id=9, field_id=1001, transform=IdentityTransform(), name="hour"),
)

# Offsets prune files, so they need exact statistics; payloads would only leak personal data into manifests.
PROPERTIES = {
    "write.metadata.metrics.default": "full",
    "write.metadata.metrics.column.key": "none",
    f"write.metadata.metrics.column.{SEQUENCE}": "none",
    "write.metadata.metrics.column.value": "none",
    "write.metadata.metrics.column.headers.element.name": "none",
    "write.metadata.metrics.column.headers.element.value": "none",
}
