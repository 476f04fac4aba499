"""Starts the feeds' DAGs through Airflow and follows their runs to the end."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import httpx

from demo import airflow
from demo.airflow import Run
from demo.board import Board, Moment
from demo.errors import RunError
from demo.settings import Airflow

POLL_SECONDS = 0.5
KNOWN_SECONDS = 120.0
RUN_SECONDS = 1_200.0


def start(client: httpx.Client, dags: Sequence[str]) -> list[Run]:
    """One new run of every DAG, as soon as Airflow knows them all."""
    for dag in dags:
        if not _happens(partial(airflow.known, client, dag), seconds=KNOWN_SECONDS):
            raise RunError(_unknown(dag, airflow.import_errors(client)))
        airflow.unpause(client, dag)
    return [airflow.trigger(client, dag) for dag in dags]


def follow(client: httpx.Client, runs: Sequence[Run], *, board: Board, at: Airflow) -> None:
    """Wait until every run ended in success and no other run of these DAGs is under way; a failed run is an error."""
    if not _happens(lambda: _ended(client, runs, board=board, at=at), seconds=RUN_SECONDS):
        raise RunError(f"The runs did not end in {RUN_SECONDS / 60:.0f} minutes. Look at {at.url}, and `make logs`.")
    # A scheduled run may have taken the records first and still be loading them.
    if not _happens(lambda: not any(airflow.active(client, run.dag) for run in runs), seconds=RUN_SECONDS):
        raise RunError(f"Scheduled runs did not end in {RUN_SECONDS / 60:.0f} minutes. Look at {at.url}.")


def _ended(client: httpx.Client, runs: Sequence[Run], *, board: Board, at: Airflow) -> bool:
    moments = [Moment(run, airflow.state(client, run), tuple(airflow.tasks(client, run))) for run in runs]
    board.show(moments)
    for moment in moments:
        if moment.state == "failed":
            raise RunError(_failure(client, moment, at=at))
    return all(moment.state == "success" for moment in moments)


def _failure(client: httpx.Client, moment: Moment, *, at: Airflow) -> str:
    """The failed tasks with the end of their logs and the page that shows more."""
    parts = [f"{moment.run.dag}: the run {moment.run.id} failed."]
    for task in moment.tasks:
        if task.state == "failed":
            log = "\n".join(f"  {line}" for line in airflow.last_log_lines(client, moment.run, task=task))
            parts.append(f"Task {task.label}:\n{log}\nSee {airflow.task_page(at, moment.run, task=task)}")
    return "\n".join(parts)


def _unknown(dag: str, errors: Sequence[str]) -> str:
    why = "\n".join(errors) or "No import error is known: `make logs` shows what the DAG processor does."
    return f"Airflow does not know the DAG {dag} after {KNOWN_SECONDS:.0f} s.\n{why}"


def _happens(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Whether the condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
