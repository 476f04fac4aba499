"""What each part of a stack is doing, as a table."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from stack import processes
from stack.parts import ALL
from stack.parts.part import NotReady, Part, Stack
from stack.settings import HOST
from stack.supervision import Process, Supervisor

_HEADER = ("PART", "STATE", "PID", "UPTIME", "ADDRESS", "MEMORY")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@dataclass(frozen=True)
class Row:
    """One part's line."""

    part: str
    state: str
    pid: str = "-"
    uptime: str = "-"
    address: str = "-"
    memory: str = "-"

    def cells(self) -> tuple[str, ...]:
        """The row's columns."""
        return self.part, self.state, self.pid, self.uptime, self.address, self.memory


def rows(stack: Stack) -> list[Row]:
    """Ask supervisord and the parts themselves."""
    known = Supervisor(stack.settings).processes()
    with ThreadPoolExecutor() as pool:
        lasting = [part for part in ALL if part.program is not None]
        return list(pool.map(lambda part: _row(stack, part, process=known.get(part.name)), lasting))


def table(lines: Sequence[Row]) -> str:
    """The rows, aligned."""
    cells = [_HEADER, *(line.cells() for line in lines)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADER))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def all_up(lines: Sequence[Row]) -> bool:
    """Whether every part is up."""
    return all(line.state == "up" for line in lines)


def uptime(seconds: int) -> str:
    """A span of time in its largest two units."""
    if seconds < _HOUR:
        return f"{seconds // _MINUTE}m {seconds % _MINUTE:02}s"
    if seconds < _DAY:
        return f"{seconds // _HOUR}h {seconds % _HOUR // _MINUTE:02}m"
    return f"{seconds // _DAY}d {seconds % _DAY // _HOUR:02}h"


def _row(stack: Stack, part: Part, *, process: Process | None) -> Row:
    address = f"{HOST}:{stack.settings.ports[part.ports[0]]}" if part.ports else "-"
    if process is None or not process.is_running:
        failed = process is not None and process.state in ("FATAL", "BACKOFF")
        return Row(part.name, "failed" if failed else "down", address=address)
    return Row(
        part.name,
        _state(stack, part, since=process.start),
        pid=str(process.pid),
        uptime=uptime(max(0, int(time.time()) - process.start)),
        address=address,
        memory=f"{processes.memory(process.pid) // 2**20} MB",
    )


def _state(stack: Stack, part: Part, *, since: int) -> str:
    try:
        part.answers(stack, since)
    except NotReady:
        return "no answer"
    return "up"
