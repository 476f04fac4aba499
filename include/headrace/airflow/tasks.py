"""The tasks of a feed's run: each reads the feed file and the connections, calls its stage and logs one line.

Heavy imports wait inside the functions: Airflow imports this module whenever it parses a DAG.
"""

import functools
import json
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)

from headrace import layout
from headrace.airflow import feed_file, turns
from headrace.airflow.approval import STOPPED, Approval, given
from headrace.errors import BranchMoved, HeadraceError, SettingsError, TurnTaken, WarehouseError
from headrace.feed import Feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.kafka.topic import Config
    from headrace.lake import Lake
    from headrace.stages.cluster import Cluster

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

AGAIN = 3
"""How often publish transforms and checks again when main moved meanwhile: with the turn held, once is much."""


def edge(function: Callable[P, T]) -> Callable[P, T]:
    """Translate our errors for Airflow: one that a retry cannot mend fails the task at once.

    A task whose turn it is not gives its worker back and comes again later; that is no try.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except TurnTaken as error:
            log.info("%s", error)
            raise AirflowRescheduleException(datetime.now(UTC) + turns.PAUSE) from error  # type: ignore[no-untyped-call]
        except HeadraceError as error:
            if error.retry:
                raise
            raise AirflowFailException(str(error)) from error

    return wrapped


@edge
def compute(path: str) -> Mapping[str, int]:
    """Run the feed's own job on its inputs' clean rows, and publish what changed; skipped where nothing did."""
    from headrace.airflow import connections
    from headrace.airflow.registration import schema_id
    from headrace.airflow.spark import Spark
    from headrace.stages import compute

    feed, lake = _opened(path)
    if window():
        raise AirflowSkipException(f"feed {feed.name}: a backfill takes the archive as it is")
    with turns.turn(layout.topic_turn(feed.name), lake=lake, doing="compute"):
        done = compute.compute(
            feed,
            lake=lake,
            kafka=connections.kafka(),
            jobs=Settings().jobs,
            schema_id=schema_id(feed),
            run=partial(Spark.of(feed, lake).run, "compute"),
        )
    if done is None:
        raise AirflowSkipException(f"feed {feed.name}: what its job reads has not changed, or is not there yet")
    log.info("feed %s: computed %d rows; %d changed, %d gone", feed.name, done.rows, done.changed, done.gone)
    return asdict(done)


@edge
def extract(path: str) -> bool:
    """Archive what is new; False, which skips the rest of the run, when every store already has everything."""
    from headrace.airflow import connections
    from headrace.stages import extract, stream

    settings, feed = Settings(), feed_file.opened(Path(path))
    if window():
        raise AirflowSkipException(f"feed {feed.name}: a backfill takes the archive as it is")
    lake = connections.lake(settings)
    limits = extract.Limits(settings.file_records, settings.file_bytes)
    with turns.turn(layout.archive_table(feed.name), lake=lake, doing="extract"):
        if feed.declaration.kinesis:
            kinesis, most = connections.kinesis(), settings.kinesis_records
            done = stream.extract(feed, lake=lake, kinesis=kinesis, limits=limits, records=most)
        else:
            kafka = connections.kafka()
            cluster = _cluster(feed, settings, lake=lake, kafka=kafka)
            done = extract.extract(feed, lake=lake, kafka=kafka, limits=limits, cluster=cluster)
    log.info("feed %s: archived %d records in %d files", feed.name, done.records, done.files)
    _show_losses(feed, lake)
    return done.records > 0 or _is_behind(feed, lake)


def _is_behind(feed: Feed, lake: "Lake") -> bool:
    """Whether any store lacks something; where a warehouse cannot be asked, its own load is to tell why."""
    from headrace.airflow import connections
    from headrace.stages import progress

    try:
        warehouses = [connections.warehouse(name) for name in feed.declaration.warehouses]
        return progress.is_behind(feed, lake=lake, warehouses=warehouses, mask_key=connections.mask_key())
    except (SettingsError, WarehouseError) as error:
        log.warning("feed %s: whether a warehouse is behind is not known, so its load is to tell: %s", feed.name, error)
        return True


def _show_losses(feed: Feed, lake: "Lake") -> None:
    """Put what the archive is known to lack beside the task in Airflow's UI, under XCom, in every run."""
    from headrace.stages import loss

    if known := loss.known(feed, lake=lake):
        get_current_context()["ti"].xcom_push("losses", [asdict(each) for each in known])


