"""Lint: everything that is wrong, or will be regretted, in feed files: alone, beside each other, and as changes."""

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from headrace import advice, change, feed, position
from headrace.change import Earlier
from headrace.declaration import Check, Input
from headrace.expectations import Expectation, expectations, named_columns
from headrace.fault import Fault, nearest
from headrace.feed import Feed, Read
from headrace.fixed import way_out
from headrace.registry.compatibility import Level
from headrace.registry.schema import InvalidSchema
from headrace.schema_faults import parsed, schema_faults

SHAPE = {"type", "fields", "properties"}
"""Where a schema that holds no fields is told to be wrong: there is nothing more to say about it."""


def lint(paths: Sequence[Path], *, warehouses: Collection[str] | None = None) -> list[Fault]:
    """Every fault of these files, each by itself and beside the others of its folder.

    `warehouses` are those that are declared, where that is known.
    """
    faults = [fault for path in paths for fault in placed(path, check(feed.read_file(path)))]
    if warehouses is not None:
        for path in paths:
            faults += placed(path, undeclared(feed.read_file(path), warehouses))
    for folder in sorted({path.parent for path in paths}):
        together = feed.files(folder)
        for path, fault in (*clashes(together), *input_faults(together)):
            faults += placed(path, [fault]) if path in paths else []
    return faults


def placed(path: Path, faults: Iterable[Fault]) -> list[Fault]:
    """Faults with the file as the caller calls it, and the line that each is about."""
    found = list(faults)
    readable = path.is_file() and os.access(path, os.R_OK)
    text = path.read_text(encoding="utf-8", errors="replace") if found and readable else ""
    lines = position.lines(text)
    return [replace(each, file=str(path), line=each.line or position.nearest(lines, each.path)) for each in found]


def check(read: Read) -> list[Fault]:
    """Every fault of one file: what its reader found, its schema, its columns, its checks, and advice."""
    if read.feed is None:
        return list(read.faults)
    told = {fault.path for fault in read.faults}
    more = [] if told & SHAPE else schema_faults(read.feed)
    more += [*_expectation_faults(read.feed), *advice.advice(read.feed)]
    # What is wrong already needs no second opinion.
    return [*read.faults, *(fault for fault in more if not _is_told(fault.path, told))]


def _is_told(path: str, told: Collection[str]) -> bool:
    """Whether a place, or what it stands in, is told to be wrong already."""
    return any(path == each or path.startswith(f"{each}.") for each in told if each)


def _expectation_faults(feed: Feed) -> Iterator[Fault]:
    """What Great Expectations would refuse when the check runs."""
    fields = [field.name for field in feed.fields]
    for number, check in enumerate(feed.declaration.checks):
        if check.expect and (known := expectations()):
            for fault in _arguments_faults(check, known.get(check.expect), fields):
                yield replace(fault, path=f"{feed.attribute}.checks.{number}.{fault.path}")


def _arguments_faults(check: Check, found: Expectation | None, fields: Sequence[str]) -> Iterator[Fault]:
    name, given = check.expect or "", {**({"column": check.column} if check.column else {}), **check.arguments}
    if found is None:
        message = f'is "{name}", which is not an expectation of Great Expectations.'
        yield Fault("", "expect", message, nearest(name, list(expectations())), value=name)
        return
    if not found.runs:
        yield Fault("", "expect", f'is "{name}", which Great Expectations cannot test on Spark.', value=name)
    for argument in given:
        if argument not in found.arguments:
            path = f"arguments.{argument}" if argument in check.arguments else argument
            fix = nearest(argument, found.arguments)
            yield Fault("", path, f"is not an argument of {name}.", fix, value=argument)
    for argument in found.needed:
        if argument not in given:
            yield Fault("", "arguments", f"lacks {argument}, which {name} needs.", value=argument)
    for argument, column in named_columns(check.arguments):
        if column not in fields:
            message = f'names "{column}", which is not a field.'
            yield Fault("", f"arguments.{argument}", message, nearest(column, fields), value=column)


def undeclared(read: Read, warehouses: Collection[str]) -> Iterator[Fault]:
    """Warehouses that a feed names and no file declares."""
    for name in read.feed.declaration.warehouses if read.feed else ():
        if read.feed and name not in warehouses:
            fix = nearest(name, sorted(warehouses)) or f"Declare it in {name}.json, in the folder of warehouses."
            path = f"{read.feed.attribute}.warehouses.{name}"
            yield Fault("", path, "is no warehouse that is declared.", fix, value=name)


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
                where = f"{each.attribute}.{each.source}"
                yield path, Fault("", where, message, "Give each feed a topic of its own.", value=each.topic)


def input_faults(paths: Iterable[Path]) -> Iterator[tuple[Path, Fault]]:
    """What jobs say of the feeds that they read, of those whose files lie together."""
    known = {path: feed.read_file(path).feed for path in paths}
    feeds = {path.stem: found for path, found in known.items()}
    for path, found in known.items():
        if found and (job := found.declaration.job):
            for name, declared in job.inputs.items():
                for fault in _input_faults(name, declared, job_of=found.name, feeds=feeds):
                    yield path, replace(fault, path=f"{found.attribute}.job.inputs.{name}{fault.path}")


def _input_faults(name: str, declared: Input, *, job_of: str, feeds: Mapping[str, Feed | None]) -> Iterator[Fault]:
    others = sorted(set(feeds) - {job_of})
    if name == job_of:
        message = "is the feed that the job makes: each of its runs would start the next one."
        yield Fault("", "", message, nearest(name, others), value=name)
    elif name not in feeds:
        message = "is no feed of this folder, and the job waits until there is one."
        yield Fault("", "", message, nearest(name, others), value=name, severity="warning")
    elif read := feeds[name]:
        fields = [field.name for field in read.fields]
        for kept in declared.keep:
            if kept not in fields:
                message = f'names "{kept}", which is not a field of {name}.'
                yield Fault("", ".keep", message, nearest(kept, fields), value=kept)


def changes(read: Read, earlier: Earlier, *, refused: Sequence[Fault]) -> list[Fault]:
    """What a file may not do to an earlier version of itself, given why its schema may not follow that one's."""
    now = read.feed
    if now is None:
        return []
    if now.schema_type != earlier.feed.schema_type:
        message = f"is {now.schema_type} and was {earlier.feed.schema_type} in {earlier.origin}."
        return [Fault("", "", message, way_out(now))]
    broken = {fault.path for fault in read.faults}
    declared = [fault for fault in _declared(now, earlier) if fault.path not in broken]
    return [*declared, *(refused or change.column_faults(now, earlier))]


def _declared(now: Feed, earlier: Earlier) -> Iterator[Fault]:
    # A file of another name has tables of its own, and a schema that somebody else registered declares nothing.
    if now.name == earlier.feed.name and earlier.feed.attribute in earlier.feed.schema:
        yield from change.declared_faults(now, earlier)
        yield from change.warehouse_faults(now, earlier)


def refusals(now: Feed, earlier: Earlier, *, level: Level) -> list[Fault]:
    """Why a schema may not follow an earlier one, judged here; what is wrong with either alone is told elsewhere."""
    try:
        new, old = parsed(now), parsed(earlier.feed)
    except InvalidSchema:
        return []
    return change.schema_faults(now, new, old=old, origin=earlier.origin, level=level)
