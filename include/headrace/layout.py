"""Every name that is derived from a feed: topics, subjects, tables, object keys, branches, connections, DAGs."""

import re
from datetime import datetime

NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
"""What a feed may be called: it becomes a DAG, three tables, a file and a column prefix everywhere unchanged."""

PLATFORM_DAGS = ("import", "rebuild", "reconcile", "replay", "upkeep", "watch")
"""What the platform's own DAGs are called, or will be: no feed can be."""

KAFKA_CONNECTION = "headrace_kafka"
KINESIS_CONNECTION = "headrace_kinesis"
S3_CONNECTION = "headrace_s3"
CATALOG_CONNECTION = "headrace_catalog"
REGISTRY_CONNECTION = "headrace_registry"
REGISTRY_STORE_CONNECTION = "headrace_registry_store"
SPARK_CONNECTION = "headrace_spark"
WAREHOUSES_CONNECTION = "headrace_warehouses"
"""The database in which teams get warehouses of their own on demand, a schema each."""
MASKS_CONNECTION = "headrace_masks"
SIGNING_CONNECTION = "headrace_signing"
ALERTS_CONNECTION = "headrace_alerts"
"""The webhook that is told of what the owners' own ones are not there for."""

RUN_BRANCH = "run_"
"""What the names of runs' branches begin with: upkeep drops those that are left."""

REBUILD_RUN = "rebuild_"
"""What the names of rebuilds begin with, which are no runs of their feed's DAG."""

CHECKS_PREFIX = "checks"
"""Where Airflow's API server serves the pages about check results."""

RECONCILE_PREFIX = "reconcile"
"""Where it serves those about reconciliations."""

RESULT = re.compile(r"[0-9]{13}-run_[a-z0-9_]+")
"""What a check's result is called."""

LAST_MILLISECOND = 9_999_999_999_999
"""Of the thirteen digits that moments are counted in; it comes in the year 2286."""

TOPIC, STREAM, ARCHIVE, CLEAN = "topic", "stream", "archive", "clean"
LAKE_STORES = (ARCHIVE, CLEAN)
STORES = (TOPIC, STREAM, *LAKE_STORES)
"""The stores of every feed: no warehouse is called so."""

Identifier = tuple[str, str]
"""An Iceberg table inside the catalog: namespace and name."""


def subject(topic: str) -> str:
    """The registry's subject of a topic's values, as Confluent's TopicNameStrategy names it."""
    return f"{topic}-value"


def archive_table(feed: str) -> Identifier:
    return ("archive", feed)


def clean_table(feed: str) -> Identifier:
    return ("clean", feed)


def quarantine_table(feed: str) -> Identifier:
    return ("quarantine", feed)


def reconciled_table(feed: str) -> Identifier:
    """Where it is kept how the feed's stores compared, run by run."""
    return ("reconciled", feed)


def forgotten_table(feed: str) -> Identifier:
    """The feed's hold list: which keys are forgotten."""
    return ("forgotten", feed)


def topic_turn(feed: str) -> Identifier:
    """What a run holds, as if it were a table, while it computes what goes to the feed's topic."""
    return ("topic", feed)


def lease(table: Identifier) -> str:
    """What the turn to work on a table is called."""
    return ".".join(table)


def approval_lease(feed: str) -> str:
    """What the turn to wait for an approval is called; a feed has one at most."""
    return f"approval.{feed}"


def table_location(lake: str, table: Identifier) -> str:
    return "/".join([lake.rstrip("/"), *table])


def archive_key(topic: str, partition: int, *, hour: datetime | None, first: int, last: int, plan: str) -> str:
    """Where an archive file lies below the archive's prefix; `hour` is None for implausible timestamps."""
    filed = hour.strftime("%Y-%m-%d/%H") if hour else "unknown/unknown"
    return f"{topic}/{partition}/{filed}/{first:020d}-{last:020d}-{plan}.parquet"


def imports_location(lake: str, feed: str) -> str:
    """Where a feed's imports of history keep what they have staged."""
    return "/".join([lake.rstrip("/"), "import", feed])


def import_location(lake: str, feed: str, import_id: str) -> str:
    """Where one of them does."""
    return f"{imports_location(lake, feed)}/{import_id}"


def stagings_location(lake: str, feed: str) -> str:
    """Where a feed's rows lie on S3 on their way to or from warehouses that read them there."""
    return "/".join([lake.rstrip("/"), "staging", feed])


def staging_location(lake: str, feed: str, warehouse: str) -> str:
    """Where they do for one of them."""
    return f"{stagings_location(lake, feed)}/{warehouse}"


def results_location(lake: str, feed: str) -> str:
    """Where a feed's check results lie, one object each."""
    return "/".join([lake.rstrip("/"), "checks", feed])


def result_name(at: datetime, run: str) -> str:
    """What a check's result is called: of all of a feed's, S3 lists the newest first."""
    left = LAST_MILLISECOND - int(at.timestamp() * 1000)
    return f"{left:013d}-{branch(run)}"


def checks_page(base_url: str, feed: str, *, result: str = "") -> str:
    """The address of the page that shows a feed's check results, or one of them."""
    return "/".join(part.rstrip("/") for part in (base_url, CHECKS_PREFIX, feed, result) if part)


def reconcile_page(base_url: str, feed: str) -> str:
    """The address of the page that shows how a feed's stores compared."""
    return "/".join(part.rstrip("/") for part in (base_url, RECONCILE_PREFIX, feed) if part)


def plan(feed: str, *, nonce: str) -> str:
    """What an extract's plan is called; its files' names end in it, so that each tells whose archive may hold it."""
    return f"{feed}.{nonce[:12]}"


def branch(run: str) -> str:
    """The Iceberg branch on which a run's rows wait for their checks."""
    return RUN_BRANCH + re.sub(r"[^a-zA-Z0-9]+", "_", run).strip("_").lower()


def rebuild_run(id_: str) -> str:
    """What a rebuild is called where the runs of a feed have their names."""
    return f"{REBUILD_RUN}{id_}"


def feed_variable(feed: str) -> str:
    """The Airflow Variable that tells what the registry knows of a feed."""
    return f"feed_{feed}"


def asset(store: str, feed: str) -> tuple[str, str]:
    """The name and the URI of a table as an Airflow asset; `store` is `clean` or a warehouse.

    Airflow leaves a scheme that begins with x- as it is; for any other it looks through every provider first.
    """
    return f"{store}.{feed}", f"x-headrace://{store}/{feed}"


def is_warehouse(name: str) -> bool:
    """Whether a warehouse may be called so."""
    return bool(NAME.fullmatch(name)) and name not in STORES


def warehouse_connection(warehouse: str) -> str:
    return f"headrace_warehouse_{warehouse}"


def alerts_connection(owner: str) -> str:
    """The webhook of the team that answers for a feed."""
    return f"{ALERTS_CONNECTION}_{re.sub(r'[^a-z0-9]+', '_', owner.lower()).strip('_')}"


def reader_role(warehouse: str) -> str:
    """The role that a team's analysts read with."""
    return f"{warehouse}_reader"


def job_module(job: str) -> str:
    """A Spark job's module; jobs are launched by name, as spark-submit does, so nothing below imports pyspark."""
    return f"spark_jobs.{job}"
