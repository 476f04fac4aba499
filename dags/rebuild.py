"""Make a feed's clean table anew from its archive, from Airflow's UI: trigger it and fill in the form.

The same as `headrace rebuild`: all rows are made from the archived records by the feed's rules of now, on a branch,
checked, compared with what readers see, and switched to in one step. A dry run stops before the switch.
"""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import dag, get_current_context, task

from headrace.airflow import form as fields
from headrace.airflow.tasks import edge

log = logging.getLogger(__name__)


@task(task_id="rebuild", retries=1, retry_delay=timedelta(minutes=1), execution_timeout=timedelta(hours=12))
@edge
def make() -> dict[str, Any] | None:
    """Make it anew; what came of it is told without a value of a row."""
    from headrace import layout
    from headrace.airflow import rebuild
    from headrace.feed import named
    from headrace.settings import Settings

    context = get_current_context()
    feed, dry_run, without = (context["params"][name] for name in ("feed", "dry_run", "without_dropped"))
    declared, run = named(feed, Settings().schemas), layout.rebuild_run(context["run_id"])
    done = rebuild.rebuild(declared, run=run, publish=not dry_run, without_dropped=without)
    log.info("feed %s: %s", feed, rebuild.told(done) if done else "nothing is archived yet")
    return rebuild.told(done) if done else None


@dag(
    dag_id="rebuild",
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    is_paused_upon_creation=False,
    tags=["headrace"],
    doc_md=__doc__,
    params={
        "feed": fields.feed("The feed's name."),
        "dry_run": fields.switch("Dry run", "Stop before the switch, and only tell what would change.", on=True),
        "without_dropped": fields.switch(
            "Without dropped records",
            "Go on although the archive has dropped records past their retention: rows that only those made are gone.",
            on=False,
        ),
    },
)
def rebuild() -> None:
    """One task: the rebuild."""
    make()


rebuild()
