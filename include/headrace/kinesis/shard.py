"""A shard, read page by page: its records as envelopes, numbered in the order of their sequence numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from botocore.exceptions import ClientError

from headrace.errors import TopicError, TopicSilent
from headrace.kinesis.calls import ask
from headrace.kinesis.stream import Shard, moment

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

PAGE_RECORDS = 10_000
"""What one answer holds at most, besides 10 MB."""
RENEWALS = 3
"""How often an iterator is renewed for one page: it lives for 5 minutes, so once should do."""

ENVELOPE = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.int64()),
        pa.field("timestamp_type", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.large_binary()),
        pa.field("headers", pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))),
        pa.field("sequence", pa.string()),
    ]
)


def rank(sequence: str) -> int:
    """A sequence number's place in its shard: they are decimal texts of differing length, and order as numbers."""
    return int(sequence) if sequence else -1


@dataclass(frozen=True)
class Position:
    """Where a shard is to be read on."""

    shard: Shard
    offset: int = 0
    """How many records of the shard the archive holds, which is the next one's offset."""
    sequence: str = ""
    """The last of them."""
    since: int = 0
    """Where a shard of which nothing is archived begins: at that moment, or at its oldest record."""
    iterator: str = ""
    arrived: int = 0
    """When the last record that was read arrived."""
    caught_up: bool = False
    """Whether there was nothing more just now."""
    ended: bool = False
    """Whether there is nothing more for good: the shard is closed."""

    def is_done(self, at: int) -> bool:
        """Whether everything is read that had arrived at a moment; a shard that is closed has an end to be reached.

        Moments are whole seconds: what arrived within the second may have been there.
        """
        return self.ended or (not self.shard.closed and (self.caught_up or self.arrived >= at + 1000))


@dataclass(frozen=True)
class Page:
    """Records of one shard, and where it is to be read on."""

    batch: pa.RecordBatch
    position: Position
    at: int
    """When it was answered, by the service's own clock."""


def read(client: "KinesisClient", stream: str, *, position: Position) -> Page:
    """The next page of a shard; an iterator that has expired is renewed from the last record."""
    iterator = position.iterator
    for _ in range(RENEWALS):
        iterator = iterator or _iterator(client, stream, position=position)
        try:
            answer = ask(client.get_records, stream=stream, ShardIterator=iterator, Limit=PAGE_RECORDS)
        except ClientError:
            iterator = ""
        else:
            return _page(answer, position, stream=stream)
    raise TopicSilent(f"stream {stream}: iterators of shard {position.shard.number} expire before they are used.")


def _iterator(client: "KinesisClient", stream: str, *, position: Position) -> str:
    start: dict[str, Any] = {"ShardIteratorType": "TRIM_HORIZON"}
    if position.sequence:
        start = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": position.sequence}
    elif position.since:
        since = datetime.fromtimestamp(position.since / 1000, UTC)
        start = {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": since}
    found = ask(client.get_shard_iterator, stream=stream, StreamName=stream, ShardId=position.shard.id, **start)
    return str(found["ShardIterator"])


def _page(answer: Mapping[str, Any], position: Position, *, stream: str) -> Page:
    records = answer["Records"]
    _refuse_disorder(records, position, stream=stream)
    batch = envelopes(records, position)
    following = answer.get("NextShardIterator")
    after = replace(
        position,
        offset=position.offset + len(records),
        iterator=following or "",
        caught_up=answer.get("MillisBehindLatest") == 0,
        ended=following is None,
    )
    if records:
        after = replace(after, sequence=records[-1]["SequenceNumber"], arrived=batch["timestamp"][-1].as_py())
    return Page(batch, after, moment(answer, stream))


def envelopes(records: Sequence[Mapping[str, Any]], position: Position) -> pa.RecordBatch:
    """Records as the archive keeps them: the partition key is the key, the data is the value, both byte for byte."""
    count = len(records)
    columns: Mapping[str, Any] = {
        "partition": [position.shard.number] * count,
        "offset": range(position.offset, position.offset + count),
        "timestamp": [round(each["ApproximateArrivalTimestamp"].timestamp() * 1000) for each in records],
        "timestamp_type": ["append"] * count,
        "key": [each["PartitionKey"].encode() for each in records],
        "value": [each["Data"] for each in records],
        "headers": [()] * count,
        "sequence": [each["SequenceNumber"] for each in records],
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) for field in ENVELOPE], schema=ENVELOPE
    )


def _refuse_disorder(records: Sequence[Mapping[str, Any]], position: Position, *, stream: str) -> None:
    """Offsets count records in the order of their sequence numbers; a page that is not in order would break it."""
    last = rank(position.sequence)
    for each in records:
        if (number := rank(each["SequenceNumber"])) <= last:
            raise TopicError(
                f"stream {stream}: shard {position.shard.number} gave sequence number {number} after {last}: its "
                f"records are not in order. Nothing of this run was archived."
            )
        last = number
