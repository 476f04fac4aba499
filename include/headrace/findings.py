"""Findings: what verify says of one partition of an archive: counts of all, coordinates of the first of each kind."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.heads import mirrored

LISTED = 100
"""How many findings of one kind are kept with their coordinates."""

DIFFERENCES = {
    "gap": "in the topic, but not in the archive",
    "double": "more than once in the archive",
    "altered": "not as in the topic",
    "surplus": "in the archive, but not in the topic",
    "misplaced": "in a file that should not hold it",
    "ahead": "past the archive's own head",
    "file": "a file that is not what its manifest says",
    "deleted": "deleted by the broker before it was archived, and nobody has accepted that",
}
"""What makes archive and topic differ."""

NOTES = {
    "lost": "deleted by the broker before it was archived, which somebody accepted",
    "hole": "no record, and not on the broker any more: a transaction's mark, compaction, or a loss",
    "dropped": "no longer archived: the feed keeps its records for a limited time (retention.archive)",
    "forgotten": "blanked in the archive, as its person was forgotten: coordinates and timestamps are as in the topic",
    "compacted": "dropped by the broker since it was archived, as the topic is compacted",
}
"""What is told, but is no difference."""


@dataclass(frozen=True)
class Finding:
    """One kind of thing at offsets `[first, next)`; never with a key or a value."""

    kind: str
    partition: int
    first: int
    next: int
    about: str = ""

    @property
    def place(self) -> str:
        last = f"–{self.next - 1}" if self.next - self.first > 1 else ""
        drained = f"{mirrored(self.partition)} of the drained topic,"
        return f"partition {self.partition if self.partition >= 0 else drained} offset {self.first}{last}"

    def __str__(self) -> str:
        return f"{self.kind}: {self.place}" + (f": {self.about}" if self.about else "")


@dataclass
class Account:
    """What was found in one partition."""

    topic: str
    partition: int
    """The archive's number for it: mirrored for a drained topic's."""
    on_broker: tuple[int, int] | None = None
    """The offsets `[start, end)` that the broker holds; None when the topic is gone."""
    head: int = 0
    archived: tuple[int, int] | None = None
    """From the first archived offset to the one after the last."""
    records: int = 0
    """Rows in the archive."""
    equal: int = 0
    """Records that are in both, once and the same."""
    checksum: int = 0
    """Of all rows in the archive."""
    apart: int = 0
    """What it would change by, were everything as in the topic."""
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def lag(self) -> int:
        """Offsets on the broker that are not archived yet."""
        return max(0, self.on_broker[1] - max(self.head, self.on_broker[0])) if self.on_broker else 0

    @property
    def expected(self) -> int:
        """How many records the archive should hold."""
        surplus = sum(self.counts[kind] for kind in ("double", "surplus", "ahead"))
        return self.records - surplus + self.counts["gap"]

    @property
    def differences(self) -> int:
        return sum(self.counts[kind] for kind in DIFFERENCES)

    def find(self, kind: str, spans: Iterable[tuple[int, int]], *, about: str = "", count: int | None = None) -> None:
        """Count spans of one kind, and keep the first few; `count` where they stand for other than their offsets."""
        kept = sum(each.kind == kind for each in self.findings)
        for first, next_ in spans:
            self.counts[kind] += next_ - first if count is None else count
            if kept < LISTED:
                self.findings.append(Finding(kind, self.partition, first, next_, about))
                kept += 1

    def archive_reaches(self, first: int, next_: int) -> None:
        low, high = self.archived or (first, next_)
        self.archived = (min(low, first), max(high, next_))
