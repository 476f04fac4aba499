"""Import history into a feed's topic, from Airflow's UI: trigger it and fill in the form.

The same as `headrace import`, with the same safety: run it again with the same form and it goes on where it stopped. A
dry run only looks; a discard gives up what was begun and not finished.
"""

import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Param, dag, get_current_context, task

from headrace.airflow import form as fields
from headrace.airflow.tasks import edge

log = logging.getLogger(__name__)

EVERY_S = 15.0
"""How often the log tells how far it is."""


@task(task_id="import", retries=2, retry_delay=timedelta(seconds=30), execution_timeout=timedelta(hours=12))
@edge
def import_history() -> dict[str, Any]:
    """Do what the form says; rows that were rejected fail the task, after all others are in the topic."""
    import time
    from pathlib import Path

    from headrace import feed as feeds
    from headrace.airflow import history
    from headrace.errors import HistoryError
    from headrace.settings import Settings

    context = get_current_context()
    form = context["params"]
    request = history.Request(
        feed=feeds.named(form["feed"], Settings().schemas),
        source=form["source"],
        query=form["query"],
        renames=form["map"] or {},
        timestamp=form["timestamp"],
        format=form["format"],
        delimiter=form["delimiter"],
        nulls=tuple(form["nulls"] or [""]),
        header=tuple(form["header"] or ()),
        aws_connection=form["aws_connection"],
        source_rate=form["source_rate"] or None,
        rate=form["rate"],
        partitioner=form["partitioner"],
        strict=form["strict"],
        again=form["again"],
        scratch=Path(form["scratch"]) if form["scratch"] else None,
    )
    if form["discard"]:
        return _logged("discard", {"removed": history.discard(request)})
    if form["dry_run"]:
        return _logged("dry run", history.told(history.preview(request)))
    told = {"at": 0.0}

    def progress(phase: str, done: int, total: int | None) -> None:
        if time.monotonic() - told["at"] > EVERY_S:
            told["at"] = time.monotonic()
            log.info("feed %s: %s %d of %s", request.feed.name, phase, done, total or "?")

    # A retry goes on where the first try stopped, also one that was to import once more.
    report = history.run(request, progress=progress, wish=context["run_id"])
    done = _logged("import", json.loads(report.model_dump_json()))
    if report.rejected:
        counts = ", ".join(f"{fault} {count:,}" for fault, count in report.rejected.items())
        raise HistoryError(
            f"feed {report.feed}: {report.published:,} rows are in the topic, but some were rejected: {counts}. "
            f"Where each is, and why: {report.rejected_at}"
        )
    return done


def _logged(what: str, done: dict[str, Any]) -> dict[str, Any]:
    log.info("%s: %s", what, json.dumps(done))
    return done


@dag(
    dag_id="import",
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    is_paused_upon_creation=False,
    tags=["headrace"],
    doc_md=__doc__,
    params={
        "feed": fields.feed("Whose topic it goes to."),
        "source": Param(
            "",
            type="string",
            minLength=1,
            title="Source",
            description="postgres:CONNECTION/schema.table, postgres:CONNECTION with a query, s3://bucket/*.parquet, "
            "or a path on the worker.",
        ),
        "query": fields.optional(
            "Query",
            "What to ask the database, instead of a table. Its text stays in Airflow's database: name nobody in it.",
            format="multiline",
        ),
        "map": Param(
            {},
            type=["object", "null"],
            title="Map",
            description='Fields whose column has another name: {"field": "column"}.',
        ),
        "timestamp": fields.optional(
            "Timestamp", "The column of the records' Kafka timestamp; else the time of publishing."
        ),
        "format": fields.optional(
            "Format", "If the files' names do not tell.", enum=[None, "parquet", "csv", "jsonl", "avro"]
        ),
        "delimiter": Param(",", type="string", title="Delimiter", description="Between the values of CSV files."),
        "nulls": fields.listed("Nulls", "Texts, not in quotes, that mean null in CSV.", first=[""]),
        "header": fields.listed("Header", "The columns of CSV files whose first line does not name them."),
        "aws_connection": fields.optional("AWS connection", "For files on S3, if not where the lake is."),
        "source_rate": Param(
            50_000,
            type="number",
            minimum=0,
            title="Source rate",
            description="Rows per second that the source is asked for at most; 0: no limit.",
        ),
        "rate": fields.number("Rate", "Records per second published at most; else no limit."),
        "partitioner": Param(
            "murmur2_random",
            type="string",
            enum=["murmur2_random", "consistent_random", "fnv1a_random"],
            title="Partitioner",
            description="As your producers choose a partition: Java's, or librdkafka's own default.",
        ),
        "strict": fields.switch("Strict", "Stop at the first row that is no record."),
        "again": fields.switch("Again", "Import once more what was imported already."),
        "scratch": fields.optional("Scratch", "A folder of the worker with room to sort in."),
        "dry_run": fields.switch("Dry run", "Only tell what would be done, and what is wrong in the first rows."),
        "discard": fields.switch("Discard", "Give up what was begun and not finished: remove what is staged."),
    },
)
def history_import() -> None:
    """One task: an import is one delivery, which resumes by itself."""
    import_history()


history_import()
