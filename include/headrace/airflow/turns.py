"""Turns: a run's task works on a table while no other run, no backfill and no upkeep does.

Airflow's backfill ignores `max_active_runs`, and a run that waits for approval must not keep others from running: so
it is not Airflow that keeps the runs of a feed apart, but the lease on the table that they work on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import get_current_context

from headrace import layout
from headrace.layout import Identifier

if TYPE_CHECKING:
    from headrace.lake import Lake

PATIENCE = timedelta(seconds=3)
"""How long a task waits for its turn on a worker; then it gives the worker back."""

PAUSE = timedelta(seconds=10)
"""How long it stays away before it asks again: each time costs a process.

Well above a second: Airflow fails a task that starts again before it has heard that its last process ended.
"""

KEPT = timedelta(minutes=5)
"""How long a run's turn waits for its next task, which Airflow may let wait for a worker."""


def holder() -> str:
    """The run that a task belongs to, as leases call it."""
    run = get_current_context()["dag_run"]
    return f"{run.dag_id}/{run.run_id}"


@contextmanager
def turn(table: Identifier, *, lake: "Lake", doing: str, keep: timedelta | None = None) -> Iterator[None]:
    """The run's turn on a table; with `keep`, the run's next task goes on with it."""
    from headrace.lease import Leases
    from headrace.lease import turn as lease_turn

    with lease_turn(
        Leases(lake.database), layout.lease(table), holder=holder(), doing=doing, patience=PATIENCE, keep=keep
    ):
        yield
