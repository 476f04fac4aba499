"""Keep every feed's tables, nightly: compact small files, expire snapshots, remove what belongs to nothing.

The same as `headrace upkeep FEED` for each feed that has a file then, one task each: what one feed's task trips over is
its own. It takes turns with the feeds' runs, and what it cannot do now it does the next night.
"""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import CronTriggerTimetable, dag, get_current_context, task

from headrace.airflow.tasks import edge

log = logging.getLogger(__name__)

AT_ONCE = 2
"""How many feeds are kept at the same time: it is no hurry, and the feeds' own runs need workers too."""


@task
@edge
def feeds() -> list[str]:
    """The feeds there are tonight."""
    from headrace.airflow import upkeep

    return upkeep.every_feed()


@task(
    retries=1,
    retry_delay=timedelta(minutes=5),
    execution_timeout=timedelta(hours=4),
    max_active_tis_per_dag=AT_ONCE,
    map_index_template="{{ feed }}",
)
@edge
def keep(feed: str) -> dict[str, Any]:
    """Keep one feed's tables; what was left for the next time is told."""
    from headrace.airflow import upkeep
    from headrace.feed import named
    from headrace.settings import Settings

    get_current_context()["feed"] = feed  # type: ignore[typeddict-unknown-key]
    done = upkeep.keep(named(feed, Settings().schemas))
    for table in done.tables:
        for reason in table.left:
            log.warning("%s: left for the next night: %s", table.table, reason)
    return upkeep.told(done)


@task(execution_timeout=timedelta(hours=1))
@edge
def warehouses() -> list[str]:
    """Take away the warehouses whose last day is over."""
    from headrace.airflow import warehouses

    return warehouses.remove_ended()


@dag(
    dag_id="upkeep",
    schedule=CronTriggerTimetable("30 2 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=False,
    tags=["headrace"],
    doc_md=__doc__,
)
def upkeep() -> None:
    """One task per feed, and one for warehouses that were only for a while."""
    keep.expand(feed=feeds())
    warehouses()


upkeep()
