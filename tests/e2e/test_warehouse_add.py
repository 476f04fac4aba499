"""A team's own warehouse in the running stack: added by one command, loaded by the feed's next run, removed again."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from airflow_runs import SECONDS, awaited, triggered
from psycopg import sql
from row_feed import RowFeed, row_feed

HEADRACE = Path(sys.executable).parent / "headrace"


@pytest.fixture
def feed(stack: Any) -> Iterator[RowFeed]:
    with row_feed({}) as made:
        yield made


def headrace(*arguments: str) -> None:
    done = subprocess.run([str(HEADRACE), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def tasks(airflow: httpx.Client, dag: str) -> set[str]:
    listed = airflow.get(f"/api/v2/dags/{dag}/tasks")
    listed.raise_for_status()
    return {task["task_id"] for task in listed.json()["tasks"]}


def until(airflow: httpx.Client, dag: str, task: str, *, there: bool) -> None:
    deadline = time.monotonic() + SECONDS
    while (task in tasks(airflow, dag)) != there:
        assert time.monotonic() < deadline, f"{dag}: {task} is {'not there' if there else 'still there'}"
        time.sleep(0.3)


def rows(team: str, feed: str) -> list[tuple[Any, ...]]:
    from headrace.airflow import connections

    with psycopg.connect(connections.database("headrace_warehouses").url()) as connection:
        query = sql.SQL("select * from {} order by 1").format(sql.Identifier(team, feed))
        return connection.execute(query).fetchall()


def test_a_team_has_all_rows_at_once_and_then_those_of_every_run(airflow: httpx.Client, feed: RowFeed) -> None:
    team = f"team_{uuid.uuid4().hex[:8]}"
    awaited(airflow, feed.name)
    feed.publish(("a", 1))
    triggered(airflow, feed.name)
    headrace("warehouse", "add", team, "--feeds", feed.name)
    try:
        assert rows(team, feed.name) == [("a", 1)]
        until(airflow, feed.name, f"load_{team}", there=True)
        feed.publish(("b", 2))
        triggered(airflow, feed.name)
        assert rows(team, feed.name) == [("a", 1), ("b", 2)]
    finally:
        headrace("warehouse", "remove", team, "--yes")
    until(airflow, feed.name, f"load_{team}", there=False)
    assert not (Path(os.environ["HEADRACE_WAREHOUSES"]) / f"{team}.json").exists()
