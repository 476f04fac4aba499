"""The extract job: Spark's Kafka source reads exactly the planned spans, and its tasks put the archive's files.

Nothing is committed here. Iceberg's writer in Spark refreshes the table before it commits, so that it would not require
the snapshot that was planned from, and it names its own files: the tasks put them in the archive's layout, and the
caller commits what the successful ones tell of.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from headrace import archive_file, filing, heads, hours, lane, layout, placing, storage
from headrace.stages.cluster import SparkPlan
from headrace.storage import Storage
from spark_jobs import envelope_files
from spark_jobs.envelope_files import FILES, FilesTask
from spark_jobs.failure import translated
from spark_jobs.session import session

# Spark's workers have none of our code: what they run of it is sent to them.
for module in (archive_file, envelope_files, filing, heads, hours, lane, layout, placing, storage):
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]

FETCHING = {
    "kafka.max.poll.records": "10000",
    "kafka.fetch.max.bytes": str(32 * 2**20),
    "kafka.max.partition.fetch.bytes": str(8 * 2**20),
    "kafka.fetch.min.bytes": "1",
    "kafka.fetch.max.wait.ms": "20",
    "kafka.receive.buffer.bytes": str(2**20),
}

# Values may be large: a batch for the Python workers is bounded by its bytes too.
BATCHES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 * 2**20),
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
}

# A Connect server shows each request as text, in its UI and its event log, but for what its session wants hidden.
HIDING = {
    "spark.sql.redaction.string.regex": r'kafka\.(?:sasl|ssl)\.[\w.]+"\s+value: "[^"\\]*+(?:\\.[^"\\]*+)*+"',
}


def run(
    plan: str,
    *,
    remote: str | None,
    properties: Mapping[str, str],
    kafka: Mapping[str, str],
    storage: Storage,
) -> str:
    """The job's shell: a plan in, the files out, both as JSON; what reaches Kafka and S3 is given beside them."""
    planned = SparkPlan.model_validate_json(plan)
    with (
        translated(f"on extracting {planned.feed}"),
        session(remote, properties={**properties, **BATCHES, **HIDING}) as spark,
    ):
        found = files(records(spark, planned, kafka=kafka), planned, storage=storage)
    return json.dumps([{**row, "footer": base64.b64encode(row["footer"]).decode()} for row in found.to_pylist()])


def records(spark: SparkSession, plan: SparkPlan, *, kafka: Mapping[str, str]) -> DataFrame:
    """The records of the planned spans; each Spark partition holds one file's worth of one Kafka partition."""
    first = {topic: {number: span[0] for number, span in spans.items()} for topic, spans in plan.spans.items()}
    next_ = {topic: {number: span[1] for number, span in spans.items()} for topic, spans in plan.spans.items()}
    options = {
        **FETCHING,
        **{f"kafka.{name}": value for name, value in kafka.items()},
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({topic: list(spans) for topic, spans in plan.spans.items()}),
        "startingOffsets": json.dumps(first),
        "endingOffsets": json.dumps(next_),
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "maxRecordsPerPartition": str(plan.file_records),
        "groupIdPrefix": f"headrace.{plan.feed}",
    }
    source = spark.read.format("kafka").options(**options).load()
    return source.selectExpr(
        "topic",
        "partition",
        "offset",
        "unix_micros(timestamp) as micros",
        "timestampType",
        "key",
        "value",
        "coalesce(transform(headers, each -> named_struct('name', each.key, 'value', each.value)), array()) as headers",
    )


def files(source: DataFrame, plan: SparkPlan, *, storage: Storage) -> pa.Table:
    """Let the tasks put the files; what the successful ones tell of theirs."""
    task = FilesTask(plan.feed, plan.location, plan.arrow_schema, plan.placing, plan.limits, lent(storage))
    return source.mapInArrow(task.run, FILES).toArrow()


def lent(storage: Storage) -> Storage:
    """The storage for another machine: where a session renews credentials, those of now."""
    if storage.session is None:
        return storage
    keys = storage.session().get_credentials()
    assert keys is not None, "a session that is given has credentials"
    now = keys.get_frozen_credentials()
    return replace(storage, session=None, access_key=now.access_key, secret_key=now.secret_key, session_token=now.token)
