"""How far a table has come: the next offset of every partition, kept in the snapshot that holds the rows."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headrace.errors import HeadsError

PROPERTY = "headrace.heads"
"""The key in an Iceberg snapshot summary."""


@dataclass(frozen=True)
class Heads:
    """The next offset to read of every partition of one topic; a partition that is not named starts at zero."""

    topic_id: str = ""
    next: Mapping[int, int] = field(default_factory=dict)

    def of(self, partition: int) -> int:
        return self.next.get(partition, 0)

    def to_json(self) -> str:
        following = {str(partition): offset for partition, offset in sorted(self.next.items())}
        return json.dumps({"topic_id": self.topic_id, "next": following})

    @classmethod
    def from_json(cls, text: str) -> "Heads":
        raw = json.loads(text)
        return cls(raw["topic_id"], {int(partition): offset for partition, offset in raw["next"].items()})


def newest(ancestors: Iterable[Mapping[str, str]], *, table: str) -> Heads:
    """The heads in the newest snapshot summary that has them; `ancestors` run from the newest to the oldest."""
    seen = 0
    for summary in ancestors:
        seen += 1
        if PROPERTY in summary:
            return Heads.from_json(summary[PROPERTY])
    if seen:
        raise HeadsError(
            f"{table}: none of its {seen} snapshots says how far it has come ({PROPERTY} is missing), "
            f"so going on could lose or repeat records. Roll the table back to a snapshot that Headrace wrote."
        )
    return Heads()
