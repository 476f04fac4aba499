"""The upkeep DAG in a running stack: one task per feed, and what one of them trips over is its own."""

import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from airflow_runs import awaited, ended, started

DAG = "upkeep"
SCHEMA = {
    "type": "record",
    "name": "Row",
    "feed": {"key": ["id"], "schedule": "0 0 1 1 *"},
    "fields": [{"name": "id", "type": "string"}],
}


@pytest.fixture
def feeds(stack: Any) -> Iterator[tuple[str, str]]:
    """A good feed and one whose file is at fault, beside the examples."""
    folder, mark = Path(os.environ["HEADRACE_SCHEMAS"]), uuid.uuid4().hex[:8]
    good, bad = (folder / f"t_{mark}_{name}.avsc" for name in ("good", "bad"))
    good.write_text(json.dumps(SCHEMA))
    bad.write_text("{")
    try:
        yield good.stem, bad.stem
    finally:
        good.unlink()
        bad.unlink()


def test_each_feed_is_kept_by_a_task_of_its_own(airflow: httpx.Client, feeds: tuple[str, str]) -> None:
    awaited(airflow, DAG)
    run = started(airflow, DAG)
    good, bad = feeds
    found: dict[str, str] = {}
    deadline = time.monotonic() + 300
    while not {good, bad} <= {name for name, state in found.items() if state in ("success", "failed", "up_for_retry")}:
        assert time.monotonic() < deadline, found
        path = f"/api/v2/dags/{DAG}/dagRuns/{run}/taskInstances/keep/listMapped"
        listed = airflow.get(path).json().get("task_instances", [])
        found = {each["rendered_map_index"]: each["state"] for each in listed if each["rendered_map_index"]}
        time.sleep(0.3)
    assert (found[good], found[bad]) == ("success", "failed")
    assert ended(airflow, DAG, run) == "failed", "who looks after the platform sees it"
