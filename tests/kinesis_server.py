"""Moto's Kinesis as a process of its own, mended where moto 5.2 does not do what Kinesis does.

In moto a closed shard still takes records and never comes to its end, a split and a merge move or copy the parents'
records to the children, sequence numbers are 1, 2, 3, and a token for more shards needs the stream's name. Here, as in
AWS, shards are immutable once they are closed, their iterators end, and sequence numbers are long, rise over the whole
stream and differ in length.

    python tests/kinesis_server.py        # prints its URL; ends when its standard input does
"""

import itertools
import logging
import sys
from collections import OrderedDict
from datetime import datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.kinesis import models, responses, utils
from moto.server import ThreadedMotoServer

PAGE_RECORDS = 10_000
PAGE_BYTES = 10 * 1024 * 1024
FIRST = 10**55 - 5
"""A stream's first few numbers have one digit less, so that an order of texts would be wrong."""


def put_record(self: Any, partition_key: str, data: str, explicit_hash_key: str) -> str:
    number = next(self.numbers)
    self.records[number] = models.Record(partition_key, data, number, explicit_hash_key)
    return str(number)


def get_records(self: Any, last_sequence_id: str, limit: int | None) -> tuple[list[Any], int, int]:
    left = [record for number, record in self.records.items() if number > int(last_sequence_id)]
    page: list[Any] = []
    held = 0
    for record in left[: limit or PAGE_RECORDS]:
        held += len(record.data) * 3 // 4
        if page and held > PAGE_BYTES:
            break
        page.append(record)
    if len(page) == len(left):
        return page, page[-1].sequence_number if page else int(last_sequence_id), 0
    behind = int(1000 * (left[-1].created_at - page[-1].created_at))
    return page, page[-1].sequence_number, max(behind, 1)


def get_sequence_number_at(self: Any, at_timestamp: datetime | float) -> int:
    at = at_timestamp.timestamp() if isinstance(at_timestamp, datetime) else float(at_timestamp)
    return max((number for number, record in self.records.items() if record.created_at < at), default=0)


def get_shard_for_key(self: Any, partition_key: str, explicit_hash_key: str) -> Any:
    place = int(explicit_hash_key or int(models.md5_hash(partition_key.encode()).hexdigest(), 16))
    found = next(
        shard for shard in self.shards.values() if shard.is_open and shard.starting_hash <= place <= shard.ending_hash
    )
    found.numbers = self.__dict__.setdefault("numbers", itertools.count(FIRST))
    return found


def leaving_records(resharding: Any) -> Any:
    """A split or a merge that leaves the parents' records where they are."""

    def leave(self: Any, *parents_and_key: str) -> None:
        parents = [self.shards[each] for each in parents_and_key if each in self.shards]
        kept = [parent.records for parent in parents]
        for parent in parents:
            parent.records = OrderedDict()
        try:
            resharding(self, *parents_and_key)
        finally:
            for parent, records in zip(parents, kept, strict=True):
                parent.records = records

    return leave


def ending(reading: Any) -> Any:
    """Records without a next iterator once a closed shard is read to its end."""

    def end(self: Any, stream_arn: str | None, shard_iterator: str, limit: int | None) -> Any:
        following, records, behind = reading(self, stream_arn, shard_iterator, limit)
        stream, shard_id, _ = utils.decompose_shard_iterator(shard_iterator)
        is_open = self.describe_stream(stream_arn=stream_arn, stream_name=stream).get_shard(shard_id).is_open
        return (following if is_open or behind else None), records, behind

    return end


def list_shards(self: Any) -> ActionResult:
    """A page of shards; a token stands for the stream too, which must not be named beside it."""
    name, start = self._get_param("StreamName"), "0"
    if token := self._get_param("NextToken"):
        assert name is None, "AWS takes a stream's name or a token, not both"
        name, _, start = token.rpartition("/")
    shards = list(self.kinesis_backend.describe_stream(None, name).shards.values())
    end = int(start) + self._get_param("MaxResults", 1000)
    page = {"Shards": [shard.to_json() for shard in shards[int(start) : end]]}
    return ActionResult({**page, "NextToken": f"{name}/{end}"} if end < len(shards) else page)


def mend() -> None:
    models.Shard.put_record = put_record
    models.Shard.get_records = get_records
    models.Shard.get_sequence_number_at = get_sequence_number_at
    models.Stream.get_shard_for_key = get_shard_for_key
    models.Stream.split_shard = leaving_records(models.Stream.split_shard)
    models.Stream.merge_shards = leaving_records(models.Stream.merge_shards)
    responses.KinesisResponse.list_shards = list_shards
    models.KinesisBackend.get_records = ending(models.KinesisBackend.get_records)


if __name__ == "__main__":
    mend()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    print("http://{}:{}".format(*server.get_host_and_port()), flush=True)
    sys.stdin.read()
    server.stop()
