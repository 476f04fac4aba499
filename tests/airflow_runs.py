"""Runs of DAGs through Airflow's API, as a person would start and await them."""

import time
from collections.abc import Mapping
from typing import Any

import httpx

SECONDS = 300
BETWEEN_QUESTIONS = 0.3


def triggered(airflow: httpx.Client, dag: str, *, conf: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Trigger a run with a form filled in, wait for its end and give its tasks."""
    made = airflow.post(f"/api/v2/dags/{dag}/dagRuns", json={"logical_date": None, "conf": conf or {}})
    made.raise_for_status()
    path = f"/api/v2/dags/{dag}/dagRuns/{made.json()['dag_run_id']}"
    deadline = time.monotonic() + SECONDS
    while (state := airflow.get(path).json()["state"]) not in ("success", "failed"):
        assert time.monotonic() < deadline, f"{dag} is still {state}"
        time.sleep(BETWEEN_QUESTIONS)
    assert state == "success"
    tasks: list[dict[str, Any]] = airflow.get(f"{path}/taskInstances").json()["task_instances"]
    return tasks


def awaited(airflow: httpx.Client, dag: str) -> None:
    """Wait until Airflow knows a DAG well enough to run it."""
    deadline = time.monotonic() + SECONDS
    while airflow.get(f"/api/v2/dags/{dag}/details").status_code != httpx.codes.OK:
        assert time.monotonic() < deadline, f"{dag} is still unknown"
        time.sleep(BETWEEN_QUESTIONS)
