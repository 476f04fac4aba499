"""A stack for tests: in a state folder of its own, on free ports, with its own copy of the feed files."""

import shutil
import socket
import subprocess
import sys
from collections.abc import MutableMapping
from contextlib import ExitStack
from pathlib import Path

from stack import environment, passwords, settings
from stack.settings import HOST, PORTS, REPOSITORY, port_variable
from stack.supervision import Supervisor


def free_ports() -> dict[str, int]:
    """Ports that nobody listens on, all different because all are held until the last is found."""
    with ExitStack() as held:
        sockets = {name: held.enter_context(socket.socket()) for name in PORTS}
        for one in sockets.values():
            one.bind((HOST, 0))
        return {name: one.getsockname()[1] for name, one in sockets.items()}


def variables(state: Path, *, schemas: Path | None = None, warehouses: Path | None = None) -> dict[str, str]:
    """The environment variables that make stack commands use this state folder and free ports."""
    ports = {port_variable(name): str(port) for name, port in free_ports().items()}
    folders = {"schemas": schemas or REPOSITORY / "schemas", "warehouses": warehouses or REPOSITORY / "warehouses"}
    chosen = {f"HEADRACE_{name.upper()}": str(folder) for name, folder in folders.items()}
    return {"HEADRACE_STATE": str(state), **chosen, **ports}


def run(*arguments: str, around: MutableMapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a stack command and collect what it says."""
    command = [sys.executable, "-m", "stack", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=dict(around), capture_output=True, text=True, check=False)


def enter(state: Path, *, around: MutableMapping[str, str], keep: bool) -> None:
    """Turn an environment towards a test stack, before anything reads it; a kept one that runs is taken as it is."""
    for name in [name for name in around if name.startswith(("AIRFLOW", "HEADRACE_"))]:
        del around[name]
    around["HEADRACE_STATE"] = str(state)
    if not (keep and Supervisor(settings.load(around)).pid()):
        remove(state, around=around)
        for folder in ("schemas", "warehouses"):
            shutil.copytree(REPOSITORY / folder, state / folder)
        around.update(variables(state, schemas=state / "schemas", warehouses=state / "warehouses"))
    chosen = settings.load(around)
    settings.keep(chosen)
    around.update(environment.render(chosen, passwords.load(state)))


def remove(state: Path, *, around: MutableMapping[str, str]) -> None:
    """Take down what runs in a test's state folder, and the folder with it."""
    if state.exists():
        run("down", around=around)
        shutil.rmtree(state)
