"""Spark as a test's extract asks it: over the stack's Connect server, for every plan."""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workshop import Workshop

from headrace.storage import Storage

if TYPE_CHECKING:
    from headrace.stages.cluster import Cluster


def asked_of(shop: Workshop) -> dict[str, Any]:
    """Where Spark is and what it must know of the catalog and the broker."""
    from headrace.airflow import connections
    from headrace.kafka.java import java_settings
    from headrace.lake import spark_properties

    return {
        "remote": connections.spark_remote(),
        "properties": spark_properties(shop.lake),
        "kafka": java_settings(shop.kafka, read=lambda path: Path(path).read_text()),
    }


def cluster_of(shop: Workshop) -> "Cluster":
    """Spark for plans of any size."""
    from headrace.stages.cluster import Cluster
    from spark_jobs import extract as job

    return Cluster(lambda plan: job.run(plan, storage=shop.lake.storage, **asked_of(shop)), 0)


@dataclass(frozen=True)
class DeadlyStorage(Storage):
    """An S3 that kills whoever puts a file into it."""

    event: str = "before-call"
    """Of boto3's: before-call, or after-call with the file in its place."""

    def client(self) -> Any:
        client = super().client()
        client.meta.events.register(f"{self.event}.s3.PutObject", lambda **_: os.kill(os.getpid(), signal.SIGKILL))
        return client


def deadly_cluster_of(shop: Workshop, event: str) -> "Cluster":
    """Spark whose workers do not survive their first put."""
    from pyspark import cloudpickle

    from headrace.stages.cluster import Cluster
    from spark_jobs import extract as job

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    storage = DeadlyStorage(**vars(shop.lake.storage), event=event)
    return Cluster(lambda plan: job.run(plan, storage=storage, **asked_of(shop)), 0)
