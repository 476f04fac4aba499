"""The ground of a benchmark: a stack in a folder of its own, or the running one that HEADRACE_STATE names."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from stack import environment, passwords, settings, signals, trial
from stack.parts.part import Stack
from stack.supervision import Supervisor
from stack.up import build


@contextmanager
def ground(own: Path, *, parts: Sequence[str]) -> Iterator[Stack]:
    """The parts, up and with this process's environment turned to them; a stack of our own is removed afterwards."""
    signal.signal(signal.SIGTERM, _interrupt)
    named = os.environ.get("HEADRACE_STATE")
    state = Path(named).absolute() if named else own
    for name in [name for name in os.environ if name.startswith(("AIRFLOW", "HEADRACE_"))]:
        del os.environ[name]
    os.environ["HEADRACE_STATE"] = str(state)
    if not named:
        trial.remove(state, around=os.environ)
        os.environ.update(trial.variables(state))
    try:
        _start(parts, is_own=not named)
        chosen = settings.load(os.environ)
        # Airflow reads its connections from the environment, and so do the processes that we start.
        os.environ.update(environment.render(chosen, passwords.load(state)))
        yield build(chosen, os.environ)[0]
    finally:
        signals.ignore()  # a second Ctrl-C must not leave half of it behind
        if not named:
            trial.remove(state, around=os.environ)


def _start(parts: Sequence[str], *, is_own: bool) -> None:
    if not is_own and Supervisor(settings.load(os.environ)).pid() is None:
        raise SystemExit(f"No stack runs in {os.environ['HEADRACE_STATE']}. Start it, or leave HEADRACE_STATE out.")
    started = trial.run("up", "--only", ",".join(parts), around=os.environ)
    if started.returncode != 0:
        raise SystemExit(started.stdout + started.stderr)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def pids(stack: Stack, parts: Sequence[str]) -> dict[str, int]:
    """The processes behind the parts."""
    found = Supervisor(stack.settings).processes()
    return {name: found[name].pid for name in parts}
