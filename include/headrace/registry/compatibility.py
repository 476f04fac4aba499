"""Whether a schema may follow others in a subject: seven levels, each a direction and how far back it looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from headrace.feed import SchemaType
from headrace.registry.languages import differences
from headrace.registry.metadata import Metadata, properties
from headrace.registry.schema import Parsed

OTHER_TYPE = "Incompatible because of different schema type"
# An old schema that is longer is cut in messages.
LONGEST_SHOWN = 10 * 1024


class Level(StrEnum):
    """How a subject's schemas may change."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        return self.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """Whether the new schema must read what old ones wrote."""
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_old(self) -> bool:
        """Whether old schemas must read what the new one writes."""
        return self.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True)
class Candidate:
    """A schema to compare: new, or a version that is there."""

    type: SchemaType
    parsed: Parsed
    metadata: Metadata | None = None
    version: int | None = None


@dataclass(frozen=True)
class Policy:
    """What is compared, and how."""

    level: Level = Level.BACKWARD
    group: str | None = None
    """A property of the metadata: only old schemas with the same value count."""
    is_lenient: bool = False


def reasons(policy: Policy, new: Candidate, *, old: Sequence[Candidate]) -> list[str]:
    """Every reason why the schema may not follow the old ones, given the oldest first; none when it may."""
    level, group = policy.level, policy.group
    compared = [each for each in old if group is None or _value(each, group) == _value(new, group)]
    for each in reversed(compared if level.is_transitive else compared[-1:]):
        if found := _reasons(policy, new, old=each):
            return [*found, f"{{validateFields: 'false', compatibility: '{level}'}}"]
    return []


def _value(candidate: Candidate, group: str) -> str | None:
    return properties(candidate.metadata).get(group)


def _reasons(policy: Policy, new: Candidate, *, old: Candidate) -> list[str]:
    level, is_lenient = policy.level, policy.is_lenient
    if level is Level.NONE:
        return []
    if new.type != old.type:
        return [OTHER_TYPE]
    forward, backward = [], []
    if level.is_read_by_old:
        found = differences(old.parsed, new.parsed, is_lenient=is_lenient)
        forward = [each.told(reader="old", writer="new") for each in found]
    if level.reads_old:
        found = differences(new.parsed, old.parsed, is_lenient=is_lenient)
        backward = [each.told(reader="new", writer="old") for each in found]
    # Where both directions are checked, Confluent shows the old schema only when the backward one failed.
    is_shown = backward or (forward and not level.reads_old)
    return [*forward, *backward, *(_shown(old) if is_shown else ())]


def _shown(old: Candidate) -> list[str]:
    text = old.parsed.canonical
    schema = f"'{text}'" if len(text) <= LONGEST_SHOWN else f"<truncated> '{text[:LONGEST_SHOWN]}...'"
    version = [] if old.version is None else [f"{{oldSchemaVersion: {old.version}}}"]
    return [*version, f"{{oldSchema: {schema}}}"]
