"""The whole stack, as `make up` leaves it."""

import os

from stack import trial
from stack.parts.part import Stack


def test_the_whole_stack_is_up(stack: Stack) -> None:
    shown = trial.run("status", around=os.environ)
    assert shown.returncode == 0, shown.stdout
