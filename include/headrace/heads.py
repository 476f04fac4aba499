"""How far a table has come: the next offset of every partition, kept in the snapshot that holds the rows.

A Kinesis stream has no offsets of its own. There an offset counts the records of a shard, and beside it stands what
the stream itself knows the place by: the sequence number.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headrace.errors import HeadsError

PROPERTY = "headrace.heads"
"""The key in an Iceberg snapshot summary."""


def mirrored(partition: int) -> int:
    """The number that a drained topic's partition has in our tables, −1 − p; the way back is the same.

    So (partition, offset) stay the coordinates of one record, and all of a drained topic's rank below the own topic's.
    """
    return -1 - partition


@dataclass(frozen=True)
class ShardHead:
    """How far one shard of a Kinesis stream has come."""

    sequence: str = ""
    """The sequence number of the last archived record; empty when there was none, or none is needed any more."""
    until: int = 0
    """Whatever arrived in the shard before that is archived: milliseconds since 1970, by the service's own clock. Zero
    while no run has begun to read it."""
    ended: bool = False
    """Whether the shard is closed, by a split or a merge, and archived to its end."""


@dataclass(frozen=True)
class Shards:
    """How far a Kinesis stream has come, besides the offsets."""

    heads: Mapping[int, ShardHead] = field(default_factory=dict)
    """By shard number, of every shard that the stream had when it was last looked over."""
    listed: int = 0
    """When that was: whatever a shard that is not named holds arrived later."""
    since: int = 0
    """The moment of a first start at LATEST; zero for TRIM_HORIZON."""

    def to_dict(self) -> dict[str, Any]:
        """As short as may be, for a stream has many shards and every snapshot names them all."""
        usual = asdict(ShardHead(until=self.listed))
        heads = {
            str(number): {name: value for name, value in asdict(head).items() if value != usual[name]}
            for number, head in sorted(self.heads.items())
        }
        return {"heads": heads, "listed": self.listed, "since": self.since}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Shards":
        usual = asdict(ShardHead(until=raw["listed"]))
        heads = {int(number): ShardHead(**{**usual, **head}) for number, head in raw["heads"].items()}
        return cls(heads, raw["listed"], raw["since"])


@dataclass(frozen=True)
class Heads:
    """The next offset to read of every partition; one that is not named starts at zero."""

    topic_id: str = ""
    next: Mapping[int, int] = field(default_factory=dict)
    """By partition; a drained topic's partitions have mirrored numbers."""
    drained_id: str = ""
    """The id of the topic that was drained into the same table, if one was."""
    shards: Shards | None = None
    """For a Kinesis stream, where its shards are to be read on."""
    first: Mapping[int, int] = field(default_factory=dict)
    """Where a partition's records begin, if the broker had deleted some before the first of all extracts; else at zero.
    What lies between there and the next offset is promised."""

    @classmethod
    def joined(cls, own: "Heads", drained: "Heads") -> "Heads":
        """The heads of two topics that fill one table, each told by its own partition numbers."""
        return cls(
            own.topic_id,
            {**own.next, **_mirrored(drained.next)},
            drained.topic_id,
            first={**own.first, **_mirrored(drained.first)},
        )

    @property
    def own(self) -> "Heads":
        """Those of the feed's own topic."""
        return Heads(self.topic_id, _own(self.next), first=_own(self.first))

    @property
    def drained(self) -> "Heads":
        """Those of the drained topic, by its own partition numbers."""
        return Heads(self.drained_id, _own(_mirrored(self.next)), first=_own(_mirrored(self.first)))

    def of(self, partition: int) -> int:
        return self.next.get(partition, 0)

    def to_json(self) -> str:
        drained = {"drained_id": self.drained_id} if self.drained_id else {}
        shards = {"shards": self.shards.to_dict()} if self.shards else {}
        first = {"first": _texts(self.first)} if self.first else {}
        return json.dumps({"topic_id": self.topic_id, "next": _texts(self.next), **drained, **shards, **first})

    @classmethod
    def from_json(cls, text: str) -> "Heads":
        raw = json.loads(text)
        shards = Shards.from_dict(raw["shards"]) if "shards" in raw else None
        first = _numbers(raw.get("first", {}))
        return cls(raw["topic_id"], _numbers(raw["next"]), raw.get("drained_id", ""), shards, first)


def _own(offsets: Mapping[int, int]) -> dict[int, int]:
    return {partition: offset for partition, offset in offsets.items() if partition >= 0}


def _mirrored(offsets: Mapping[int, int]) -> dict[int, int]:
    return {mirrored(partition): offset for partition, offset in offsets.items()}


def _texts(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def _numbers(offsets: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in offsets.items()}


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
