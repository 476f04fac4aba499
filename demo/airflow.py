"""The few calls of Airflow's REST API that the demo makes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from demo.errors import RunError
from demo.settings import Airflow

LOG_LINES = 25


@dataclass(frozen=True)
class Run:
    """One run of a feed's DAG."""

    dag: str
    id: str

    @property
    def path(self) -> str:
        return f"/api/v2/dags/{self.dag}/dagRuns/{quote(self.id, safe='')}"


@dataclass(frozen=True)
class Task:
    """A task of a run as Airflow last knew it; `index` is -1 unless the task is one of several mapped ones."""

    name: str
    index: int
    state: str
    attempt: int

    @property
    def label(self) -> str:
        return self.name if self.index < 0 else f"{self.name}[{self.index}]"


@contextmanager
def session(airflow: Airflow) -> Iterator[httpx.Client]:
    """A client that is logged in. An answer that is no success, and no answer, end as RunError."""
    try:
        with httpx.Client(base_url=airflow.url, timeout=30, trust_env=False) as client:
            login = client.post("/auth/token", json={"username": airflow.user, "password": airflow.password})
            client.headers["Authorization"] = f"Bearer {_body(login)['access_token']}"
            yield client
    except httpx.TransportError as error:
        raise RunError(f"Airflow at {airflow.url} does not answer ({error}). `make status` shows what runs.") from error


def known(client: httpx.Client, dag: str) -> bool:
    """Whether Airflow has parsed the feed's DAG."""
    answer = client.get(f"/api/v2/dags/{dag}")
    return answer.status_code != httpx.codes.NOT_FOUND and bool(_body(answer))


def import_errors(client: httpx.Client) -> list[str]:
    """The files that Airflow could not turn into DAGs, with the last line of each error."""
    found = _body(client.get("/api/v2/importErrors"))["import_errors"]
    return [f"{each['filename']}: {each['stack_trace'].strip().splitlines()[-1]}" for each in found]


def unpause(client: httpx.Client, dag: str) -> None:
    _body(client.patch(f"/api/v2/dags/{dag}", params={"update_mask": "is_paused"}, json={"is_paused": False}))


def trigger(client: httpx.Client, dag: str) -> Run:
    started = _body(client.post(f"/api/v2/dags/{dag}/dagRuns", json={"logical_date": None}))
    return Run(dag, started["dag_run_id"])


def state(client: httpx.Client, run: Run) -> str:
    return str(_body(client.get(run.path))["state"])


def active(client: httpx.Client, dag: str) -> int:
    """How many runs of the DAG have not ended."""
    path = f"/api/v2/dags/{dag}/dagRuns"
    return int(_body(client.get(path, params={"state": ["queued", "running"], "limit": 1}))["total_entries"])


def tasks(client: httpx.Client, run: Run) -> list[Task]:
    """The run's tasks in the order in which they started."""
    found = _body(client.get(f"{run.path}/taskInstances", params={"limit": 100}))["task_instances"]
    found.sort(key=lambda each: (each["start_date"] or "9", each["task_id"], each["map_index"]))
    return [Task(each["task_id"], each["map_index"], _task_state(each["state"]), each["try_number"]) for each in found]


def last_log_lines(client: httpx.Client, run: Run, *, task: Task) -> list[str]:
    path = f"{run.path}/taskInstances/{task.name}/logs/{max(task.attempt, 1)}"
    content = _body(client.get(path, params={"full_content": True, "map_index": task.index}))["content"]
    lines = [line for each in content for line in _lines(each)]
    # Lines with :: only fold the log in the UI.
    return [line for line in lines if not line.startswith("::")][-LOG_LINES:]


def task_page(airflow: Airflow, run: Run, *, task: Task) -> str:
    """Where the UI shows the task."""
    mapped = "" if task.index < 0 else f"/mapped/{task.index}"
    return f"{airflow.url}/dags/{run.dag}/runs/{quote(run.id, safe='')}/tasks/{task.name}{mapped}"


def _task_state(state: str | None) -> str:
    """What a person wants to know: which kind of queue a task stands in is not part of it."""
    return "waiting" if state in (None, "scheduled", "queued") else str(state)


def _lines(message: str | Mapping[str, Any]) -> list[str]:
    """A message is a line, or an event that may carry the error that was raised."""
    if isinstance(message, str):
        return message.splitlines()
    raised = [f"{each['exc_type']}: {each['exc_value']}" for each in message.get("error_detail") or ()]
    return [*str(message["event"]).splitlines(), *raised]


def _body(answer: httpx.Response) -> Any:
    if not answer.is_success:
        request = answer.request
        raise RunError(
            f"{request.method} {request.url.path}: Airflow answered {answer.status_code}: {answer.text[:500]}"
        )
    return answer.json()
