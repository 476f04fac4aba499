"""Comparison: what an archive lacks, has twice or has otherwise than its topic, from the imprints of both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.imprint import BLANKED, PARTS, Imprints, Offsets, forgotten, unreadable_headers


@dataclass(frozen=True)
class Comparison:
    """Offsets by what is wrong with them, each in order; both sides held all they have of one stretch."""

    equal: int
    missing: Offsets
    """In the topic, not in the archive."""
    surplus: Offsets
    """In the archive, not in the topic."""
    doubled: Offsets
    """In the archive more than once: one for every row too many."""
    altered: Offsets
    differing: Mapping[int, tuple[str, ...]]
    """Of the first altered records, by offset: the parts that differ."""
    forgotten: Offsets
    """Blanked in the archive; what stays of them is as in the topic."""
    checksum: int = 0
    """Of what the archive holds."""
    apart: int = 0
    """What its checksum would change by, were everything as in the topic."""


def compare(topic: Imprints, archive: Imprints, *, listed: int, blank_before: int = 0) -> Comparison:
    """Hold the archive's imprints of a stretch, in any order, against the topic's, which come in theirs.

    Records before `blank_before` may have been blanked, and are then compared in what stays of them.
    """
    archive = archive.in_order()
    place = np.searchsorted(topic.offsets, archive.offsets)
    held = np.zeros(len(archive), dtype=np.bool_)
    inside = place < len(topic)
    held[inside] = topic.offsets[place[inside]] == archive.offsets[inside]
    here, there = archive.where(held), topic.where(place[held])
    differs = {name: here.parts[name] != there.parts[name] for name in PARTS}
    # Spark's client reads them: it has archived more than ours can tell of the topic.
    differs["headers"] &= there.parts["headers"] != unreadable_headers()
    blank = forgotten(here) & (here.offsets < blank_before)
    for name in BLANKED:
        differs[name] &= ~blank
    altered = np.logical_or.reduce([np.zeros(len(here), dtype=np.bool_), *differs.values()])
    wrong = np.unique(here.offsets[altered])
    left = np.setdiff1d(here.offsets[blank], wrong)
    missing = np.setdiff1d(topic.offsets, archive.offsets, assume_unique=False)
    again = np.r_[False, archive.offsets[1:] == archive.offsets[:-1]][: len(archive)]
    should_be = topic.where(np.isin(topic.offsets, np.r_[wrong, missing])).checksum
    should_not = archive.where(again | ~held | np.isin(archive.offsets, wrong)).checksum
    return Comparison(
        equal=len(np.unique(here.offsets)) - len(wrong) - len(left),
        missing=missing,
        surplus=np.unique(archive.offsets[~held]),
        doubled=doubles(archive.offsets),
        altered=wrong,
        differing={int(offset): _parts(here.offsets == offset, differs) for offset in wrong[:listed]},
        forgotten=left,
        checksum=archive.checksum,
        apart=should_be - should_not,
    )


def _parts(rows: npt.NDArray[np.bool_], differs: Mapping[str, npt.NDArray[np.bool_]]) -> tuple[str, ...]:
    return tuple(name for name in PARTS if bool(np.any(differs[name] & rows)))


def doubles(offsets: Offsets) -> Offsets:
    """Of offsets in order, every one that equals the one before it."""
    again: Offsets = offsets[1:][offsets[1:] == offsets[:-1]]
    return again


def runs(offsets: Offsets) -> Iterator[tuple[int, int]]:
    """Offsets in order as spans `[first, next)` without a break."""
    if not len(offsets):
        return
    breaks = np.flatnonzero(np.diff(offsets) > 1)
    firsts, lasts = offsets[np.r_[0, breaks + 1]], offsets[np.r_[breaks, len(offsets) - 1]]
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        yield first, last + 1


def holes(offsets: Offsets, *, reached: int | None, upto: int | None = None) -> Iterator[tuple[int, int]]:
    """The spans without a record between offsets in order, from the last stretch's end up to where this one ends."""
    known = np.unique(offsets)
    edges = np.r_[[] if reached is None else [reached - 1], known, [] if upto is None else [upto]].astype(np.int64)
    for at in np.flatnonzero(np.diff(edges) > 1).tolist():
        yield int(edges[at]) + 1, int(edges[at + 1])
