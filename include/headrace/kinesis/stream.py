"""A stream as AWS tells of it: its identity, its shards and how they came of each other, and for how long it keeps."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from headrace.errors import TopicMissing, TopicSilent
from headrace.kinesis.calls import ask

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Shard:
    """A shard; a split or a merge closes it, and what comes then goes to its children."""

    number: int
    id: str
    parents: tuple[int, ...] = ()
    closed: bool = False


@dataclass(frozen=True)
class Stream:
    """A stream at one moment."""

    name: str
    id: str
    """Its ARN and when it was made: one that is made again under the same name is another one."""
    at: int
    """The moment, by the service's own clock, in milliseconds since 1970; what is told here is not older."""
    retention: int
    """For how many milliseconds it keeps a record."""
    shards: Mapping[int, Shard]


def describe(client: "KinesisClient", name: str) -> Stream:
    """Ask for a stream's identity and all of its shards, also closed ones that still have records."""
    answer = ask(client.describe_stream_summary, stream=name, StreamName=name)
    summary = answer["StreamDescriptionSummary"]
    match summary["StreamStatus"]:
        case "CREATING":
            raise TopicSilent(f"stream {name}: AWS is still making it. Try again in a minute.")
        case "DELETING":
            raise TopicMissing(f"stream {name}: AWS is deleting it. Remove the feed, or make the stream again.")
    return Stream(
        name=name,
        id=_identity(summary),
        at=moment(answer, name),
        retention=summary["RetentionPeriodHours"] * HOUR_MS,
        shards={shard.number: shard for shard in map(_shard, _listed(client, name))},
    )


def identity(client: "KinesisClient", name: str) -> str:
    """The id of the stream that has a name now."""
    answer = ask(client.describe_stream_summary, stream=name, StreamName=name)
    return _identity(answer["StreamDescriptionSummary"])


def _identity(summary: Mapping[str, Any]) -> str:
    return f"{summary['StreamARN']}@{summary['StreamCreationTimestamp'].timestamp():.3f}"


def number(shard_id: str) -> int:
    """The number in a shard's id: 7 of `shardId-000000000007`."""
    return int(shard_id.rpartition("-")[2])


def _listed(client: "KinesisClient", name: str) -> Iterator[Mapping[str, Any]]:
    asked: dict[str, Any] = {"StreamName": name}
    while asked:
        answer = ask(client.list_shards, stream=name, **asked)
        yield from answer["Shards"]
        asked = {"NextToken": answer["NextToken"]} if answer.get("NextToken") else {}


def _shard(told: Mapping[str, Any]) -> Shard:
    parents = (told.get("ParentShardId"), told.get("AdjacentParentShardId"))
    return Shard(
        number(told["ShardId"]),
        told["ShardId"],
        tuple(number(parent) for parent in parents if parent),
        closed="EndingSequenceNumber" in told["SequenceNumberRange"],
    )


def moment(answer: Mapping[str, Any], name: str) -> int:
    """When the service answered: our own clock may be wrong, and records carry its."""
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    if date is None:
        raise TopicSilent(f"stream {name}: the answer of its endpoint has no Date. Is it Kinesis that answers?")
    return int(parsedate_to_datetime(date).timestamp()) * 1000
