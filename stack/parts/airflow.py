"""Airflow: API server, scheduler, DAG processor and triggerer over one migrated database."""

import json
import sys
import urllib.request
from collections.abc import Callable
from datetime import datetime
from http.client import HTTPException
from importlib.metadata import version
from pathlib import Path
from typing import Any

from stack import commands, stamps
from stack.environment import USERS
from stack.parts import feeds
from stack.parts.part import NotReady, Part, Stack
from stack.settings import HOST
from stack.supervision import Program

AIRFLOW = str(Path(sys.executable).parent / "airflow")
MIGRATION = "airflow-migration"


def _program(name: str, *arguments: str) -> Callable[[Stack], Program]:
    # SIGTERM leaves the scheduler's workers behind; SIGINT, as from Ctrl-C, does not. What is then still there after
    # some seconds only tidies its memory, or waits for a task that the next start runs again: it may be killed.
    return lambda _: Program(name, [AIRFLOW, name, *arguments], stop_signal="INT", stop_seconds=6)


def api_server(stack: Stack) -> Program:
    """The API server with its UI."""
    arguments = ["--host", HOST, "--port", str(stack.settings.ports["airflow"]), "--workers", "1"]
    return _program("api-server", *arguments)(stack)


# Airflow imports this at the start of each of its programs.
LOCAL_SETTINGS = '''\
"""The scheduler forks its tasks: what it has imported, they need not import again."""

import sys

if "scheduler" in sys.argv:
    import headrace.airflow.preload  # noqa: F401
'''


async def prepare(stack: Stack) -> None:
    """Write what the programs read: local settings, and the users' passwords, which Airflow would make and print."""
    stamps.write(stack.settings.state / "airflow" / "config" / "airflow_local_settings.py", LOCAL_SETTINGS)
    passwords = json.dumps({user: getattr(stack.passwords, f"airflow_{user}") for user in USERS})
    stamps.write(stack.settings.state / "airflow" / "passwords.json", passwords, mode=0o600)


async def migrate(stack: Stack) -> None:
    """Bring the database to this Airflow's version; only a new version needs it again."""
    await prepare(stack)
    stamp = stack.settings.state / "airflow" / "migrated"
    current = version("apache-airflow-core")
    if not stamps.is_current(stamp, current):
        log = stack.settings.log(MIGRATION)
        await commands.run([AIRFLOW, "db", "migrate"], log=log, environment=stack.environment)
        stamps.write(stamp, current)


def api_answers(stack: Stack, _: int) -> None:
    """Ask for the state of health."""
    if _health(stack)["metadatabase"]["status"] != "healthy":
        raise NotReady("the API server cannot reach the metadata database")


def _beats(component: str) -> Callable[[Stack, int], None]:
    """Make the check for a heartbeat since the start: one from before it proves nothing."""

    def answers(stack: Stack, since: int) -> None:
        beat = _health(stack).get(component, {}).get(f"latest_{component}_heartbeat")
        if beat is None or datetime.fromisoformat(beat).timestamp() < since:
            raise NotReady(f"no heartbeat of the {component} yet")

    return answers


def _health(stack: Stack) -> dict[str, Any]:
    url = f"http://{HOST}:{stack.settings.ports['airflow']}/api/v2/monitor/health"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=5) as answer:
            health: dict[str, Any] = json.load(answer)
    except (OSError, HTTPException, json.JSONDecodeError) as error:
        raise NotReady(f"{url}: {error}") from error
    return health


def _done(_: Stack, __: int) -> None:
    """The migration has been run to its end: there is nothing to ask."""


PARTS = (
    Part(MIGRATION, None, _done, needs=("postgres",), prepare=migrate),
    feeds.PART,
    Part("api-server", api_server, api_answers, needs=(MIGRATION,), ports=("airflow",)),
    Part("scheduler", _program("scheduler", "--skip-serve-logs"), _beats("scheduler"), needs=(MIGRATION,)),
    # A DAG that is known before its topic is there would start with a failed run.
    Part("dag-processor", _program("dag-processor"), _beats("dag_processor"), needs=(MIGRATION, feeds.NAME)),
    Part("triggerer", _program("triggerer", "--skip-serve-logs"), _beats("triggerer"), needs=(MIGRATION,)),
)
