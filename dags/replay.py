"""Replay a slice of a feed's archive to its topic or another one, from Airflow's UI: trigger it and fill in the form.

The same as `headrace replay`, with the same safety: a replayed record ranks as its original, so nothing is revived or
overwritten, and the same form again goes on where the last run stopped. A dry run only counts.
"""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import dag, get_current_context, task

from headrace.airflow import form as fields
from headrace.airflow.tasks import edge

log = logging.getLogger(__name__)


@task(task_id="replay", retries=2, retry_delay=timedelta(seconds=30), execution_timeout=timedelta(hours=12))
@edge
def send() -> dict[str, Any]:
    """Send what the form says, or count it; what comes of it is told without keys."""
    from headrace.airflow import replay

    context = get_current_context()
    form = dict(context["params"])
    dry_run = form.pop("dry_run")
    lists = {name: form.pop(name) or () for name in ("offsets", "keys")}
    partitions = [int(text) for text in form.pop("partitions") or ()]
    request = replay.Request(**form, **lists, partitions=partitions)
    planned = replay.plan(request)
    for caution in replay.cautions(planned):
        log.warning(caution)
    if dry_run:
        tally = replay.survey(planned)
    else:
        progress = replay.lines(lambda line: log.info("feed %s: %s", form["feed"], line))
        # A retry goes on where the first try stopped, also one that was to begin at the beginning.
        tally = replay.run(planned, request, progress=progress, wish=context["run_id"])
    done = {**replay.told(planned, tally), "dry_run": dry_run}
    log.info("replay: %s", done)
    for remark in replay.remarks(planned, tally):
        log.warning(remark)
    return done


@dag(
    dag_id="replay",
    schedule=None,
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    is_paused_upon_creation=False,
    tags=["headrace"],
    doc_md=__doc__,
    params={
        "feed": fields.feed("The feed's name."),
        "dry_run": fields.switch("Dry run", "Only count what would be sent.", on=True),
        "since": fields.optional("Since", "Kafka timestamps from here on.", format="date-time"),
        "until": fields.optional("Until", "Kafka timestamps before this.", format="date-time"),
        "offsets": fields.listed(
            "Offsets", "PARTITION:FIRST-LAST, one a line, such as 0:100-199; first and last are both meant."
        ),
        "partitions": fields.listed("Partitions", "One number a line; all if none.", pattern="^[0-9]+$"),
        "keys": fields.listed(
            "Keys",
            "Kafka keys as text, or their bytes as hex:00ff, one a line. They would stay in Airflow's database for as "
            "long as the run does: where keys are personal, name offsets, or use headrace replay --keys-file.",
        ),
        "quarantine": fields.switch("Quarantine", "Only what lies in quarantine, after its cause was mended."),
        "reason": fields.optional("Reason", "Only what lies there for this reason, such as unknown_id."),
        "drained": fields.switch("Drained", "The records of the topic that the feed drains, instead of its own."),
        "to": fields.optional("To", "Another topic, which must be there; the feed's own if empty."),
        "same_partitions": fields.switch("Same partitions", "Keep partitions in another topic too; else keys decide."),
        "rate": fields.number("Rate", "At most so many records a second."),
        "bytes_rate": fields.number("Rate in bytes", "At most so many bytes a second."),
        "again": fields.switch("Again", "From the beginning, though some of it was sent before."),
        "anyway": fields.switch("Anyway", "Send though the own topic is compacted or deletes records this old."),
    },
)
def replay() -> None:
    """One task: the replay."""
    send()


replay()
