"""Every name that is derived from a feed: topics, subjects, tables, object keys, branches, connections, DAGs."""

import re
from datetime import datetime

NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
"""What a feed may be called: it becomes a DAG, three tables, a file and a column prefix everywhere unchanged."""

PLATFORM_DAGS = ("import", "replay", "upkeep", "watch")
"""What the platform's own DAGs are called, or will be: no feed can be."""

KAFKA_CONNECTION = "headrace_kafka"
KINESIS_CONNECTION = "headrace_kinesis"
S3_CONNECTION = "headrace_s3"
CATALOG_CONNECTION = "headrace_catalog"
REGISTRY_CONNECTION = "headrace_registry"
REGISTRY_STORE_CONNECTION = "headrace_registry_store"
SPARK_CONNECTION = "headrace_spark"
MASKS_CONNECTION = "headrace_masks"
SIGNING_CONNECTION = "headrace_signing"

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


def plan(feed: str, *, nonce: str) -> str:
    """What an extract's plan is called; its files' names end in it, so that each tells whose archive may hold it."""
    return f"{feed}.{nonce[:12]}"


def branch(run: str) -> str:
    """The Iceberg branch on which a run's rows wait for their checks."""
    return "run_" + re.sub(r"[^a-zA-Z0-9]+", "_", run).strip("_").lower()


def feed_variable(feed: str) -> str:
    """The Airflow Variable that tells what the registry knows of a feed."""
    return f"feed_{feed}"


def asset(store: str, feed: str) -> tuple[str, str]:
    """The name and the URI of a table as an Airflow asset; `store` is `clean` or a warehouse.

    Airflow leaves a scheme that begins with x- as it is; for any other it looks through every provider first.
    """
    return f"{store}.{feed}", f"x-headrace://{store}/{feed}"


def warehouse_connection(warehouse: str) -> str:
    return f"headrace_warehouse_{warehouse}"


def reader_role(warehouse: str) -> str:
    """The role that a team's analysts read with."""
    return f"{warehouse}_reader"


def job_module(job: str) -> str:
    """A Spark job's module; jobs are launched by name, as spark-submit does, so nothing below imports pyspark."""
    return f"spark_jobs.{job}"
