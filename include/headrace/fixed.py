"""What rows and archives were made by: changed, a clean table has to be made anew, or the archive goes nowhere."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from headrace.declaration import Declaration
from headrace.fault import Fault, show
from headrace.feed import Feed

Names = Mapping[str, str]
"""What fields were called before, by what they are called now, where that differs."""


def _partition(declared: Declaration, names: Names) -> Any:
    wanted = declared.partition
    return [*_before([wanted.field], names), wanted.by] if wanted else None


def _before(fields: Iterable[str], names: Names) -> list[str]:
    return [names.get(name, name) for name in fields]


Of = Callable[[Feed, Names], Any]
REBUILT: Mapping[str, tuple[Of, str]] = {
    "key": (lambda feed, names: _before(feed.declaration.key, names), "the clean table has one row per key"),
    "order": (
        lambda feed, names: _before(feed.declaration.order, names),
        "it has decided between the versions that are merged already",
    ),
    "merge": (lambda feed, _: feed.declaration.merge, "it has made the rows that are merged already"),
    "partition": (lambda feed, names: _partition(feed.declaration, names), "the clean table lies in these partitions"),
}
"""What the rows of a clean table were made by."""

FIXED: Mapping[str, tuple[Of, str]] = {
    "kinesis": (lambda feed, _: bool(feed.declaration.kinesis), "a topic's records and a stream's make no one archive"),
    "topic.name": (lambda feed, _: feed.topic, "the archive goes on from the old topic's offsets"),
}


def changes(feed: Feed, before: Feed, *, origin: str) -> Iterator[Fault]:
    """What a version changed and must not; `origin` says where the version before it is known from."""
    for path, message, now in _told(FIXED, feed, before, origin=origin):
        where = feed.source if path == "topic.name" else path
        yield Fault("", f"{feed.attribute}.{where}", message, way_out(feed), now)


def rebuilds(feed: Feed, before: Feed, *, origin: str) -> Iterator[Fault]:
    """What a version changed so that the clean table has to be made anew: warnings, for that is done in one command.

    But a patched row remembers ranks by its order, and is made anew by no other.
    """
    patches = feed.declaration.merge == before.declaration.merge == "patch"
    for path, message, now in _told(REBUILT, feed, before, origin=origin):
        if path == "order" and patches:
            yield Fault("", f"{feed.attribute}.{path}", message, way_out(feed), now)
            continue
        fix = f"Its runs stop until the table is made anew: headrace rebuild {feed.name}"
        yield Fault("", f"{feed.attribute}.{path}", message, fix, now, severity="warning")


def _told(
    rules: Mapping[str, tuple[Of, str]], feed: Feed, before: Feed, *, origin: str
) -> Iterator[tuple[str, str, Any]]:
    names = renamed(feed, before)
    for path, (of, why) in rules.items():
        if of(feed, names) != (then := of(before, {})):
            now = of(feed, {})
            yield path, f"was {show(then)} in {origin} and is {show(now)} now: {why}.", now


def renamed(feed: Feed, before: Feed) -> dict[str, str]:
    """What fields were called in the version before, where an alias tells that they only changed their names."""
    then, now = ({field.name for field in version.fields} for version in (before, feed))
    gone = then - now
    earlier = ((field.name, [alias for alias in field.aliases if alias in gone]) for field in feed.fields)
    return {name: found[0] for name, found in earlier if name not in then and found}


def way_out(feed: Feed) -> str:
    return f"Put it back, or write a new feed for the new records: headrace new --breaks {feed.name}"
