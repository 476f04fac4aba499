"""A workshop whose feed reads from a Kinesis stream, and what a network may answer in the stream's place."""

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from workshop import ORDER, ORDER_FIELDS, Record, Workshop, registered

from headrace import feed as feeds
from headrace import layout
from headrace.kinesis.calls import CONFIG

SERVER = Path(__file__).with_name("kinesis_server.py")


@contextmanager
def kinesis_server() -> Iterator[str]:
    """Moto's Kinesis, up while the block runs; its URL."""
    process = subprocess.Popen([sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(30)


def client_of(url: str) -> Any:
    """A client of its own, so that what a test does to its network concerns no other."""
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "eu-west-1"}
    return boto3.session.Session().client("kinesis", endpoint_url=url, config=CONFIG, **keys)


@dataclass(frozen=True)
class StreamShop(Workshop):
    """A feed of a test's own with a stream of its own."""

    kinesis: Any
    url: str

    @property
    def stream(self) -> str:
        return self.feed.topic

    def publish(self, *records: Record) -> None:
        """Put records one by one, which keeps their order; a record's `partition` is left to its key."""
        for record in records:
            self.put(self.encoded(record.value) or b"", key=(self._key(record) or b"none").decode())

    def put(self, data: bytes, *, key: str = "k") -> tuple[int, str]:
        """Put one record; the shard that took it, and its sequence number."""
        put = self.kinesis.put_record(StreamName=self.stream, PartitionKey=key, Data=data)
        return int(put["ShardId"][-12:]), put["SequenceNumber"]

    def put_many(self, count: int, *, key: str = "k") -> None:
        """Put small records in large calls."""
        for first in range(0, count, 500):
            numbers = range(first, min(first + 500, count))
            records = [{"Data": str(number).encode(), "PartitionKey": key} for number in numbers]
            assert self.kinesis.put_records(StreamName=self.stream, Records=records)["FailedRecordCount"] == 0

    def split(self, shard: int) -> None:
        """Split a shard in the middle."""
        found = next(each for each in self.shards() if each["ShardId"] == shard_id(shard))["HashKeyRange"]
        middle = (int(found["StartingHashKey"]) + int(found["EndingHashKey"])) // 2
        self.kinesis.split_shard(
            StreamName=self.stream, ShardToSplit=shard_id(shard), NewStartingHashKey=str(middle + 1)
        )

    def merge_shards(self, low: int, high: int) -> None:
        self.kinesis.merge_shards(
            StreamName=self.stream, ShardToMerge=shard_id(low), AdjacentShardToMerge=shard_id(high)
        )

    def shards(self) -> Any:
        return self.kinesis.list_shards(StreamName=self.stream)["Shards"]

    def extract(self, *, records: int = 1_000_000) -> Any:
        from headrace.filing import Limits
        from headrace.stages import stream

        return stream.extract(
            self.feed,
            lake=self.lake,
            kinesis=self.kinesis,
            limits=Limits(500_000, 128 * 1024 * 1024),
            records=records,
        )

    def archived(self) -> list[dict[str, Any]]:
        """The archive's rows by shard and offset."""
        table = self.lake.find(layout.archive_table(self.feed.name))
        rows = table.scan().to_arrow().to_pylist()
        return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def shard_id(number: int) -> str:
    return f"shardId-{number:012d}"


def stream_shop(
    url: str,
    declaration: Mapping[str, Any] = ORDER,
    *,
    fields: Sequence[Mapping[str, Any]] = ORDER_FIELDS,
    shards: int = 1,
    start: str = "TRIM_HORIZON",
) -> StreamShop:
    """A feed, registered, and its stream."""
    from headrace.airflow import connections
    from headrace.settings import Settings

    name, client, store = f"t_{uuid.uuid4().hex[:10]}", client_of(url), connections.registry()
    store.prepare()
    declared = {**declaration, "kinesis": {"start": start}}
    schema = {"type": "record", "name": "Row", "doc": "A row.", "fields": fields, "feed": declared}
    made = feeds.parse(f"{name}.avsc", json.dumps(schema))
    client.create_stream(StreamName=made.topic, ShardCount=shards)
    return StreamShop(made, registered(store, made), {}, connections.lake(Settings()), client, url)


class _Body:
    """What urllib3 would give: a body to be read once."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.body


def refusing(client: Any, operation: str, *codes: str | None, status: int = 400) -> list[str | None]:
    """Let the network answer the next calls of an operation with errors, but for None; gives those still to come."""
    left = list(codes)

    def answer(request: Any, **_: Any) -> AWSResponse | None:
        code = left.pop(0) if left else None
        if code is None:
            return None
        body = json.dumps({"__type": code, "message": "as the test wants"}).encode()
        return AWSResponse(request.url, status, {"content-type": "application/x-amz-json-1.1"}, _Body(body))

    client.meta.events.register(f"before-send.kinesis.{operation}", answer)
    return left


def counting(client: Any, operation: str) -> list[Mapping[str, Any]]:
    """The parameters of every call of an operation from now on."""
    seen: list[Mapping[str, Any]] = []
    client.meta.events.register(
        f"provide-client-params.kinesis.{operation}", lambda params, **_: seen.append(dict(params))
    )
    return seen


def later(client: Any, delay: Any, operation: str = "DescribeStreamSummary") -> Callable[[], None]:
    """Let the service's clock be ahead by a time in its answers; what is returned sets it right again."""

    def shift(parsed: dict[str, Any], **_: Any) -> None:
        headers = parsed["ResponseMetadata"]["HTTPHeaders"]
        headers["date"] = format_datetime(parsedate_to_datetime(headers["date"]) + delay, usegmt=True)

    event = f"after-call.kinesis.{operation}"
    client.meta.events.register(event, shift)
    return lambda: client.meta.events.unregister(event, shift)
