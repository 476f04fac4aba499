"""`headrace stubs`: the DAG files of the feeds, for an Airflow that takes no DAG bundle of ours."""

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headrace.settings import Settings


def stubs(
    folder: Annotated[Path, typer.Argument(help="Where they go: a folder of its own inside Airflow's DAGs folder.")],
    schemas: Annotated[Path | None, typer.Option(help="The folder of the feed files.", exists=True)] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no registry: take every file that lint finds no error in.")
    ] = False,
) -> None:
    """Write one small DAG file per feed, over a copy of its feed file; what is gone is removed.

    A file that is wrong, or not compatible with what is registered, leaves its feed's DAG as it was and gets a second
    DAG file that shows why. Run it when you deploy, or from cron. Exit code 1: a file is at fault.
    Example: headrace stubs dags/feeds --offline
    """
    from headrace.airflow.authority import Alone, Authority
    from headrace.airflow.intake import Intake
    from headrace.airflow.stubs import Stubs

    intake = Intake(schemas or Settings().schemas, Stubs(folder))
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        authority: Authority = Alone()
        if not offline:
            from headrace.airflow import registration

            authority = registration.authority(registers=False, opens=False)
        journal = intake.catch_up(authority, mark=authority.mark())
    faults = {name: entry.reason for name, entry in journal.feeds.items() if entry.verdict != "accepted"}
    print(f"{folder}: feeds {len(journal.feeds)}, at fault {len(faults)}")
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    for name in sorted(faults):
        console.print(faults[name], markup=False)
    sys.exit(1 if faults else 0)
