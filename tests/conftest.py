"""The stack that integration and end-to-end tests share, one in each worker; unit tests never touch it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis
from xdist.scheduler import LoadScopeScheduling

from stack import settings, trial
from stack.parts.part import Stack
from stack.up import build

WORKER = os.environ.get("PYTEST_XDIST_WORKER")
"""Set where tests run side by side (`pytest -n 2`)."""
STATE = settings.REPOSITORY / ".headrace" / (f"test-{WORKER}" if WORKER else "test")
NEEDS_STACK = ("integration", "e2e")
# No DAG runs in integration tests: they ask Airflow for nothing but the registry.
WITHOUT_DAGS = "kafka,s3,spark,register,api-server"
# For developers: HEADRACE_TEST_KEEP=1 leaves the stack up after the tests, and takes it up again in the next run.
KEEP = os.environ.get("HEADRACE_TEST_KEEP") == "1"
_entered: list[Path] = []


def pytest_configure() -> None:
    """Make SIGTERM end the tests as Ctrl-C does, with the stack taken down; no example fails for being slow."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    hypothesis.register_profile("patient", hypothesis.default, deadline=None)
    hypothesis.load_profile("patient")


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Set the environment before the first test module is read: Airflow reads it at its import."""
    folders = {Path(__file__).parent / name for name in NEEDS_STACK}
    if not _entered and isinstance(collector, pytest.File) and folders & set(collector.path.parents):
        trial.enter(STATE, around=os.environ, keep=KEEP)
        _entered.append(STATE)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no worker is left alone with it in the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]
    """A file is the work of one worker, and so is all that needs Airflow: it runs once, beside one stack."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return "e2e" if "/e2e/" in file else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    """Share the files out among the workers."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The running stack, without those processes of Airflow's that run DAGs."""
    try:
        rise("--only", WITHOUT_DAGS)
        yield build(settings.load(os.environ), os.environ)[0]
    finally:
        if not KEEP:
            trial.remove(STATE, around=os.environ)


def rise(*arguments: str) -> None:
    """Bring up parts of the test stack."""
    started = trial.run("up", *arguments, around=os.environ)
    assert started.returncode == 0, f"The test stack did not come up:\n{started.stdout}{started.stderr}"
