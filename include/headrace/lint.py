"""Lint: everything that is wrong, or will be regretted, in feed files: alone, beside each other, and as changes."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from headrace import advice, change, feed, position
from headrace.change import Earlier
from headrace.columns import columns
from headrace.errors import FeedError
from headrace.fault import Fault, nearest
from headrace.feed import Feed, Read
from headrace.registry.compatibility import Level
from headrace.registry.languages import LANGUAGES
from headrace.registry.schema import InvalidSchema, Parsed

PLACED = re.compile(r"#?(?P<path>/\S*?):? (?P<message>.*)", re.DOTALL)
"""How a schema's parser says where it stopped."""
SHAPE = {"type", "fields", "properties"}
"""Where a schema that holds no fields is told to be wrong: there is nothing more to say about it."""


def lint(paths: Sequence[Path]) -> list[Fault]:
    """Every fault of these files, each by itself and beside the others of its folder."""
    faults = [fault for path in paths for fault in placed(path, check(feed.read_file(path)))]
    for folder in sorted({path.parent for path in paths}):
        for path, fault in clashes(feed.files(folder)):
            faults += placed(path, [fault]) if path in paths else []
    return faults


def placed(path: Path, faults: Iterable[Fault]) -> list[Fault]:
    """Faults with the file as the caller calls it, and the line that each is about."""
    found = list(faults)
    text = path.read_text(encoding="utf-8", errors="replace") if found and path.is_file() else ""
    lines = position.lines(text)
    return [replace(each, file=str(path), line=each.line or position.nearest(lines, each.path)) for each in found]


def check(read: Read) -> list[Fault]:
    """Every fault of one file: what its reader found, its schema, its columns, its checks, and advice."""
    if read.feed is None:
        return list(read.faults)
    told = {fault.path for fault in read.faults}
    more = [] if told & SHAPE else _schema_faults(read.feed)
    more += [*_unknown_expectations(read.feed), *advice.advice(read.feed)]
    # What is wrong already needs no second opinion.
    return [*read.faults, *(fault for fault in more if fault.path not in told)]


def _schema_faults(feed: Feed) -> list[Fault]:
    """What the schema's own language refuses; else the fields that cannot be columns."""
    try:
        parsed(feed)
        columns(feed)
    except InvalidSchema as error:
        placed = PLACED.fullmatch(str(error))
        path, message = (placed["path"], placed["message"]) if placed else ("", str(error))
        return [Fault("", change.dotted(path), message)]
    except FeedError as error:
        return [_column_fault(fault, feed) for fault in error.faults]
    return []


def _column_fault(fault: Fault, feed: Feed) -> Fault:
    """A column's fault where the file has its field: columns go by names, and name what is inside them too."""
    inside = fault.path.rstrip(":")
    name = re.split(r"\W", inside)[0]
    found = [field.path for field in feed.fields if field.name == name]
    return replace(fault, path=found[0], message=f'the field "{inside}" {fault.message}') if found else fault


def parsed(feed: Feed) -> Parsed:
    """The feed's schema in its own language; raises when it is none."""
    return LANGUAGES[feed.schema_type].new(json.dumps(feed.schema), {})


def _unknown_expectations(feed: Feed) -> Iterator[Fault]:
    named = {number: check.expect for number, check in enumerate(feed.declaration.checks) if check.expect}
    known = expectations() if named else []
    for number, name in named.items():
        if name not in known:
            path = f"{feed.attribute}.checks.{number}.expect"
            match = nearest(name, known) if known else ""
            message = f'is "{name}", which is not an expectation of Great Expectations.'
            yield Fault("", path, message, match, value=name)


def expectations() -> list[str]:
    """The names of all expectations, told by their files: importing Great Expectations takes seconds."""
    spec = find_spec("great_expectations")
    roots = spec.submodule_search_locations if spec else None
    return sorted(path.stem for root in roots or () for path in Path(root).glob("expectations/core/expect_*.py"))


def clashes(paths: Iterable[Path]) -> Iterator[tuple[Path, Fault]]:
    """Files that get in each other's way: one name with two endings, or two feeds on one topic."""
    named, topics = defaultdict(list), defaultdict(list)
    for path in paths:
        named[path.stem].append(path)
        if read := feed.read_file(path).feed:
            # Kafka itself refuses a topic that differs from another only in these two.
            topics[read.topic.replace(".", "_")].append((path, read))
    for together in named.values():
        for path in together if len(together) > 1 else ():
            others = ", ".join(other.name for other in together if other != path)
            message = f"has the name of {others}, and a feed is named by its file."
            yield path, Fault("", "", message, "Rename one of them.", value=path.stem)
    for sharing in topics.values():
        for path, each in sharing:
            others = ", ".join(other.name for other, _ in sharing if other.stem != path.stem)
            if others:
                message = f'is "{each.topic}", which is also the topic of {others}.'
                where = f"{each.attribute}.topic.name"
                yield path, Fault("", where, message, "Give each feed a topic of its own.", value=each.topic)


def changes(read: Read, earlier: Earlier, *, refused: Sequence[Fault]) -> list[Fault]:
    """What a file may not do to an earlier version of itself, given why its schema may not follow that one's."""
    now = read.feed
    if now is None:
        return []
    if now.schema_type != earlier.feed.schema_type:
        message = f"is {now.schema_type} and was {earlier.feed.schema_type} in {earlier.origin}."
        return [Fault("", "", message, change.way_out(now))]
    broken = {fault.path for fault in read.faults}
    declared = [fault for fault in _declared(now, earlier) if fault.path not in broken]
    return [*declared, *(refused or change.column_faults(now, earlier))]


def _declared(now: Feed, earlier: Earlier) -> Iterator[Fault]:
    # A file of another name has tables of its own, and a schema that somebody else registered declares nothing.
    if now.name == earlier.feed.name and earlier.feed.attribute in earlier.feed.schema:
        yield from change.declared_faults(now, earlier)


def refusals(now: Feed, earlier: Earlier, *, level: Level) -> list[Fault]:
    """Why a schema may not follow an earlier one, judged here; what is wrong with either alone is told elsewhere."""
    try:
        new, old = parsed(now), parsed(earlier.feed)
    except InvalidSchema:
        return []
    return change.schema_faults(now, new, old=old, origin=earlier.origin, level=level)