def window() -> tuple[int, int] | None:
    """The window that a backfill runs again, in milliseconds since 1970, its end not included; None for other runs."""
    context = get_current_context()
    run = context["dag_run"]
    if run.run_type != "backfill":
        return None
    start, end = run.data_interval_start, run.data_interval_end
    assert start is not None, "a backfill's runs have data intervals"
    assert end is not None, "a backfill's runs have data intervals"
    return round(start.timestamp() * 1000), round(end.timestamp() * 1000)


@edge
def transform(path: str, run: str) -> Mapping[str, int]:
    """Decode and merge what is new in the archive, on the run's branch of the clean table."""
    feed, lake = _opened(path)
    with turns.turn(layout.clean_table(feed.name), lake=lake, doing="transform", keep=turns.KEPT):
        return _transform(feed, lake=lake, run=run)


@edge
def check(path: str, run: str) -> str | None:
    """Ask the suite of the rows that the branch changed; returns the snapshot that may be published."""
    feed, lake = _opened(path)
    with turns.turn(layout.clean_table(feed.name), lake=lake, doing="check", keep=turns.KEPT):
        return _check(feed, lake=lake, run=run)


@edge
def publish(path: str, run: str, checked: str | None, approved: Mapping[str, Any] | None) -> str:
    """Switch the clean table to what was checked; returns the snapshot that readers now see, or is skipped."""
    feed, lake = _opened(path)
    stopped = get_current_context()["ti"].xcom_pull(task_ids="check", key=STOPPED)
    approval = given(approved, stopped=stopped)
    snapshot = approval.snapshot if approval else checked
    with turns.turn(layout.clean_table(feed.name), lake=lake, doing="publish"):
        published = _publish(feed, lake=lake, run=run, checked=snapshot, approval=approval)
    if published is None:
        # Not a success: Airflow would tell the DAGs that wait for this table of rows that are not there.
        raise AirflowSkipException(f"feed {feed.name}: nothing to publish")
    return published


def _publish(feed: Feed, *, lake: "Lake", run: str, checked: str | None, approval: Approval | None) -> str | None:
    """Publish what was checked; where main moved since, the run's rows are merged and checked again on top of it."""
    from headrace import results
    from headrace.stages import publish

    for tries_left in reversed(range(AGAIN)):
        if checked is None:
            return None
        try:
            done = publish.publish(feed, lake=lake, run=run, checked=int(checked))
        except BranchMoved as error:
            if not tries_left:
                raise
            log.info("%s It does so here.", error)
            _transform(feed, lake=lake, run=run)
            checked = _check(feed, lake=lake, run=run, approved=approval.expectations if approval else ())
            continue
        if approval:  # by the next try, should this one die here
            at = datetime.fromisoformat(approval.at)
            results.approve(feed.name, run, lake=lake, by=approval.by, why=approval.why, at=at)
        told = "published" if done else "was published by an earlier try"
        log.info("feed %s: snapshot %s %s%s", feed.name, checked, told, f", {approval}" if approval else "")
        return checked
    raise AssertionError("the last try returns or raises")


def _transform(feed: Feed, *, lake: "Lake", run: str) -> Mapping[str, int]:
    from headrace.airflow import planning
    from headrace.airflow.spark import Spark
    from headrace.stages import transform

    planned = planning.transform(feed, lake=lake, run=run, window=window())
    if planned is None:
        transform.drop_branch(feed, lake=lake, run=run)
        log.info("feed %s: nothing new in the archive", feed.name)
        return {}
    accounts: dict[str, int] = json.loads(Spark.of(feed, lake).run("transform", planned.model_dump_json()))
    log.info("feed %s: %s", feed.name, ", ".join(f"{name} {count}" for name, count in accounts.items()))
    if back := accounts.get("unblanked"):
        log.warning(
            "feed %s: %d records of forgotten keys came back, and lie in the archive: forget again", feed.name, back
        )
    return accounts


