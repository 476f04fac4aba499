"""Shows how the runs move: a table that redraws itself in a terminal, plain lines elsewhere."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demo.airflow import Run, Task

STYLES = {"success": "green", "failed": "bold red", "upstream_failed": "red", "running": "cyan", "skipped": "dim"}


@dataclass(frozen=True)
class Moment:
    """A run and its tasks as Airflow knew them at one moment."""

    run: Run
    state: str
    tasks: tuple[Task, ...]


class Board(Protocol):
    """Something that shows the latest moment of every run."""

    def show(self, moments: Sequence[Moment]) -> None: ...


class LiveBoard:
    """One table, redrawn in place."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, moments: Sequence[Moment]) -> None:
        self._live.update(as_table(moments))


class LineBoard:
    """A line whenever something moved."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._seen: dict[str, str] = {}

    def show(self, moments: Sequence[Moment]) -> None:
        now = states(moments)
        for name, state in now.items():
            if self._seen.get(name) != state:
                self._console.print(f"  {name:<32} {state}", markup=False, highlight=False)
        self._seen = now


@contextmanager
def board(console: Console) -> Iterator[Board]:
    """The board that fits the console."""
    if not console.is_terminal:
        yield LineBoard(console)
        return
    with Live(console=console, refresh_per_second=4) as live:
        yield LiveBoard(live)


def states(moments: Sequence[Moment]) -> dict[str, str]:
    """The state of every run and of every task that has one, by name."""
    found: dict[str, str] = {}
    for moment in moments:
        found[moment.run.dag] = moment.state
        found |= {f"{moment.run.dag}.{task.label}": task.state for task in moment.tasks if task.state != "waiting"}
    return found


def as_table(moments: Sequence[Moment]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("feed", "run", "tasks"):
        table.add_column(title)
    for moment in moments:
        tasks = Text("  ").join(Text(task.label, style=STYLES.get(task.state, "dim")) for task in moment.tasks)
        table.add_row(moment.run.dag, Text(moment.state, style=STYLES.get(moment.state, "")), tasks)
    return table
