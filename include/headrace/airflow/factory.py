"""The factory: one feed file in, its DAG out, read from nothing but that file."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable, task

from headrace.airflow import tasks
from headrace.feed import Feed, load

RUN = "{{ run_id }}"


def build_dag(path: str) -> DAG:
    """The feed's DAG: extract, transform, check, publish, then load and reconcile for each warehouse on its own."""
    feed = load(Path(path))
    with DAG(
        dag_id=feed.name,
        description=feed.doc,
        doc_md=documentation(feed),
        schedule=CronDataIntervalTimetable(feed.declaration.schedule, timezone="UTC"),
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        tags=tags(feed),
        default_args={"owner": feed.declaration.owner, "retries": 2, "retry_delay": timedelta(seconds=10)},
    ) as dag:
        extracted = task.short_circuit(task_id="extract")(tasks.extract)(path)
        transformed = task(task_id="transform")(tasks.transform)(path, RUN)
        checked = task(task_id="check")(tasks.check)(path, RUN)
        published = task(task_id="publish")(tasks.publish)(path, RUN, checked)  # type: ignore[arg-type]
        extracted >> transformed >> checked >> published
        for warehouse in feed.declaration.warehouses:
            load_ = task(task_id=f"load_{warehouse}")(tasks.load)(path, warehouse)
            published >> load_ >> task(task_id=f"reconcile_{warehouse}")(tasks.reconcile)(path, warehouse)
    return dag


def tags(feed: Feed) -> list[str]:
    personal = ["pii"] if feed.personal else []
    return [
        "feed",
        f"owner:{feed.declaration.owner}",
        *(f"to:{name}" for name in feed.declaration.warehouses),
        *personal,
    ]


def documentation(feed: Feed) -> str:
    """What the Airflow UI shows as the DAG's docs."""
    declared = feed.declaration
    facts = {
        "topic": feed.topic,
        "owner": declared.owner,
        "key": ", ".join(declared.key),
        "order": ", ".join(declared.order) or "partition and offset",
        "merge": declared.merge,
        "warehouses": ", ".join(declared.warehouses) or "none",
    }
    lines = [feed.doc, "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts.items())]
    fields = [f"| `{note.name}` | {note.pii or ''} | {note.doc or ''} |" for note in feed.fields]
    return "\n".join([*lines, "", "| field | personal | |", "|---|---|---|", *fields])
