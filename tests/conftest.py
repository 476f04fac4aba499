"""The one stack that integration and end-to-end tests share; unit tests never touch it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack import settings, trial
from stack.parts.part import Stack
from stack.up import build

STATE = settings.REPOSITORY / ".headrace" / "test"
NEEDS_STACK = ("integration", "e2e")
# For developers: HEADRACE_TEST_KEEP=1 leaves the stack up after the tests, and takes it up again in the next run.
KEEP = os.environ.get("HEADRACE_TEST_KEEP") == "1"
_entered: list[Path] = []


def pytest_configure() -> None:
    """Make SIGTERM end the tests as Ctrl-C does, with the stack taken down."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Set the environment before the first test module is read: Airflow reads it at its import."""
    folders = {Path(__file__).parent / name for name in NEEDS_STACK}
    if not _entered and isinstance(collector, pytest.File) and folders & set(collector.path.parents):
        trial.enter(STATE, around=os.environ, keep=KEEP)
        _entered.append(STATE)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The running stack."""
    try:
        started = trial.run("up", around=os.environ)
        assert started.returncode == 0, f"The test stack did not come up:\n{started.stdout}{started.stderr}"
        yield build(settings.load(os.environ), os.environ)[0]
    finally:
        if not KEEP:
            trial.remove(STATE, around=os.environ)
