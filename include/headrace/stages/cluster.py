"""Cluster: a large plan, read by Spark's Kafka source over exactly its offsets; the extract commits the files."""

import base64
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pydantic import BaseModel, ConfigDict
from pyiceberg.manifest import DataFile

from headrace.archive import Archive
from headrace.archive_file import ArchiveFile
from headrace.errors import SparkFailed
from headrace.feed import Feed
from headrace.filing import Limits
from headrace.kafka.plan import Plan
from headrace.placing import Placing

log = logging.getLogger(__name__)


class SparkPlan(BaseModel):
    """What Spark is asked to read and where its tasks put the files; no secrets."""

    model_config = ConfigDict(frozen=True)

    feed: str
    spans: dict[str, dict[int, tuple[int, int]]]
    """By topic and Kafka's own partition: the first offset, and the one after the last."""
    location: str
    """The archive's prefix."""
    schema_bytes: str
    """The archive's Arrow schema, serialised, in Base64."""
    topic: str
    drains: str | None
    drained: dict[int, int]
    file_records: int
    file_bytes: int

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.schema_bytes)))

    @property
    def placing(self) -> Placing:
        return Placing(self.topic, self.drains, self.drained)

    @property
    def limits(self) -> Limits:
        return Limits(self.file_records, self.file_bytes)


@dataclass(frozen=True)
class Cluster:
    """Spark, for plans of many records."""

    run: Callable[[str], str]
    """Takes a SparkPlan as JSON, gives the files that were put as JSON; raises SparkFailed."""
    records: int
    """From how many planned records on it is asked."""


def read(feed: Feed, archive: Archive, planned: Plan, *, limits: Limits, cluster: Cluster) -> list[DataFile] | None:
    """The files that Spark's tasks have put, or None when it failed: then the task reads by itself."""
    spans = {feed.topic: planned.spans, **({archive.drains: planned.drained} if archive.drains else {})}
    asked = SparkPlan(
        feed=feed.name,
        spans={
            name: {number: (span.first, span.next) for number, span in each.items()}
            for name, each in spans.items()
            if each
        },
        location=archive.location,
        schema_bytes=base64.b64encode(archive.schema.serialize().to_pybytes()).decode(),
        topic=feed.topic,
        drains=archive.drains,
        drained=dict(archive.drained),
        file_records=limits.file_records,
        file_bytes=limits.file_bytes,
    )
    try:
        put = json.loads(cluster.run(asked.model_dump_json()))
    except SparkFailed as failed:
        log.warning("feed %s: %s. Its %d new records are read in the task.", feed.name, failed, planned.records)
        return None
    files = (ArchiveFile(**{**each, "footer": base64.b64decode(each["footer"])}) for each in put)
    return [archive.described(file) for file in files]
