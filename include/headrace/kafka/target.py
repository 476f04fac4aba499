"""A target: a topic that records are published to, and what it does with them."""

from dataclasses import dataclass

from headrace.errors import TopicMissing
from headrace.kafka import topic
from headrace.kafka.limits import Limits, limits
from headrace.kafka.topic import Config


@dataclass(frozen=True)
class Target:
    """A topic as a producer needs to know it."""

    name: str
    id: str
    partitions: int
    limits: Limits


def target(config: Config, name: str) -> Target:
    """Ask the broker; a topic that is not there is not made."""
    try:
        found = topic.describe(config, name)
    except TopicMissing as error:
        raise TopicMissing(
            f"topic {name}: the broker has no such topic, and a replay makes none. Create it first: with headrace "
            f"register for a feed's own, else with your own tools."
        ) from error
    return Target(name, found.id, len(found.partitions), limits(config, name))
