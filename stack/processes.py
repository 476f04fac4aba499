"""Which processes belong to a stack, and which one holds a port."""

import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from stack.environment import MARK
from stack.settings import HOST

_TERM_SECONDS = 5


def marked(state: Path) -> list[psutil.Process]:
    """All processes that carry this stack's mark in their environment."""
    return [process for process in psutil.process_iter() if _mark_of(process) == str(state)]


def family(pid: int) -> list[psutil.Process]:
    """A process and all it started, as far as they are still there."""
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def describe(process: psutil.Process) -> str:
    """A process in a few words for people: its name, its id and whose it is."""
    try:
        return f"{process.name()} (pid {process.pid}, user {process.username()})"
    except psutil.Error:
        return f"pid {process.pid}"


def end(processes: Iterable[psutil.Process]) -> list[str]:
    """End processes that outlived an orderly stop, first politely, then not; say which they were."""
    alive = [process for process in processes if _is_alive(process)]
    named = [describe(process) for process in alive]
    for process in alive:
        _signal(process, "terminate")
    _, stubborn = psutil.wait_procs(alive, timeout=_TERM_SECONDS)
    for process in stubborn:
        _signal(process, "kill")
    psutil.wait_procs(stubborn, timeout=_TERM_SECONDS)
    return named


def port_is_free(port: int) -> bool:
    """Tell whether a part could listen on this port."""
    with socket.socket() as probe:
        # As servers do: a port whose last connections are only fading away is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def port_holder(port: int) -> str | None:
    """Describe the process that listens on a port, where the system tells."""
    try:
        listening = [
            c
            for c in psutil.net_connections("tcp")
            if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port
        ]
    except psutil.AccessDenied:
        return None
    pids = [connection.pid for connection in listening if connection.pid]
    return describe(psutil.Process(pids[0])) if pids and psutil.pid_exists(pids[0]) else None


def memory(pid: int) -> int:
    """Bytes of memory of a process and all it started, shared pages counted once."""
    return sum(_memory(process) for process in family(pid))


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _mark_of(process: psutil.Process) -> str | None:
    try:
        mark: str | None = process.environ().get(MARK)
    except (psutil.Error, OSError):
        return None  # gone meanwhile, or another user's
    return mark


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _signal(process: psutil.Process, verb: str) -> None:
    with suppress(psutil.NoSuchProcess):
        getattr(process, verb)()
