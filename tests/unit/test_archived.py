"""Archived records: what the claims of an archive's files tell before any file is opened."""

from typing import Any

import pytest

from headrace.archived import depth, times
from headrace.filed import Claim
from headrace.hours import HOUR_MS
from headrace.slice import Slice


def claim(first: int, last: int, *, times: tuple[int | None, int | None] = (None, None), hour: int | None = 0) -> Claim:
    bounds: dict[str, tuple[Any, Any]] = {"offset": (first, last), "timestamp": times}
    return Claim(path="", partition=0, hour=hour, records=1, bounds=bounds)


@pytest.mark.parametrize(
    ("spans", "most"),
    [
        ([], 1),
        ([(0, 9), (10, 19), (20, 29)], 1),
        ([(0, 9), (9, 19), (19, 29)], 2),
        ([(0, 99), (10, 19), (15, 40), (30, 50), (60, 70)], 3),
    ],
)
def test_as_many_files_are_open_at_once_as_overlap(spans: list[tuple[int, int]], most: int) -> None:
    assert depth(claim(first, last) for first, last in spans) == most


def test_the_times_of_a_slice_are_told_by_statistics_or_by_hours() -> None:
    known, unknown = claim(0, 9, times=(5, HOUR_MS + 7)), claim(10, 19, hour=3)
    assert times({0: [known]}, slice_=Slice()) == (5, HOUR_MS + 7)
    assert times({0: [known], 1: [unknown]}, slice_=Slice()) == (5, 4 * HOUR_MS - 1)
    assert times({0: [known], 1: [unknown]}, slice_=Slice(since=100, until=200)) == (100, 199)
    assert times({0: [claim(0, 9, hour=None)]}, slice_=Slice()) is None
    assert times({}, slice_=Slice()) is None
    assert times({0: [claim(0, 9, times=(0, 5), hour=None)]}, slice_=Slice()) is None
