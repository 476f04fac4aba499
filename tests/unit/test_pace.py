"""Pace: a rate that is kept whatever the batches, on a clock of the test's own."""

import pytest

from headrace.errors import SettingsError
from headrace.kafka.delivery import BATCH_BYTES, BATCH_RECORDS, Outgoing, batches
from headrace.kafka.pace import Pace, Rate


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def took(rate: Rate, *sizes: tuple[int, int]) -> float:
    clock = Clock()
    pace = Pace(rate, clock=clock, sleep=clock.sleep)
    for records, size in sizes:
        pace.wait(records, size)
    pace.wait(0, 0)
    return clock.now - 100.0


def test_records_take_their_time() -> None:
    assert took(Rate(records=100), (50, 0), (100, 0), (50, 0)) == pytest.approx(2.0)


def test_bytes_take_their_time_and_the_slower_limit_holds() -> None:
    assert took(Rate(bytes=1000), (1, 500), (1, 1500)) == pytest.approx(2.0)
    assert took(Rate(records=10, bytes=1000), (1, 500), (10, 100)) == pytest.approx(1.5)


def test_without_a_limit_nothing_waits() -> None:
    assert took(Rate(), (1_000_000, 1 << 40)) == 0


def test_an_idle_time_is_not_caught_up_on() -> None:
    clock = Clock()
    pace = Pace(Rate(records=10), clock=clock, sleep=clock.sleep)
    pace.wait(10, 0)
    clock.now += 60
    pace.wait(10, 0)
    before = clock.now
    pace.wait(10, 0)
    assert clock.now - before == pytest.approx(1.0)


def test_a_rate_that_never_ends_is_refused() -> None:
    with pytest.raises(SettingsError, match="a rate of 0 records a second never ends"):
        Rate(records=0)


def stream(count: int, size: int) -> list[tuple[Outgoing, int]]:
    return [(Outgoing(None, bytes(size)), number + 1) for number in range(count)]


def test_a_batch_is_cut_by_records_by_bytes_and_by_a_second_of_the_rate() -> None:
    assert [(len(each), last) for each, last in batches(stream(BATCH_RECORDS + 5, 1))] == [
        (BATCH_RECORDS, BATCH_RECORDS),
        (5, BATCH_RECORDS + 5),
    ]
    third = BATCH_BYTES // 3
    assert [len(each) for each, _ in batches(stream(7, third))] == [3, 3, 1]
    assert [len(each) for each, _ in batches(stream(25, 1), Rate(records=10))] == [10, 10, 5]
    assert [len(each) for each, _ in batches(stream(5, 100), Rate(bytes=250))] == [2, 2, 1]


def test_a_record_larger_than_any_batch_goes_alone() -> None:
    assert [len(each) for each, _ in batches(stream(2, BATCH_BYTES + 1))] == [1, 1]
    assert [len(each) for each, _ in batches(stream(2, 1000), Rate(bytes=10))] == [1, 1]
    assert list(batches([])) == []
