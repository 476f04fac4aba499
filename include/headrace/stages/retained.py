"""Retained: until when a topic holds a record that is forgotten everywhere else, in words."""

from datetime import datetime, timedelta

from headrace.duration import spoken
from headrace.kafka.limits import Limits


def until(limits: Limits, *, topic: str, now: datetime) -> str:
    """When the broker will have deleted what it has now, and what deletes it sooner."""
    if limits.is_compacted and limits.retention is None:
        return (
            f"until the broker compacts topic {topic} after a newer record of the same Kafka key: publish a tombstone, "
            f"then wait for max.compaction.lag.ms"
        )
    if limits.retention is None:
        bound = f", or more than {limits.retention_bytes:,} bytes came after it" if limits.retention_bytes else ""
        return f"for ever{bound}: its retention.ms is -1. To delete: kafka-delete-records, up to the record's offset"
    kept = timedelta(milliseconds=limits.retention)
    told = f"{now + kept:%Y-%m-%d %H:%M} UTC, and then until its segment is closed (retention.ms: {spoken(kept)})"
    return f"{told}; sooner by kafka-delete-records, up to the record's offset"
