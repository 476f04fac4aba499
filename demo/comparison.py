"""Compares what stands in every store with what the oracle expects, store by store."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from demo.differences import Difference, differences
from demo.feed import Feed
from demo.oracle import Expected
from demo.stores import Found

COORDINATES = ("partition", "offset")


@dataclass(frozen=True)
class Comparison:
    """The counts of one feed, and per store what differs."""

    feed: str
    published: int
    archived: int
    clean: int
    quarantined: int
    loaded: Mapping[str, int]
    differing: Mapping[str, list[Difference]]

    @property
    def reconciled(self) -> bool:
        return self.archived == self.published and not any(self.differing.values())


def compared(feed: Feed, expected: Expected, *, found: Found) -> Comparison:
    """How what was found compares with what was expected."""
    return Comparison(
        feed=feed.name,
        published=expected.published,
        archived=found.archived,
        clean=len(found.clean),
        quarantined=len(found.quarantine),
        loaded={warehouse: len(rows) for warehouse, rows in found.warehouses.items()},
        differing=dict(_differing(feed, expected, found)),
    )


def _differing(feed: Feed, expected: Expected, found: Found) -> Iterator[tuple[str, list[Difference]]]:
    yield "clean", differences(expected.clean, found.clean, key=feed.key, hide=feed.personal)
    rejected = [
        {"partition": place.partition, "offset": place.offset, "reason": reason}
        for place, reason in expected.quarantine.items()
    ]
    yield "quarantine", differences(rejected, found.quarantine, key=COORDINATES)
    for warehouse, rows in expected.warehouses.items():
        yield warehouse, differences(rows, found.warehouses[warehouse], key=feed.key, hide=feed.personal)
