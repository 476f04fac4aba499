"""The factory: one feed file in, its DAG out, read from nothing but that file and those of warehouses that name it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, AssetAny, AssetOrTimeSchedule, CronDataIntervalTimetable, TriggerRule, task
from airflow.sdk.bases.timetable import BaseTimetable

from headrace import duration, layout
from headrace.airflow import approval, assets, feed_file, tasks
from headrace.airflow.approval import ApprovalOperator
from headrace.feed import Feed
from headrace.field import Field

RUN = "{{ run_id }}"
ACTIVE_RUNS = 2
"""One may wait for approval while the next ones archive; leases keep them apart where they must not meet."""
LONGEST_TAG = 100
"""In characters; Airflow refuses a DAG with a longer one."""


def build_dag(path: str | Path) -> DAG:
    """The feed's DAG: extract, transform, check, publish, then load and reconcile for each warehouse on its own.

    The archive and the clean table are reconciled as soon as they are written, beside what follows.

    Where a check fails, publish waits for somebody's approval.
    """
    feed, path = feed_file.opened(Path(path)), str(path)
    runs = feed.declaration.runs
    with DAG(
        dag_id=feed.name,
        description=feed.doc,
        doc_md=documentation(feed),
        schedule=schedule(feed),
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=ACTIVE_RUNS,
        tags=tags(feed),
        default_args={
            "owner": feed.declaration.owner,
            "retries": runs.retries,
            "retry_delay": duration.parse(runs.retry_delay),
            "execution_timeout": duration.parse(runs.time_limit),
        },
    ) as dag:
        extracted = task.short_circuit(task_id="extract", trigger_rule=TriggerRule.NONE_FAILED)(tasks.extract)(path)
        if feed.declaration.job:
            inlets = [assets.clean(name) for name in feed.declaration.job.inputs]
            task(task_id="compute", inlets=inlets)(tasks.compute)(path) >> extracted
        # A backfill skips extract and nothing else.
        transformed = task(task_id="transform", trigger_rule=TriggerRule.NONE_FAILED)(tasks.transform)(path, RUN)
        checked = task(task_id="check")(tasks.check)(path, RUN)
        approved = ApprovalOperator(
            task_id=approval.TASK,
            feed=feed.name,
            lasting=duration.parse(runs.approval),
            trigger_rule=TriggerRule.ONE_FAILED,
        )
        published = task(task_id="publish", outlets=[assets.clean(feed.name)], trigger_rule=TriggerRule.ONE_SUCCESS)(
            tasks.publish
        )(path, RUN, checked, approved.output)  # type: ignore[arg-type]
        extracted >> transformed >> checked >> approved >> published
        checked >> published
        # Beside what follows, which does not wait for them: what is archived, and what is published, is so in any case.
        extracted >> task(task_id=f"reconcile_{layout.ARCHIVE}")(tasks.reconcile)(path, layout.ARCHIVE)
        published >> task(task_id=f"reconcile_{layout.CLEAN}")(tasks.reconcile)(path, layout.CLEAN)
        for warehouse in feed.declaration.warehouses:
            # A warehouse may be behind though nothing new was published, and is reconciled though nothing was loaded.
            after = TriggerRule.NONE_FAILED
            outlets = [assets.warehouse(warehouse, feed=feed.name)]
            load_ = task(task_id=f"load_{warehouse}", outlets=outlets, trigger_rule=after)(tasks.load)(path, warehouse)
            reconcile = task(task_id=f"reconcile_{warehouse}", trigger_rule=after)(tasks.reconcile)(path, warehouse)
            published >> load_ >> reconcile
    return dag


def schedule(feed: Feed) -> BaseTimetable:
    """By its cron expression; a feed that a job makes runs also whenever one of its inputs was published."""
    ticks = CronDataIntervalTimetable(feed.declaration.schedule, timezone="UTC")
    if feed.declaration.job is None:
        return ticks
    return AssetOrTimeSchedule(timetable=ticks, assets=AssetAny(*map(assets.clean, feed.declaration.job.inputs)))


def tags(feed: Feed) -> list[str]:
    """What the list of DAGs can be filtered by."""
    named = ["feed", f"owner:{feed.declaration.owner}", *(f"to:{name}" for name in feed.declaration.warehouses)]
    return [tag[:LONGEST_TAG] for tag in (*named, *(["pii"] if feed.personal else []))]


def documentation(feed: Feed) -> str:
    """What the Airflow UI shows as the DAG's docs."""
    declared = feed.declaration
    source, place = ("stream", "shard and sequence number") if declared.kinesis else ("topic", "partition and offset")
    facts = {
        "owner": declared.owner,
        source: feed.topic,
        "key": ", ".join(declared.key),
        "order": ", ".join(declared.order) or place,
        "merge": declared.merge,
        "warehouses": ", ".join(declared.warehouses) or "none",
        "asset": ", ".join(layout.asset(store, feed.name)[0] for store in (assets.CLEAN, *declared.warehouses)),
    }
    fields = [(f"`{each.name}`", _type(each), each.pii or "", each.doc or "") for each in feed.fields]
    titles = ("field", "type", "personal", "")
    return "\n".join([feed.doc, "", *_table(("", ""), facts.items()), "", *_table(titles, fields)])


def _type(field: Field) -> str:
    return f"{field.kind} or null" if field.nullable else field.kind


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown; a value may hold what would end its cell."""
    for row in (titles, ["---"] * len(titles), *rows):
        cells = (" ".join(cell.split()).replace("|", r"\|") for cell in row)
        yield f"| {' | '.join(cells)} |"
