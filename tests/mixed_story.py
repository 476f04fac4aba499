"""A mixed story: batches of late, doubled, deleted and corrupt records, written by three versions of a schema.

Every row is told as the last version reads it; what an older version writes of it is made from that.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from workshop import Record, Workshop

from demo.oracle import Told
from demo.record import Coordinates, Corrupt, Meaning, Reason, Tombstone, Version

PARTITIONS = 2
USUAL_CHANNEL = "web"
LARGE = 2**40
"""An amount that only the last version can hold."""

TOWN_FIELDS = [{"name": name, "type": ["null", type_], "default": None} for name, type_ in
               {"town": "string", "floor": "int"}.items()]  # fmt: skip
PLACE = {"type": "record", "name": "Place", "fields": TOWN_FIELDS}
SAME = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": ["null", "int"], "default": None},
    {"name": "left", "type": ["null", "boolean"], "default": None},
    {"name": "place", "type": ["null", PLACE], "default": None},
]
AMOUNT = {"name": "amount", "type": ["null", "int"], "default": None}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
CHANNEL = {"name": "channel", "type": "string", "default": USUAL_CHANNEL}
VERSIONS: Sequence[Sequence[Mapping[str, Any]]] = (
    [*SAME, AMOUNT, NOTE],
    [*SAME, AMOUNT, NOTE, CHANNEL],
    [*SAME, CHANNEL, {**AMOUNT, "type": ["null", "long"]}, {**NOTE, "name": "remark", "aliases": ["note"]}],
)
"""A field is added, then one is widened and one renamed."""

DAMAGE: Mapping[Reason, Callable[[bytes], bytes | None]] = {
    "unframed": lambda good: good[5:],
    "unknown_id": lambda good: b"\0\x7f\xff\xff\xff" + good[5:],
    "undecodable": lambda good: good[:7],
    "keyless": lambda _: None,
}


@dataclass(frozen=True)
class Line:
    """One record of the story."""

    kind: str
    key: str
    partition: int
    row: Mapping[str, Any] | None
    """As the last version reads it; None for a tombstone."""
    version: int = 0
    """Who writes it."""
    damage: Reason | None = None

    @property
    def meaning(self) -> Meaning:
        if self.damage:
            return Corrupt(self.damage)
        return Tombstone(self.key) if self.row is None else Version(self.row)

    def record(self, shops: Sequence[Workshop]) -> Record:
        """As its version's producer sends it."""
        value = shops[self.version].encoded(written(self.row, self.version)) if self.row else None
        if self.damage:
            assert value is not None, "only a whole record is damaged"
            value = DAMAGE[self.damage](value)
        return Record(value, key=None if self.damage == "keyless" else self.key, partition=self.partition)


def written(row: Mapping[str, Any], version: int) -> dict[str, Any]:
    """What a version writes of a row: the fields that it has, by the names that it has for them."""
    known = {**row, "note": row["remark"]}
    return {each["name"]: known[each["name"]] for each in VERSIONS[version]}


def writers(row: Mapping[str, Any], newest: int) -> list[int]:
    """The versions that can say a row."""
    oldest = 2 if row["amount"] == LARGE else 1 if row["channel"] != USUAL_CHANNEL else 0
    return list(range(oldest, newest + 1))


@dataclass
class Teller:
    """Tells batch after batch, by chance alone."""

    merge: str
    chance: Random
    _said: dict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))

    def batch(self, *, keys: int, version: int, records: int) -> list[Line]:
        """So many records of these keys; `version` is the newest that a producer may have."""
        return [self._line(f"k{self.chance.randrange(keys):02}", version) for _ in range(records)]

    def _line(self, key: str, newest: int) -> Line:
        partition = self.chance.randrange(PARTITIONS)
        kind = self._kind(key)
        if kind == "tombstone":
            return Line(kind, key, partition, None)
        version = self.chance.choice([newest, newest, self.chance.randrange(newest + 1)])
        if kind == "corrupt":
            row, damage = self._row(key, kind, version), self.chance.choice([*DAMAGE])
            return Line(f"{kind}: {damage}", key, partition, row, version, damage)
        if kind == "doubled":
            again = self.chance.choice(self._said[key])
            version = self.chance.choice(writers(again.row or {}, newest))
            return replace(again, kind=kind, version=version, partition=partition)
        line = Line(kind, key, partition, self._row(key, kind, version), version)
        self._said[key].append(line)
        return line

    def _kind(self, key: str) -> str:
        if self.chance.random() < 0.1:
            return "corrupt"
        if not self._said[key]:
            return "new"
        if self.merge == "append":
            return self.chance.choice(["doubled", "doubled", "conflict"])
        return self.chance.choice([*["new"] * 4, *["late"] * 3, *["doubled"] * 3, "left", "tombstone"])

    def _row(self, key: str, kind: str, version: int) -> dict[str, Any]:
        some = self.chance.choice
        place = {"town": some([None, "ulm", "pau"]), "floor": some([None, 1, 2])}
        return {
            "id": key,
            "revision": self._revision(key, kind) if self.merge != "append" else None,
            "left": kind == "left" or some([None, False]),
            # What holds nothing is nothing, in a table as in a patch.
            "place": place if any(place.values()) else None,
            "amount": some([None, 1, 2, LARGE if version == 2 else 3]),
            "remark": some([None, "a", "b", "c", "d"]),
            "channel": some([USUAL_CHANNEL, "app"]) if version else USUAL_CHANNEL,
        }

    def _revision(self, key: str, kind: str) -> int:
        highest = max((line.row["revision"] for line in self._said[key] if line.row), default=0)
        return self.chance.randint(0, highest) if kind == "late" else highest + 1


def placed(lines: Sequence[Line]) -> Iterator[Told]:
    """What each line means, with the coordinates that Kafka gives it."""
    offsets = Counter[int]()
    for line in lines:
        yield Coordinates(line.partition, offsets[line.partition]), line.meaning
        offsets[line.partition] += 1
