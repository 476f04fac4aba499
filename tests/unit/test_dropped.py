"""What an archive has dropped: noted as few spans, and read back."""

import pytest

from headrace.dropped import PROPERTY, Dropped, joined, outside, read
from headrace.filed import Claim
from headrace.heads import Heads
from headrace.stages.retention import may_go, spans


def claim(first: int, last: int, *, hour: int | None = 1, partition: int = 0) -> Claim:
    return Claim("s3://b/archive/x", partition, hour, 1, {"offset": (first, last)})


def test_spans_with_nothing_kept_between_them_are_one() -> None:
    """A topic with transactions has holes between all of its files."""
    assert joined([(0, 10), (11, 20), (40, 50)], kept=[(60, 70)]) == [(0, 50)]
    assert joined([(0, 10), (11, 20), (40, 50)], kept=[(25, 30), (60, 70)]) == [(0, 20), (40, 50)]
    assert joined([(0, 10), (5, 12)], kept=[(0, 99)]) == [(0, 12)]
    assert joined([], kept=[(0, 9)]) == []


def test_what_was_dropped_before_is_still_known() -> None:
    known = Dropped("2026-01-01T00:00:00+00:00", {0: [(0, 5)], 1: [(0, 3)]})
    found = spans(known, [claim(5, 9), claim(0, 1, partition=-1)], stay=[claim(10, 12, hour=9)])
    assert found == {-1: [(0, 2)], 0: [(0, 10)], 1: [(0, 3)]}
    again = read({PROPERTY: Dropped("x", found).to_json()})
    assert (again.of(0), again.of(-1), again.of(7)) == ([(0, 10)], [(0, 2)], ())
    assert read({}) == Dropped()


@pytest.mark.parametrize(
    ("claimed", "may"),
    [
        (claim(0, 9, hour=4), True),
        (claim(0, 10, hour=4), False),  # its last record is not merged
        (claim(0, 9, hour=5), False),  # not old enough
        (claim(0, 9, hour=None), False),  # nobody knows how old it is
        (claim(0, 9, hour=4, partition=3), False),
    ],
)
def test_only_what_is_old_and_merged_may_go(claimed: Claim, may: bool) -> None:
    assert may_go(claimed, hour=5, merged=Heads("t", {0: 10})) is may


def test_what_no_span_covers() -> None:
    assert outside(0, 10, [(2, 4), (6, 8)]) == [(0, 2), (4, 6), (8, 10)]
    assert outside(0, 10, [(0, 20)]) == []
    assert outside(3, 5, []) == [(3, 5)]
