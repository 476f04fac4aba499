"""What the whole story needs: a signed-in client of Airflow's API, and a browser."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

from stack import settings, trial
from stack.down import stop_parts
from stack.parts.part import Stack
from stack.supervision import Supervisor

HERE = Path(__file__).parent
RUNS_DAGS = ("scheduler", "dag-processor", "triggerer")

# As root a sandbox cannot be had; the others keep the browser from looking for anything but our page.
CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of it is one worker's, and takes long."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop what runs DAGs before the tests that look at none: idle, it takes a fifth of a core."""
    if nextitem is not None and HERE not in nextitem.path.parents:
        stop_parts(Supervisor(settings.load(os.environ)), RUNS_DAGS)


@pytest.fixture(scope="session")
def stack(stack: Stack) -> Stack:
    """The running stack, with what runs DAGs."""
    started = trial.run("up", around=os.environ)
    assert started.returncode == 0, f"Airflow did not come up:\n{started.stdout}{started.stderr}"
    return stack


@pytest.fixture(scope="session")
def password(stack: Any) -> str:
    """The administrator's, as the stack generated it."""
    file = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    return str(json.loads(file.read_text(encoding="utf-8"))["admin"])


@pytest.fixture(scope="session")
def airflow(password: str) -> Iterator[httpx.Client]:
    """Airflow's API as the administrator."""
    base = os.environ["AIRFLOW__API__BASE_URL"]
    answer = httpx.post(f"{base}/auth/token", json={"username": "admin", "password": password}, timeout=30)
    answer.raise_for_status()
    token = answer.json()["access_token"]
    with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def browser(stack: Any) -> Iterator[Browser]:
    """Debian's Chromium; `make test` installs it where it may."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "No Chromium was found. Type: sudo apt-get install chromium"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def demo(stack: Stack) -> str:
    """Two rounds, as a newcomer and then a returning one would see them; the second has late and deleted rows."""
    for _ in range(2):
        done = subprocess.run([sys.executable, "-m", "demo"], capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
