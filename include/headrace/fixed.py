"""What stays as it is for the life of a feed: changed, it would tell other rows apart or order them otherwise."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headrace.declaration import Declaration
from headrace.fault import Fault, show
from headrace.feed import Feed


def _partition(declared: Declaration) -> Any:
    return [declared.partition.field, declared.partition.by] if declared.partition else None


FIXED: Mapping[str, tuple[Callable[[Feed], Any], str]] = {
    "key": (lambda feed: feed.declaration.key, "the clean table has one row per key"),
    "order": (lambda feed: feed.declaration.order, "it has decided between the versions that are merged already"),
    "merge": (lambda feed: feed.declaration.merge, "it has made the rows that are merged already"),
    "partition": (lambda feed: _partition(feed.declaration), "the clean table lies in these partitions"),
    "kinesis": (lambda feed: bool(feed.declaration.kinesis), "a topic's records and a stream's make no one archive"),
    "topic.name": (lambda feed: feed.topic, "the archive goes on from the old topic's offsets"),
}


def changes(feed: Feed, before: Feed, *, origin: str) -> Iterator[Fault]:
    """What a version changed and must not; `origin` says where the version before it is known from."""
    for path, (of, why) in FIXED.items():
        if (now := of(feed)) != (then := of(before)):
            message = f"was {show(then)} in {origin} and is {show(now)} now: {why}."
            where = feed.source if path == "topic.name" else path
            yield Fault("", f"{feed.attribute}.{where}", message, way_out(feed), now)


def way_out(feed: Feed) -> str:
    return f"Put it back, or write a new feed for the new records: headrace new --breaks {feed.name}"
