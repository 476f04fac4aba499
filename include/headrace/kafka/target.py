"""A target: a topic that records are published to, and what it does with them."""

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from headrace.errors import TopicMissing
from headrace.kafka import topic
from headrace.kafka.limits import Limits, limits
from headrace.kafka.topic import Config


class Times(NamedTuple):
    """Which timestamps a topic takes, and which it keeps, in milliseconds since 1970."""

    earliest: float = -inf
    """The broker refuses what is before this (message.timestamp.before.max.ms)."""
    latest: float = inf
    """And what is after this (message.timestamp.after.max.ms)."""
    kept: float = -inf
    """What is before this may be deleted at once (retention.ms)."""

    def refuses(self, timestamp: int) -> bool:
        return timestamp < self.earliest or timestamp > self.latest

    def expires(self, timestamp: int) -> bool:
        return timestamp < self.kept


@dataclass(frozen=True)
class Target:
    """A topic as a producer needs to know it."""

    name: str
    id: str
    partitions: int
    limits: Limits

    def times(self, now: int) -> Times:
        """As of now; a topic that stamps records itself takes and keeps all."""
        if not self.limits.keeps_timestamps:
            return Times()
        return Times(
            earliest=-inf if self.limits.before is None else now - self.limits.before,
            latest=inf if self.limits.after is None else now + self.limits.after,
            kept=-inf if self.limits.retention is None else now - self.limits.retention,
        )


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
