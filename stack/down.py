"""Stopping a stack: in reverse order, and then a look that nothing is left."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import psutil

from stack import processes
from stack.parts import ALL
from stack.parts.spark import WARMING
from stack.settings import Settings
from stack.supervision import Supervisor, socket_path

_SUPERVISOR_SECONDS = 60


def down(settings: Settings, *, say: Callable[[str], None]) -> None:
    """Stop all parts and supervisord, then end and name whatever still carries the stack's mark."""
    supervisor = Supervisor(settings)
    pid = supervisor.pid()
    known: list[psutil.Process] = []
    if pid is not None:
        known = processes.family(pid)
        stop_parts(supervisor, [name for name, process in supervisor.processes().items() if process.is_running])
        known += processes.family(pid)
        supervisor.shut_down()
        psutil.wait_procs(known[:1], timeout=_SUPERVISOR_SECONDS)
    for name in processes.end({*known, *processes.marked(settings.state)}):
        say(f"Ended {name}, which had not stopped with the stack.")
    socket_path(settings.state).unlink(missing_ok=True)


def stop_parts(supervisor: Supervisor, names: Iterable[str]) -> None:
    """Stop parts, those that need others first, independent ones side by side."""
    for layer in layers(set(names)):
        with ThreadPoolExecutor() as pool:
            list(pool.map(supervisor.stop_part, layer))


def layers(names: set[str]) -> list[list[str]]:
    """Group parts so that each group can stop once the groups before it have."""
    needs = {part.name: set(part.needs) for part in ALL} | {WARMING.name: {"spark"}}
    left = set(needs)
    found = []
    while left:
        needed = {need for name in left for need in needs[name]}
        free = left - needed
        found.append(sorted(free & names))
        left -= free
    return [layer for layer in found if layer]
