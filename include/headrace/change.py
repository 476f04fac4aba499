"""A change: what a feed file may not do to the records, tables and readers of the version before it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyiceberg.exceptions import ResolveError
from pyiceberg.schema import promote

from headrace import fixed
from headrace.columns import columns
from headrace.errors import FeedError
from headrace.fault import Fault, show
from headrace.feed import Feed
from headrace.fixed import way_out
from headrace.registry.compatibility import Level
from headrace.registry.schema import Incompatibility, Parsed
from headrace.share import share
from headrace.warehouses import postgres_table
from headrace.warehouses.changes import Standing
from headrace.warehouses.postgres_types import column_type

REASON = re.compile(
    r"""\{errorType:["'](?P<type>\w+)["'], description:["'](?P<description>.*?)["']"""
    r"""(?:, additionalInfo:'(?P<info>.*)')?\}""",
    re.DOTALL,
)
"""How Confluent's registry writes a reason, and so every one that speaks its language; quotes differ by language."""
PLACE = re.compile(r"path '(?P<path>[^']*)'")
FIXES: Mapping[str, str] = {
    "READER_FIELD_MISSING_DEFAULT_VALUE": "Give the field a default.",
    "MISSING_ENUM_SYMBOLS": "Keep the symbols, or give the enum a default.",
}


@dataclass(frozen=True)
class Earlier:
    """A feed as it was, and where that is known from."""

    origin: str
    """Such as `main` or `the registry`."""
    feed: Feed


def declared_faults(feed: Feed, earlier: Earlier) -> Iterator[Fault]:
    """What changed in the declaration and must not, or has effects that are easily missed."""
    before = earlier.feed
    yield from fixed.changes(feed, before, origin=earlier.origin)
    yield from fixed.rebuilds(feed, before, origin=earlier.origin)
    if feed.declaration.delete != before.declaration.delete:
        message = f"is not what it was in {earlier.origin}: rows that are merged already stay as they are."
        fix = f"To have them follow: headrace rebuild {feed.name}"
        yield Fault("", f"{feed.attribute}.delete", message, fix, severity="warning")
    yield from _unframed_faults(feed, earlier)
    yield from _default_faults(feed, earlier)
    yield from _drained_faults(feed, earlier)
    for field in feed.fields:
        if field.name in before.personal and not field.pii:
            message = f'the field "{field.name}" was personal in {earlier.origin}: now every warehouse gets it.'
            fix = "Put its pii back, unless that is meant."
            yield Fault("", field.path, message, fix, field.name, severity="warning")


def _unframed_faults(feed: Feed, earlier: Earlier) -> Iterator[Fault]:
    """Bytes do not say which version wrote them: another number is another reading of all that is archived."""
    now, then = feed.declaration.unframed, earlier.feed.declaration.unframed
    if then is not None and now != then and feed.schema_type == "AVRO":
        message = f"was {then} in {earlier.origin}: records that are archived already would be read by another version."
        yield Fault("", f"{feed.attribute}.unframed", message, way_out(feed), now)


def _default_faults(feed: Feed, earlier: Earlier) -> Iterator[Fault]:
    """Other defaults: a record written without the field would be read otherwise than it was merged."""
    if feed.schema_type != "AVRO":
        return
    before = {field.name: earlier.feed.written(field) for field in earlier.feed.fields}
    for field in feed.fields:
        now, then = feed.written(field).get("default", ...), before.get(field.name, {}).get("default", ...)
        if ... not in (now, then) and now != then:
            message = (
                f'the field "{field.name}" had the default {show(then)} in {earlier.origin}: rows that have it stay.'
            )
            fix = "Records written without the field get the new one only from now on, or by a rebuild."
            yield Fault("", field.path, message, fix, now, severity="warning")


def _drained_faults(feed: Feed, earlier: Earlier) -> Iterator[Fault]:
    """What was drained is in the archive for good; what was not should have been from the start."""
    now, then = (each.declaration.topic.drains for each in (feed, earlier.feed))
    path = f"{feed.attribute}.topic.drains"
    if then and (now is None or now.topic != then.topic):
        message = f'named the topic "{then.topic}" in {earlier.origin}: the archive\'s older records are decoded by it.'
        yield Fault("", path, message, "Put it back.", then.topic)
    elif now and not then:
        message = (
            f"is not in {earlier.origin}: tombstones that are archived already delete nothing of the drained topic."
        )
        yield Fault(
            "", path, message, "Fine in a feed that has had none; else drain in a new feed.", severity="warning"
        )


def warehouse_faults(feed: Feed, earlier: Earlier) -> Iterator[Fault]:
    """Columns whose values would be lost in their new type: a load refuses that."""
    declared, before = feed.declaration.warehouses, earlier.feed.declaration.warehouses
    try:
        shares = {name: (share(earlier.feed, name), share(feed, name)) for name in declared if name in before}
    except FeedError:
        # The field that can be no column is told as such; there is nothing to compare.
        return
    for name, (old, new) in shares.items():
        then = {each: column_type(type_) for each, type_ in old.types.items()}
        for column, was, is_ in postgres_table.changes(Standing(then, old.key, old.masks), new).lossy:
            message = f'has "{column}" as {was} since {earlier.origin}, and it is {is_} now: a load refuses that.'
            fix = f"To make the table anew, in the new type: headrace load {feed.name} {name} --anew"
            yield Fault("", f"{feed.attribute}.warehouses.{name}", message, fix, column, severity="warning")


def schema_faults(feed: Feed, new: Parsed, *, old: Parsed, origin: str, level: Level) -> list[Fault]:
    """Why records of one version cannot be read with the other, in the directions that the level asks for."""
    backward = new.incompatibilities(old) if level.reads_old else ()
    forward = old.incompatibilities(new) if level.is_read_by_old else ()
    told = [(reason, reason.told(reader="new", writer="old")) for reason in backward]
    told += [(reason, reason.told(reader="old", writer="new")) for reason in forward]
    return [_incompatible(feed, reason, text=text, origin=origin) for reason, text in told]


def answered_faults(feed: Feed, messages: list[str], *, origin: str) -> list[Fault]:
    """A registry's refusal as faults; what it tells of its own settings and of the old schema is left out."""
    faults = []
    for text in messages:
        if found := REASON.search(text):
            place = PLACE.search(found["description"])
            reason = Incompatibility(found["type"], place["path"] if place else "", text)
            faults.append(_incompatible(feed, reason, text=text, origin=origin))
        elif not text.startswith("{"):
            faults.append(Fault("", "", f"does not fit what is in {origin}: {text}.", way_out(feed)))
    return faults


def _incompatible(feed: Feed, reason: Incompatibility, *, text: str, origin: str) -> Fault:
    message = f"does not fit {origin}: {_description(text)}."
    return Fault("", dotted(reason.path), message, FIXES.get(reason.type, "") or way_out(feed), reason.type)


def _description(text: str) -> str:
    """A reason's text without what stands elsewhere in a fault."""
    found = REASON.search(text)
    if not found:
        return text.rstrip(".")
    info = found["info"] or ""
    return found["description"].rstrip(".") + (f" ({info})" if info not in found["description"] else "")


def dotted(path: str) -> str:
    """A JSON pointer as faults write it."""
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in path.removeprefix("#").split("/") if part)


def column_faults(feed: Feed, earlier: Earlier) -> Iterator[Fault]:
    """Types that a record's reader may change and a table may not."""
    paths = {field.name: field.path for field in feed.fields}
    try:
        before, now = ({each.name: each.type for each in columns(version)} for version in (earlier.feed, feed))
    except FeedError:
        # The field that can be no column is told as such; there is nothing to compare.
        return
    for name in before.keys() & now.keys():
        try:
            if before[name] != now[name]:
                promote(before[name], now[name])
        except ResolveError:
            message = f'the field "{name}" was {before[name]} in {earlier.origin} and is {now[name]} now'
            yield Fault("", paths[name], f"{message}: no table can change that.", way_out(feed), str(now[name]))
