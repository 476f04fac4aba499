"""The reminder: a change that falls into a parse is parsed after all."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.airflow.reminder import AFTER_S, Reminder
from headrace.airflow.stubs import Stubs


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def stubs(tmp_path: Path) -> Stubs:
    made = Stubs(tmp_path)
    made.prepare()
    made.blame("orders", "wrong")
    os.utime(made.path / "orders_fault.py", (1, 1))
    return made


def changed(stubs: Stubs) -> float:
    return (stubs.path / "orders_fault.py").stat().st_mtime


def test_a_changed_stub_is_touched_once_more_a_while_later_and_not_again(stubs: Stubs) -> None:
    clock = Clock()
    reminder = Reminder(stubs, clock)
    reminder.remind()
    os.utime(stubs.path / "orders_fault.py", (2, 2))
    reminder.remind()
    assert changed(stubs) == 2
    clock.now += AFTER_S
    reminder.remind()
    assert changed(stubs) > 2
    last = changed(stubs)
    clock.now += 10 * AFTER_S
    reminder.remind()
    assert changed(stubs) == last


def test_a_new_stub_is_left_alone_for_nothing_parses_it_yet(stubs: Stubs) -> None:
    clock = Clock()
    reminder = Reminder(stubs, clock)
    reminder.remind()
    clock.now += 10 * AFTER_S
    reminder.remind()
    assert changed(stubs) == 1


def test_a_stub_that_went_meanwhile_is_forgotten(stubs: Stubs) -> None:
    clock = Clock()
    reminder = Reminder(stubs, clock)
    reminder.remind()
    os.utime(stubs.path / "orders_fault.py", (2, 2))
    reminder.remind()
    stubs.absolve("orders")
    clock.now += AFTER_S
    reminder.remind()
    assert stubs.names() == frozenset()
