"""Drift: where a broker's topic differs from what its feed declares, and what to do about it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headrace import duration
from headrace.declaration import Topic
from headrace.feed import Feed

RETENTION, POLICY, LARGEST = "retention.ms", "cleanup.policy", "max.message.bytes"
ENDLESS_MS = -1
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Found:
    """A topic's shape as the broker has it."""

    partitions: int
    replication: int
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Drift:
    """One attribute in which the broker differs from the feed file; the feed runs on meanwhile."""

    topic: str
    attribute: str
    """As the feed file names it, such as `retention`."""
    declared: str
    actual: str
    fix: str

    def __str__(self) -> str:
        return (
            f"topic {self.topic}: {self.attribute} is declared as {self.declared}, but the broker has {self.actual}. "
            f"{self.fix}"
        )


def settings(declared: Topic) -> dict[str, str]:
    """The topic's own settings that a declaration asks for; what it does not name stays the broker's."""
    asked: dict[str, str] = {}
    if declared.retention is not None:
        asked[RETENTION] = str(_milliseconds(declared.retention))
    if declared.retention is not None or "compaction" in declared.model_fields_set:
        asked[POLICY] = _policy(declared)
    if declared.largest_message is not None:
        asked[LARGEST] = str(int(declared.largest_message))
    return asked


def drifts(feed: Feed, found: Found, *, broker: str) -> Iterator[Drift]:
    """Compare what the feed's file declares, and nothing else, with what the broker has."""
    declared = feed.declaration.topic
    named = declared.model_fields_set
    if "partitions" in named and declared.partitions != found.partitions:
        fix = _mend_partitions(feed, found.partitions, broker=broker)
        yield Drift(feed.topic, "partitions", str(declared.partitions), str(found.partitions), fix)
    if declared.replication not in (None, found.replication):
        fix = f"Move its replicas with kafka-reassign-partitions.sh, or declare {found.replication}."
        yield Drift(feed.topic, "replication", str(declared.replication), str(found.replication), fix)
    for setting, wanted in settings(declared).items():
        actual = found.settings.get(setting, "")
        if _value(setting, actual) != _value(setting, wanted):
            attribute, fix = ATTRIBUTES[setting], _mend_setting(feed.topic, setting, wanted, broker=broker)
            yield Drift(feed.topic, attribute, _told(setting, wanted), _told(setting, actual), fix)


ATTRIBUTES = {RETENTION: "retention", POLICY: "compaction", LARGEST: "largest_message"}


def _policy(declared: Topic) -> str:
    """A declared retention counts only where old records are deleted; kept for ever, there is nothing to delete."""
    if not declared.compaction:
        return "delete"
    return "compact" if declared.retention in (None, duration.FOREVER) else "compact,delete"


def _milliseconds(text: str) -> int:
    lasting = duration.lasting(text)
    return ENDLESS_MS if lasting is None else lasting // MILLISECOND


def _value(setting: str, text: str) -> Any:
    """A setting's value for comparing: the order of policies does not matter."""
    return frozenset(text.replace(" ", "").split(",")) if setting == POLICY else text


def _told(setting: str, text: str) -> str:
    """A setting's value as the feed file would say it."""
    if not text:
        return "nothing"
    match setting:
        case "retention.ms":
            return _lasting(int(text))
        case "max.message.bytes":
            return f"{text} bytes"
    return f"{POLICY} {text}"


def _lasting(milliseconds: int) -> str:
    if milliseconds == ENDLESS_MS:
        return duration.FOREVER
    for unit, name in reversed(duration.UNITS.items()):
        count, rest = divmod(milliseconds * MILLISECOND, timedelta(**{name: 1}))
        if count and not rest:
            return f"{count}{unit}"
    return f"{milliseconds} ms"


def _mend_partitions(feed: Feed, actual: int, *, broker: str) -> str:
    declared = feed.declaration.topic.partitions
    if actual > declared:
        return f"Partitions cannot be taken away: declare {actual}, or break with it: headrace new --breaks {feed.name}"
    if not feed.declaration.order and feed.declaration.merge != "append":
        return (
            f"Growing moves keys, and without order fields older versions could win: declare {actual}, name order "
            f"fields first, or break with it: headrace new --breaks {feed.name}"
        )
    return f"kafka-topics.sh --bootstrap-server {broker} --alter --topic {feed.topic} --partitions {declared}"


def _mend_setting(topic: str, setting: str, wanted: str, *, broker: str) -> str:
    value = f"[{wanted}]" if "," in wanted else wanted
    return (
        f"kafka-configs.sh --bootstrap-server {broker} --alter --entity-type topics --entity-name {topic} "
        f"--add-config {setting}={value}"
    )
