"""Reconcile every feed over everything, nightly: archive with topic, clean with archive, each warehouse with clean.

The same as `headrace reconcile FEED --full` for each feed that has a file then, one task for each of its stores: what
one trips over is its own. It reads tables as they are at a moment, and keeps no run waiting; only a comparison that
disagrees is made once more in a turn of its own. Trigger it with a feed's name to reconcile that one alone.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, dag, get_current_context, task

from headrace.airflow import form as fields
from headrace.airflow.tasks import edge

AT_ONCE = 2
"""How many are compared at the same time: it is no hurry, and the feeds' own runs need workers too."""


@task
@edge
def pairs() -> list[dict[str, str]]:
    """The stores of tonight's feeds, or of the one that was asked for."""
    from headrace.airflow import reconciling

    return reconciling.every_pair(get_current_context()["params"]["feed"])


@task(
    retries=1,
    retry_delay=timedelta(minutes=5),
    execution_timeout=timedelta(hours=6),
    max_active_tis_per_dag=AT_ONCE,
    map_index_template="{{ pair }}",
)
@edge
def compare(feed: str, store: str) -> dict[str, Any] | None:
    """Hold one store against the one before it; no value of a row is told."""
    from headrace.airflow import feed_file, reconciling
    from headrace.feed import named
    from headrace.settings import Settings

    context = get_current_context()
    context["pair"] = f"{feed}: {store}"  # type: ignore[typeddict-unknown-key]
    opened = feed_file.sharing(named(feed, Settings().schemas))
    done = reconciling.prove(opened, store, run=context["run_id"], full=True)
    return {"rows": done.found_rows, "seconds": done.seconds} if done else None


@dag(
    dag_id="reconcile",
    schedule=CronTriggerTimetable("30 3 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    tags=["headrace"],
    doc_md=__doc__,
    params={"feed": fields.optional("Feed", "Only this feed; without one, every feed.")},
)
def reconcile() -> None:
    """One task for each store of each feed."""
    compare.expand_kwargs(pairs())


reconcile()
