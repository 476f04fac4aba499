"""Runs of DAGs through Airflow's API, as a person would start and await them."""

import time
from collections.abc import Mapping
from typing import Any

import httpx

SECONDS = 300
BETWEEN_QUESTIONS = 0.3


def triggered(airflow: httpx.Client, dag: str, *, conf: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Trigger a run with a form filled in, wait for its end and give its tasks."""
    run = started(airflow, dag, conf=conf)
    assert ended(airflow, dag, run) == "success"
    listed = airflow.get(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances")
    tasks: list[dict[str, Any]] = listed.json()["task_instances"]
    return tasks


def started(airflow: httpx.Client, dag: str, *, conf: Mapping[str, Any] | None = None) -> str:
    """Trigger a run and give its id."""
    made = airflow.post(f"/api/v2/dags/{dag}/dagRuns", json={"logical_date": None, "conf": conf or {}})
    made.raise_for_status()
    return str(made.json()["dag_run_id"])


def ended(airflow: httpx.Client, dag: str, run: str) -> str:
    """Wait for a run's end and give its state."""
    path = f"/api/v2/dags/{dag}/dagRuns/{run}"
    deadline = time.monotonic() + SECONDS
    while (state := airflow.get(path).json()["state"]) not in ("success", "failed"):
        assert time.monotonic() < deadline, f"{dag} is still {state}"
        time.sleep(BETWEEN_QUESTIONS)
    return str(state)


def states(airflow: httpx.Client, dag: str, run: str) -> dict[str, str | None]:
    """How each task of a run stands."""
    listed = airflow.get(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances")
    listed.raise_for_status()
    return {each["task_id"]: each["state"] for each in listed.json()["task_instances"]}


def logged(airflow: httpx.Client, dag: str, run: str, words: str, *, task: str) -> None:
    """Wait until a task's log has these words: it may be written to its end a moment after the task has ended."""
    path = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/1"
    deadline = time.monotonic() + SECONDS
    while words not in (log := airflow.get(path).raise_for_status().text):
        assert time.monotonic() < deadline, log
        time.sleep(BETWEEN_QUESTIONS)


def pushed(airflow: httpx.Client, dag: str, run: str, *, task: str, key: str = "return_value") -> Any:
    """What a task left for others to see."""
    path = f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/{key}"
    return airflow.get(path, params={"deserialize": True}).raise_for_status().json()["value"]


def reached(airflow: httpx.Client, dag: str, run: str, *, task: str, state: str) -> None:
    """Wait until a task of a run is in a state."""
    deadline = time.monotonic() + SECONDS
    while (now := states(airflow, dag, run).get(task)) != state:
        assert now not in ("success", "failed", "skipped", "upstream_failed"), f"{dag}, {run}: {task} is {now}"
        assert time.monotonic() < deadline, f"{dag}, {run}: {task} is still {now}"
        time.sleep(BETWEEN_QUESTIONS)


def awaited(airflow: httpx.Client, dag: str) -> None:
    """Wait until Airflow knows a DAG well enough to run it."""
    deadline = time.monotonic() + SECONDS
    while airflow.get(f"/api/v2/dags/{dag}/details").status_code != httpx.codes.OK:
        assert time.monotonic() < deadline, f"{dag} is still unknown"
        time.sleep(BETWEEN_QUESTIONS)
