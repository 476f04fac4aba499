"""Compaction: whether a broker may drop older records of a key from a topic."""

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]

from headrace.kafka.drift import POLICY
from headrace.kafka.topic import TIMEOUT_S, Config


def is_compacted(config: Config, name: str) -> bool:
    resource = ConfigResource(ResourceType.TOPIC, name)
    admin = AdminClient(dict(config))  # It must live until it has answered.
    (answer,) = admin.describe_configs([resource], request_timeout=TIMEOUT_S).values()
    return "compact" in (answer.result()[POLICY].value or "")
