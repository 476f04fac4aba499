"""Placing: which topic and partition stand behind an archive's numbers, and what a tombstone came after."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from headrace.heads import mirrored

AFTER = "after"
"""A column that only an archive of two topics has."""


@dataclass(frozen=True)
class Placing:
    """The topics of one archive, as one plan found them."""

    topic: str
    drains: str | None = None
    """The drained topic, whose partitions have mirrored numbers in the archive."""
    drained: Mapping[int, int] = field(default_factory=dict)
    """How far the drained topic is archived with this plan, by mirrored partition."""

    def origin(self, partition: int) -> tuple[str, int]:
        """The topic and Kafka's own partition behind a number of the archive."""
        if partition >= 0:
            return self.topic, partition
        assert self.drains is not None, "only a drained topic's partitions are numbered below zero"
        return self.drains, mirrored(partition)

    def placed(self, batch: pa.RecordBatch, *, after: pa.Field | None) -> pa.RecordBatch:
        """The batch; where two topics meet, each tombstone of the own one with what it came after."""
        if after is None or not self.drained:
            return batch
        noted = pc.and_(pc.is_null(batch["value"]), pc.greater_equal(batch["partition"], 0))
        heads = pa.array([None, list(self.drained.items())], after.type)
        return batch.append_column(after, heads.take(noted.cast(pa.int8())))


def mirrored_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A drained topic's envelopes under the archive's numbers of its partitions."""
    index = batch.schema.get_field_index("partition")
    numbers = pc.subtract(pa.scalar(-1, pa.int32()), batch["partition"])
    return batch.set_column(index, batch.schema.field(index), numbers)
