"""Limits of a topic: what its settings let through and how long it is kept, as the broker has them."""

from dataclasses import dataclass

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from headrace.kafka.drift import LARGEST, POLICY, RETENTION
from headrace.kafka.topic import TIMEOUT_S, Config

RETENTION_BYTES = "retention.bytes"
BEFORE, AFTER, STAMPED = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "message.timestamp.type"


@dataclass(frozen=True)
class Limits:
    """Times are in milliseconds, None where there is no limit."""

    largest_message: int
    retention: int | None
    retention_bytes: int | None
    """What a partition keeps at most, as it lies on the broker's disk."""
    is_compacted: bool
    keeps_timestamps: bool
    """Whether a record's own timestamp counts, and not the time of its arrival."""
    before: int | None
    """How far behind the broker's clock a timestamp may be."""
    after: int | None
    """How far ahead."""


def limits(config: Config, name: str) -> Limits:
    resource = ConfigResource(ResourceType.TOPIC, name)
    admin = AdminClient(dict(config))  # kept until it has answered
    (answer,) = admin.describe_configs([resource], request_timeout=TIMEOUT_S).values()
    values = {setting: entry.value or "" for setting, entry in answer.result().items()}
    deletes = "delete" in values[POLICY]
    return Limits(
        largest_message=int(values[LARGEST]),
        retention=_limit(values[RETENTION]) if deletes else None,
        retention_bytes=_limit(values.get(RETENTION_BYTES, "")) if deletes else None,
        is_compacted="compact" in values[POLICY],
        keeps_timestamps=values.get(STAMPED, "CreateTime") == "CreateTime",
        before=_limit(values.get(BEFORE, "")),
        after=_limit(values.get(AFTER, "")),
    )


def _limit(value: str) -> int | None:
    """A number of milliseconds or bytes; minus one, and the largest there is, are none."""
    number = int(value or -1)
    return None if number < 0 or number >= 2**63 - 1 else number
