"""What the whole story needs: a signed-in client of Airflow's API, and a browser."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, sync_playwright

# As root a sandbox cannot be had; the others keep the browser from looking for anything but our page.
CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


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