def _check(feed: Feed, *, lake: "Lake", run: str, approved: Collection[str] = ()) -> str | None:
    """The snapshot that may be published; what `approved` names may fail."""
    from headrace.airflow import checking
    from headrace.stages import check

    try:
        planned = check.plan(feed, lake=lake, run=run)
    except BranchMoved as error:
        log.info("%s Transform does so here.", error)
        _transform(feed, lake=lake, run=run)
        planned = check.plan(feed, lake=lake, run=run)
    if planned is None:
        return None
    context = get_current_context()
    start, end = context["dag_run"].data_interval_start, context["dag_run"].data_interval_end
    window = (start, end) if start and end else None
    outcomes, page = checking.asked(feed, planned, lake=lake, run=run, window=window)
    context["ti"].xcom_push("checks", page)
    if stopping := check.stopping(outcomes, approved=approved):
        _offer(check.offered(stopping, snapshot=planned.snapshot))
    warned = check.judge(outcomes, feed=feed.name, branch=planned.branch, page=page, approved=approved)
    log.info("feed %s: %d checks passed, %d warned", feed.name, len(outcomes) - len(warned), len(warned))
    return str(planned.snapshot)


def _offer(stopped: Mapping[str, Any]) -> None:
    """Tell the task that asks for approval what is to be approved."""
    get_current_context()["ti"].xcom_push(STOPPED, stopped)


def _opened(path: str) -> tuple[Feed, "Lake"]:
    from headrace.airflow import connections

    return feed_file.opened(Path(path)), connections.lake(Settings())


def _sharing(path: str, warehouse: str) -> Feed:
    """The feed, if the warehouse still gets it: its last day may have ended since the DAG was parsed."""
    feed = feed_file.opened(Path(path))
    if warehouse not in feed.declaration.warehouses:
        raise AirflowSkipException(f"feed {feed.name}: the warehouse {warehouse} does not get it any more")
    return feed


@edge
def load(path: str, warehouse: str) -> Mapping[str, Any]:
    """Bring one warehouse to the published snapshot; skipped where it is there already."""
    from headrace.airflow import connections
    from headrace.stages import load

    feed = _sharing(path, warehouse)
    done = load.load(
        feed,
        lake=connections.lake(Settings()),
        warehouse=connections.warehouse(warehouse),
        mask_key=connections.mask_key(),
    )
    # A later try cannot tell whether an earlier one loaded; then DAGs that wait for the table are told once too often.
    if done.way is None and get_current_context()["ti"].try_number == 1:
        raise AirflowSkipException(f"feed {feed.name}, warehouse {warehouse}: nothing to load")
    told = ", ".join(f"{count} {name}" for name, count in asdict(done.counts).items())
    log.info("feed %s, warehouse %s: loaded %s; %s", feed.name, warehouse, done.way or "nothing", told)
    return {"snapshot": str(done.snapshot), "staged": done.staged, **asdict(done.counts)}


@edge
def reconcile(path: str, store: str) -> Mapping[str, int]:
    """Prove that one store of the feed holds exactly what the one before it says, as far as this run changed it."""
    from headrace.airflow import reconciling

    feed = _sharing(path, store) if store not in layout.LAKE_STORES else feed_file.opened(Path(path))
    done = reconciling.prove(feed, store, run=get_current_context()["dag_run"].run_id, full=False)
    if done is None:
        raise AirflowSkipException(f"feed {feed.name}: nothing new in {store} to reconcile")
    told = "all rows" if done.scope == "whole" else "rows that changed"
    log.info("feed %s, %s: %s agree, %d", feed.name, done.pair, told, done.found_rows)
    return {"rows": done.found_rows}


def _cluster(feed: Feed, settings: Settings, *, lake: "Lake", kafka: "Config") -> "Cluster | None":
    """Spark for large plans, unless the feed wants none; what keeps it from Kafka is told when such a plan comes."""
    from headrace.airflow.spark import Spark
    from headrace.errors import SparkFailed
    from headrace.kafka.java import Untranslatable, java_settings
    from headrace.stages.cluster import Cluster

    wanted = feed.declaration.extract.spark_from
    # Spark asks the broker once more at every hole, and a compacted topic is full of them.
    if wanted == "never" or (wanted is None and feed.declaration.topic.compaction):
        return None

    def run(plan: str) -> str:
        spark = Spark.of(feed, lake)
        try:
            settings_ = java_settings(kafka, read=lambda path: Path(path).read_text())
            if not spark.connects:
                raise SparkFailed(f"{spark.connection} is not Spark Connect, over which alone large backlogs are read.")
        except (Untranslatable, SettingsError) as error:
            raise SparkFailed(str(error)) from error
        return spark.run("extract", plan, kafka=settings_, storage=lake.storage)

    return Cluster(run, settings.spark_from if wanted is None else wanted)
