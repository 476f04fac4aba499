"""The archive's files: envelopes as Parquet under names of their own, committed with the heads in one snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, Message
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table

from headrace import heads, layout, record
from headrace.errors import MovedError
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.kafka.span import coordinates
from headrace.lake import Lake

ARROW = schema_to_pyarrow(record.SCHEMA)
TIMESTAMP_TYPES = {TIMESTAMP_CREATE_TIME: "create", TIMESTAMP_LOG_APPEND_TIME: "append"}


def archive_of(feed: Feed, lake: Lake) -> Table:
    """The feed's archive table, made at its first extract; with one more column once the feed drains a topic."""
    name = layout.archive_table(feed.name)
    table = lake.ensure(name, record.SCHEMA, spec=record.SPEC, properties=record.PROPERTIES)
    if feed.declaration.topic.drains and record.AFTER not in table.schema().column_names:
        try:
            with table.update_schema() as update:
                update.add_column(record.AFTER, record.AFTER_TYPE, doc=record.AFTER_DOC)
        except CommitFailedException as error:
            raise MovedError(f"archive of {feed.name}: another extract changed it meanwhile. Run it again.") from error
    return table


@dataclass
class Envelopes:
    """The messages of one partition and hour that wait to become one archive file."""

    partition: int
    """The archive's number for it: mirrored for a drained topic's."""
    hour: int | None
    first: int
    last: int = -1
    messages: list[Message] = field(default_factory=list)
    bytes: int = 0

    def add(self, message: Message) -> None:
        self.messages.append(message)
        self.last = coordinates(message)[1]
        self.bytes += 64 + len(message.value() or b"") + len(message.key() or b"")

    def table(self) -> pa.Table:
        return envelope_table(self.messages, partition=self.partition, hour=self.hour)


def stamp(message: Message) -> tuple[str, int | None]:
    """The type of a message's timestamp, and the timestamp in milliseconds if it has one."""
    kind, milliseconds = message.timestamp()
    return (TIMESTAMP_TYPES[kind], milliseconds) if kind in TIMESTAMP_TYPES else ("none", None)


def envelope_table(messages: list[Message], *, partition: int, hour: int | None) -> pa.Table:
    """The messages of one partition as columns, as they came."""
    stamps = [stamp(message) for message in messages]
    start = record.hour_start(hour) if hour is not None else None
    columns: dict[str, Any] = {
        "partition": [partition] * len(messages),
        "offset": [message.offset() for message in messages],
        "timestamp": [milliseconds for _, milliseconds in stamps],
        "timestamp_type": [kind for kind, _ in stamps],
        "leader_epoch": [message.leader_epoch() for message in messages],
        "key": [message.key() for message in messages],
        "value": [message.value() for message in messages],
        "headers": [[{"name": each[0], "value": each[1]} for each in message.headers() or ()] for message in messages],
        "hour": [start] * len(messages),
    }
    return pa.Table.from_pydict(columns, schema=ARROW)


@dataclass(frozen=True)
class Archive:
    """The archive's side of an extract: where files go and how they are committed."""

    lake: Lake
    table: Table
    topic: str
    drains: str | None = None
    """The drained topic, whose partitions have mirrored numbers here."""
    drained: Mapping[int, int] = field(default_factory=dict)
    """How far the drained topic is archived with this plan, by mirrored partition."""

    def write(self, envelopes: Envelopes, *, plan_name: str) -> DataFile:
        """Put one file under its own name, which must not be there yet, and describe it for the commit."""
        table = self._placed(envelopes)
        hour = record.hour_start(envelopes.hour) if envelopes.hour is not None else None
        topic, partition = self.origin(envelopes.partition)
        key = layout.archive_key(
            topic, partition, hour=hour, first=envelopes.first, last=envelopes.last, plan=plan_name
        )
        path = f"{self.lake.location.rstrip('/')}/archive/{key}"
        body, metadata = parquet(table)
        bucket, _, object_key = path.removeprefix("s3://").partition("/")
        self.lake.s3.put_object(Bucket=bucket, Key=object_key, Body=body, IfNoneMatch="*")
        return data_file(self.table, path, size=len(body), metadata=metadata)

    def _placed(self, envelopes: Envelopes) -> pa.Table:
        """The envelopes; where two topics meet, each tombstone of the own one with what it came after."""
        table = envelopes.table()
        if record.AFTER not in self.table.schema().column_names:
            return table
        heads = list(self.drained.items()) if envelopes.partition >= 0 and self.drained else None
        after = [heads if message.value() is None else None for message in envelopes.messages]
        column = schema_to_pyarrow(self.table.schema()).field(record.AFTER)
        return table.append_column(column, pa.array(after, column.type))

    def origin(self, partition: int) -> tuple[str, int]:
        """The topic and Kafka's own partition behind a number of the archive."""
        if partition >= 0:
            return self.topic, partition
        assert self.drains is not None, "only a drained topic's partitions are numbered below zero"
        return self.drains, heads.mirrored(partition)

    def commit(self, files: list[DataFile], *, head: Heads) -> None:
        """Add the files and the heads in one commit on top of the very snapshot that was planned from."""
        try:
            with self.table.transaction() as transaction:
                properties = {heads.PROPERTY: head.to_json()}
                with transaction.update_snapshot(snapshot_properties=properties).fast_append() as append:
                    for file in files:
                        append.append_data_file(file)
        except CommitFailedException as error:
            raise MovedError(
                f"archive of {self.topic}: another extract committed first, nothing of this one landed. Run it again."
            ) from error


def parquet(table: pa.Table) -> tuple[bytes, pq.FileMetaData]:
    """The table as one Parquet file, and its footer."""
    footers: list[pq.FileMetaData] = []
    sink = pa.BufferOutputStream()
    # Payloads hardly repeat: a dictionary of them would cost time and save nothing.
    with pq.ParquetWriter(
        sink, table.schema, compression="zstd", use_dictionary=["timestamp_type"], metadata_collector=footers
    ) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes(), footers[0]


def data_file(table: Table, path: str, *, size: int, metadata: pq.FileMetaData) -> DataFile:
    """What a manifest says about a file, from the footer at hand, so that nothing is read back."""
    schema, spec = table.schema(), table.spec()
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=metadata,
        stats_columns=compute_statistics_plan(schema, table.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=statistics.partition(spec, schema),
        file_size_in_bytes=size,
        sort_order_id=None,
        spec_id=spec.spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
