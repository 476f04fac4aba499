"""Whether a schema may follow others in a subject: seven levels, each a direction and how far back it looks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from headrace.feed import SchemaType
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


def reasons(level: Level, new: Candidate, *, old: Sequence[Candidate], group: str | None = None) -> list[str]:
    """Every reason why the schema may not follow the old ones, the oldest first; none when it may.

    Where a group is named, only those old ones count whose metadata have the same value for it.
    """
    compared = [each for each in old if group is None or _value(each, group) == _value(new, group)]
    for each in reversed(compared if level.is_transitive else compared[-1:]):
        if found := _reasons(level, new, old=each):
            return [*found, f"{{validateFields: 'false', compatibility: '{level}'}}"]
    return []


def _value(candidate: Candidate, group: str) -> str | None:
    return properties(candidate.metadata).get(group)


def _reasons(level: Level, new: Candidate, *, old: Candidate) -> list[str]:
    if level is Level.NONE:
        return []
    if new.type != old.type:
        return [OTHER_TYPE]
    forward = [
        each.told(reader="old", writer="new")
        for each in (old.parsed.incompatibilities(new.parsed) if level.is_read_by_old else ())
    ]
    backward = [
        each.told(reader="new", writer="old")
        for each in (new.parsed.incompatibilities(old.parsed) if level.reads_old else ())
    ]
    # Where both directions are checked, Confluent shows the old schema only when the backward one failed.
    shown = _shown(old) if backward or (forward and not level.reads_old) else []
    return [*forward, *backward, *shown]


def _shown(old: Candidate) -> list[str]:
    text = old.parsed.canonical
    schema = f"'{text}'" if len(text) <= LONGEST_SHOWN else f"<truncated> '{text[:LONGEST_SHOWN]}...'"
    version = [] if old.version is None else [f"{{oldSchemaVersion: {old.version}}}"]
    return [*version, f"{{oldSchema: {schema}}}"]
