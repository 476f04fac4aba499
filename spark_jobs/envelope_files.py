"""What one Spark task does in an extract: the records of its offsets become archive files, put as the plan says.

It runs in Spark's Python workers, which have pyarrow and boto3 but none of our code: it is sent to them.
"""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headrace import layout
from headrace.archive_file import put
from headrace.filing import Filing, Limits
from headrace.lane import Lane
from headrace.placing import Placing, mirrored_batch
from headrace.storage import Storage

FILES = "key string, records bigint, size bigint, footer binary"
"""The columns in which a task describes the files that it has put."""
PUT_AHEAD_BYTES = 64 * 2**20

# Kafka's own numbers for what a timestamp means.
TIMESTAMP_TYPES = pa.array(["none", "create", "append"], pa.large_string())


@dataclass(frozen=True)
class FilesTask:
    """Everything that a task must know, whatever machine it runs on."""

    feed: str
    location: str
    """The archive's prefix."""
    schema: pa.Schema
    placing: Placing
    limits: Limits
    storage: Storage

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Put the files of the batches, and tell of them. A task that is run twice puts files of other names."""
        client, name = self.storage.client(), layout.plan(self.feed, nonce=uuid.uuid4().hex)
        with Lane(ahead=PUT_AHEAD_BYTES, threads=2) as puts:

            def put_beside(key: str, body: bytes) -> None:
                puts.call(put, client, f"{self.location}/{key}", body, bytes_=len(body))

            filing = Filing(self.schema, plan=name, limits=self.limits, placing=self.placing, put=put_beside)
            for batch in batches:
                filing.add(envelopes(batch, topic=self.placing.topic))
            files = filing.close()
        yield pa.RecordBatch.from_pydict(
            {
                "key": pa.array([file.key for file in files], pa.string()),
                "records": pa.array([file.records for file in files], pa.int64()),
                "size": pa.array([file.size for file in files], pa.int64()),
                "footer": pa.array([file.footer for file in files], pa.binary()),
            }
        )


def envelopes(batch: pa.RecordBatch, *, topic: str) -> pa.RecordBatch:
    """Rows of Spark's Kafka source, all of one topic, as an envelope batch; it knows no leader epoch."""
    kinds = pc.add(batch["timestampType"], 1)
    milliseconds = pc.if_else(pc.equal(kinds, 0), pa.scalar(None, pa.int64()), pc.divide(batch["micros"], 1000))
    columns = {
        "partition": batch["partition"],
        "offset": batch["offset"],
        "timestamp": milliseconds,
        "timestamp_type": TIMESTAMP_TYPES.take(kinds),
        "key": batch["key"],
        "value": batch["value"],
        "headers": batch["headers"],
    }
    made = pa.RecordBatch.from_pydict(columns)
    return made if batch["topic"][0].as_py() == topic else mirrored_batch(made)
