"""The reminder: a change that falls into a parse, or behind a thousand others, is parsed after all."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headrace.airflow.reminder import AFTER_S, Reminder
from headrace.airflow.stubs import Stubs

STUB = "orders_fault.py"


@dataclass
class Desk:
    """The stubs, the clock and what Airflow was asked for."""

    stubs: Stubs
    now: float = 0.0
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reminder = Reminder(self.stubs, self.asked.append, clock=lambda: self.now)
        self.reminder.remind()

    def change(self, time: int) -> None:
        os.utime(self.stubs.path / STUB, (time, time))

    def remind(self, *, after: float = 0.0) -> list[str]:
        self.now += after
        self.reminder.remind()
        return self.asked


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    stubs = Stubs(tmp_path)
    stubs.prepare()
    stubs.blame("orders", "wrong")
    return Desk(stubs)


def test_a_changed_stub_is_asked_for_once_a_while_later(desk: Desk) -> None:
    desk.change(2)
    assert desk.remind() == []
    assert desk.remind(after=AFTER_S) == [STUB]
    assert desk.remind(after=10 * AFTER_S) == [STUB]


def test_where_airflow_was_deaf_it_is_asked_once_more_when_it_hears_again(desk: Desk) -> None:
    desk.reminder = Reminder(desk.stubs, desk.asked.append, deaf_s=30, clock=lambda: desk.now)
    desk.remind()
    desk.change(2)
    desk.remind()
    assert desk.remind(after=AFTER_S) == [STUB]
    assert desk.remind(after=29) == [STUB]
    assert desk.remind(after=1) == [STUB, STUB]
    assert desk.remind(after=100) == [STUB, STUB]


def test_a_stub_that_goes_on_changing_is_asked_for_when_it_rests(desk: Desk) -> None:
    for time in (2, 3, 4):
        desk.change(time)
        assert desk.remind(after=AFTER_S / 2) == []
    assert desk.remind(after=AFTER_S) == [STUB]


def test_a_new_stub_goes_before_all_others_anyway(desk: Desk) -> None:
    desk.stubs.blame("calls", "wrong")
    desk.remind()
    assert desk.remind(after=10 * AFTER_S) == []


def test_a_stub_that_went_meanwhile_is_not_asked_for(desk: Desk) -> None:
    desk.change(2)
    desk.remind()
    desk.stubs.absolve("orders")
    assert desk.remind(after=AFTER_S) == []
