"""The tasks of a feed's run: each reads the feed file and the connections, calls its stage and logs one line.

Heavy imports wait inside the functions: Airflow imports this module whenever it parses a DAG.
"""

import functools
import importlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException, AirflowSkipException

from headrace import layout
from headrace.errors import HeadraceError
from headrace.feed import Feed
from headrace.feed import load as load_feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.kafka.topic import Config
    from headrace.lake import Lake
    from headrace.stages.cluster import Cluster

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


def edge(function: Callable[P, T]) -> Callable[P, T]:
    """Translate our errors for Airflow: one that a retry cannot mend fails the task at once."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except HeadraceError as error:
            if error.retry:
                raise
            raise AirflowFailException(str(error)) from error

    return wrapped


@edge
def extract(path: str) -> bool:
    """Archive what is new; False, which skips the rest of the run, when every store already has everything."""
    from headrace.airflow import connections
    from headrace.stages import extract, progress, stream

    settings, feed = Settings(), load_feed(Path(path))
    lake = connections.lake(settings)
    limits = extract.Limits(settings.file_records, settings.file_bytes)
    if feed.declaration.kinesis:
        kinesis, most = connections.kinesis(), settings.kinesis_records
        done = stream.extract(feed, lake=lake, kinesis=kinesis, limits=limits, records=most)
    else:
        kafka = connections.kafka()
        cluster = _cluster(feed, settings, lake=lake, kafka=kafka)
        done = extract.extract(feed, lake=lake, kafka=kafka, limits=limits, cluster=cluster)
    log.info("feed %s: archived %d records in %d files", feed.name, done.records, done.files)
    _show_losses(feed, lake)
    warehouses = [connections.warehouse(name) for name in feed.declaration.warehouses]
    return done.records > 0 or progress.is_behind(
        feed, lake=lake, warehouses=warehouses, mask_key=connections.mask_key()
    )


def _show_losses(feed: Feed, lake: "Lake") -> None:
    """Put what the archive is known to lack beside the task in Airflow's UI, under XCom, in every run."""
    from headrace.stages import loss

    if known := loss.known(feed, lake=lake):
        get_current_context()["ti"].xcom_push("losses", [asdict(each) for each in known])


@edge
def transform(path: str, run: str) -> Mapping[str, int]:
    """Decode and merge what is new in the archive, on the run's branch of the clean table."""
    from headrace.airflow import connections
    from headrace.stages import transform

    feed, lake = load_feed(Path(path)), connections.lake(Settings())
    registry, drains = connections.registry(), feed.declaration.topic.drains
    planned = transform.plan(
        feed,
        lake=lake,
        writers=registry.writers(feed.subject),
        drained=registry.writers(layout.subject(drains.topic)) if drains else {},
        signing=connections.signing_key(),
        run=run,
    )
    if planned is None:
        transform.drop_branch(feed, lake=lake, run=run)
        log.info("feed %s: nothing new in the archive", feed.name)
        return {}
    accounts: dict[str, int] = _job("transform", planned.model_dump_json())
    log.info("feed %s: %s", feed.name, ", ".join(f"{name} {count}" for name, count in accounts.items()))
    return accounts


@edge
def check(path: str, run: str) -> str | None:
    """Ask the suite of the rows that the branch changed; returns the snapshot that may be published."""
    from headrace.airflow import connections
    from headrace.stages import check

    feed, lake = load_feed(Path(path)), connections.lake(Settings())
    planned = check.plan(feed, lake=lake, run=run)
    if planned is None:
        return None
    outcomes = [check.Outcome.model_validate(each) for each in _job("check", planned.model_dump_json())]
    warned = check.judge(outcomes, feed=feed.name, branch=planned.branch)
    log.info("feed %s: %d checks passed, %d warned", feed.name, len(outcomes) - len(warned), len(warned))
    return str(planned.snapshot)


@edge
def publish(path: str, run: str, checked: str | None) -> str:
    """Switch the clean table to what was checked; returns the snapshot that readers now see, or is skipped."""
    from headrace.airflow import connections
    from headrace.stages import publish

    feed = load_feed(Path(path))
    if checked is None:
        # Not a success: Airflow would tell the DAGs that wait for this table of rows that are not there.
        raise AirflowSkipException(f"feed {feed.name}: nothing to publish")
    done = publish.publish(feed, lake=connections.lake(Settings()), run=run, checked=int(checked))
    log.info("feed %s: snapshot %s %s", feed.name, checked, "published" if done else "was published by an earlier try")
    return checked


@edge
def load(path: str, warehouse: str) -> Mapping[str, Any]:
    """Bring one warehouse to the published snapshot; skipped where it is there already."""
    from headrace.airflow import connections
    from headrace.stages import load

    feed = load_feed(Path(path))
    done = load.load(
        feed,
        lake=connections.lake(Settings()),
        warehouse=connections.warehouse(warehouse),
        mask_key=connections.mask_key(),
    )
    # A later try cannot tell whether an earlier one loaded; then DAGs that wait for the table are told once too often.
    if not (done.staged or done.whole) and get_current_context()["ti"].try_number == 1:
        raise AirflowSkipException(f"feed {feed.name}, warehouse {warehouse}: nothing to load")
    log.info(
        "feed %s, warehouse %s: %d rows staged, %s",
        feed.name,
        warehouse,
        done.staged,
        "all" if done.whole else "changes",
    )
    return {"snapshot": str(done.snapshot), "staged": done.staged}


@edge
def reconcile(path: str, warehouse: str) -> Mapping[str, int]:
    """Prove that one warehouse holds exactly the published rows."""
    from headrace.airflow import connections
    from headrace.stages import reconcile

    feed = load_feed(Path(path))
    done = reconcile.reconcile(
        feed,
        lake=connections.lake(Settings()),
        warehouse=connections.warehouse(warehouse),
        mask_key=connections.mask_key(),
    )
    log.info("feed %s, warehouse %s: %d rows agree", feed.name, warehouse, done.figures.count)
    return {"rows": done.figures.count}


def _cluster(feed: Feed, settings: Settings, *, lake: "Lake", kafka: "Config") -> "Cluster | None":
    """Spark for large plans, unless the feed wants none; what keeps it from Kafka is told when such a plan comes."""
    from headrace.airflow import connections
    from headrace.errors import SparkFailed
    from headrace.kafka.java import Untranslatable, java_settings
    from headrace.lake import spark_properties
    from headrace.stages.cluster import Cluster

    wanted = feed.declaration.extract.spark_from
    # Spark asks the broker once more at every hole, and a compacted topic is full of them.
    if wanted == "never" or (wanted is None and feed.declaration.topic.compaction):
        return None

    def run(plan: str) -> str:
        job = importlib.import_module(layout.job_module("extract"))
        try:
            settings_ = java_settings(kafka, read=lambda path: Path(path).read_text())
            remote = connections.spark_remote()
        except (Untranslatable, AirflowNotFoundException) as error:
            raise SparkFailed(str(error)) from error
        files: str = job.run(
            plan, remote=remote, properties=spark_properties(lake), kafka=settings_, storage=lake.storage
        )
        return files

    return Cluster(run, settings.spark_from if wanted is None else wanted)


def _job(name: str, plan: str) -> Any:
    """Run a Spark job by its name; it gets a plan and gives its result back, both as JSON."""
    from headrace.airflow import connections
    from headrace.lake import spark_properties

    job = importlib.import_module(layout.job_module(name))
    properties = spark_properties(connections.lake(Settings()))
    return json.loads(job.run(plan, remote=connections.spark_remote(), properties=properties))
