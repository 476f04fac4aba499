"""Windows run again in the running stack: by the command that people know, and by Airflow's own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from airflow_runs import awaited, ended, logged, started, states, triggered
from row_feed import RowFeed, row_feed

SECONDS = 120
ACCOUNTS = "read 2, decoded 1, quarantined 1, duplicates 0, superseded 0, inserted 1, updated 0, deleted 0"


def daily(most: int, description: str) -> dict[str, Any]:
    """A feed with a window per day; what costs more than this is quarantined."""
    check = {"column": "price", "between": [0, most], "severity": "quarantine"}
    return {"schedule": "0 0 * * *", "runs": {"retries": 0}, "checks": [check], "description": description}


@pytest.fixture
def feed(stack: Any, airflow: httpx.Client) -> Iterator[RowFeed]:
    with row_feed(daily(100, "Faulty.")) as made:
        awaited(airflow, made.name)
        # Airflow runs the last whole window by itself, at once: it must not take the records of the test.
        assert ended(airflow, made.name, appeared(airflow, made.name, kind="scheduled")) == "success"
        yield made


def command(*words: str) -> str:
    done = subprocess.run(
        [Path(sys.executable).with_name("airflow"), *words], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def windows(airflow: httpx.Client, feed: str, *, kind: str) -> list[str]:
    """The runs that backfills made, or the schedule."""
    listed = airflow.get(f"/api/v2/dags/{feed}/dagRuns", params={"run_type": kind})
    return [each["dag_run_id"] for each in listed.raise_for_status().json()["dag_runs"]]


def finished(airflow: httpx.Client, feed: str) -> None:
    """Wait until Airflow takes another backfill of the feed: its scheduler notes the end every half minute."""
    deadline = time.monotonic() + SECONDS
    while True:
        listed = airflow.get("/api/v2/backfills", params={"dag_id": feed}).raise_for_status().json()["backfills"]
        if all(each["completed_at"] for each in listed):
            return
        assert time.monotonic() < deadline, "a backfill is still running"
        time.sleep(0.5)


def described(airflow: httpx.Client, feed: str, description: str) -> None:
    """Wait until the feed's DAG is that of the changed file."""
    deadline = time.monotonic() + SECONDS
    while airflow.get(f"/api/v2/dags/{feed}").raise_for_status().json()["description"] != description:
        assert time.monotonic() < deadline, "the file was changed, the DAG was not"
        time.sleep(0.3)


def appeared(airflow: httpx.Client, feed: str, *, kind: str = "backfill") -> str:
    deadline = time.monotonic() + SECONDS
    while not (found := windows(airflow, feed, kind=kind)):
        assert time.monotonic() < deadline, "no window runs"
        time.sleep(0.3)
    (run,) = found
    return run


def test_a_window_runs_again_from_the_archive_alone_and_takes_what_was_mended_along(
    airflow: httpx.Client, feed: RowFeed
) -> None:
    day = (datetime.now(UTC) - timedelta(days=3)).replace(hour=0, minute=0, second=0, microsecond=0)
    feed.publish(("a", 1), ("b", 200), timestamp=int(day.timestamp() * 1000) + 3_600_000)
    tasks = triggered(airflow, feed.name)
    logged(airflow, feed.name, tasks[0]["dag_run_id"], ACCOUNTS, task="transform")
    assert feed.published() == {"a": 1}
    feed.publish(("c", 3))

    start = day.strftime("%Y-%m-%d")
    assert start in command("dags", "backfill", "-s", start, "-e", start, "--reset-dagruns", "--dry-run", feed.name)
    assert "1 window will run" in command("dags", "backfill", "-s", start, "-e", start, feed.name)
    run = appeared(airflow, feed.name)
    assert ended(airflow, feed.name, run) == "success"
    assert states(airflow, feed.name, run)["extract"] == "skipped"
    assert states(airflow, feed.name, run)["transform"] == "success"
    assert feed.published() == {"a": 1}
    assert feed.archived() == 2

    feed.declare(daily(1000, "Mended."))
    finished(airflow, feed.name)
    described(airflow, feed.name, "Mended.")
    asked = ("--dag-id", feed.name, "--from-date", start, "--to-date", start, "--reprocess-behavior", "completed")
    command("backfill", "create", *asked)
    beside = started(airflow, feed.name)
    assert ended(airflow, feed.name, run) == ended(airflow, feed.name, beside) == "success"
    assert feed.published() == {"a": 1, "b": 200, "c": 3}


def test_every_other_command_of_airflow_dags_works(stack: Any) -> None:
    assert "orders" in command("dags", "list", "--output", "plain")
