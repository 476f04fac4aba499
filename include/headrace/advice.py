"""Advice: what is allowed in a feed file and will be regretted; each rule is pure and tells warnings only."""

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

from headrace.fault import Fault, show
from headrace.feed import Feed
from headrace.field import Field

Rule = Callable[[Feed], Iterator[Fault]]

CLOCK = re.compile(
    r"(?:.*_)?(?:(?:updated?|modified|changed?|created?|event|last)_?(?:at|on|ts|time|date|timestamp)"
    r"|(?:last_?)?(?:updated|modified|changed)|ts|time|timestamp|datetime|epoch)(?:_?(?:s|ms|us|ns|millis|micros|nanos))?"
)
"""What fields that hold a clock's time are called, whatever their type."""

PERSONAL = re.compile(
    r"(?:.*_)?(?:e_?mail|phone|mobile|msisdn|iban|ssn|passport|birth_?da(?:te|y)|date_of_birth|dob|first_?name|last_?name"
    r"|full_?name|surname|ip_?address|credit_?card|card_?number)(?:_(?:address|number))?"
)
"""What fields that hold personal data are called."""

DRAFT = re.compile(r"https?://json-schema\.org/(draft-0[467]/|draft/(2019-09|2020-12)/)?schema#?")
NOTES = ("name", "type", "doc", "default", "order", "aliases", "pii")
"""What an Avro field may say; other attributes are allowed, and read by nobody here."""


def advice(feed: Feed) -> Iterator[Fault]:
    """Every warning about a feed, whatever else is wrong with it."""
    for rule in RULES:
        yield from rule(feed)


def _warning(feed: Feed, path: str, message: str, fix: str, *, value: Any = None) -> Fault:
    return Fault("", f"{feed.attribute}.{path}", message, fix, value, severity="warning")


def _named(feed: Feed, names: list[str]) -> Iterator[Field]:
    fields = {field.name: field for field in feed.fields}
    yield from (fields[name] for name in names if name in fields)


def owner(feed: Feed) -> Iterator[Fault]:
    if "owner" not in feed.declaration.model_fields_set:
        yield _warning(feed, "owner", "is missing: nobody is asked when it fails.", 'Add "owner": "your-team".')


def clocks(feed: Feed) -> Iterator[Fault]:
    for field in _named(feed, feed.declaration.order):
        if field.kind in ("date", "time", "timestamp") or CLOCK.fullmatch(field.name.lower()):
            message = f'names "{field.name}", a wall clock: clocks go back, and two changes in one tick are a tie.'
            fix = "Name a field that counts the versions of a row, such as a sequence or revision."
            yield _warning(feed, "order", message, fix, value=field.name)


def no_order(feed: Feed) -> Iterator[Fault]:
    declared = feed.declaration
    if declared.merge in ("latest", "first") and not declared.order and declared.topic.partitions > 1:
        message = "is missing: the offset decides between versions, and only within one partition of the topic."
        if declared.kinesis:
            message = "is missing: the place in the stream decides between versions, and only under one partition key."
        fix = 'Add "order" with a field that counts the versions of a row, or "merge": "append" if rows never change.'
        yield _warning(feed, "order", message, fix)


def keys(feed: Feed) -> Iterator[Fault]:
    for field in _named(feed, feed.declaration.key):
        if field.pii:
            message = f'names "{field.name}", which is personal: a key is in every table, as it is or hashed.'
            fix = "Use a key without meaning, if the records have one."
            yield _warning(feed, "key", message, fix, value=field.name)
        if field.nullable:
            message = f'names "{field.name}", which may be null: such a record goes to quarantine.'
            fix = "Make the field required." if feed.schema_type == "JSON" else "Take null out of its type."
            yield _warning(feed, "key", message, fix, value=field.name)


def partition(feed: Feed) -> Iterator[Fault]:
    wanted = feed.declaration.partition
    if wanted and not wanted.immutable and wanted.field not in feed.declaration.key:
        message = f'is "{wanted.field}", which may change: every merge looks for older versions in all partitions.'
        fix = 'If versions of one key never change it, say "immutable": true; else choose a field that stays.'
        yield _warning(feed, "partition.field", message, fix, value=wanted.field)


def personal(feed: Feed) -> Iterator[Fault]:
    """Fields that sound personal; `"pii": false` says that one is not."""
    for field in feed.fields:
        if not field.pii and PERSONAL.fullmatch(field.name.lower()) and "pii" not in feed.written(field):
            message = f'the field "{field.name}" sounds personal and every warehouse gets it.'
            fix = 'Add "pii" with the kind of personal data, or "pii": false if it is none.'
            yield Fault("", field.path, message, fix, field.name, severity="warning")


def open_model(feed: Feed) -> Iterator[Fault]:
    """A property that is new in an open schema may be in older records already, as anything."""
    closing = {"additionalProperties", "unevaluatedProperties"}
    if feed.schema_type == "JSON" and not any(feed.schema.get(word) is False for word in closing):
        message = "the schema takes properties that it does not list, so that no later version can add one."
        yield Fault("", "", message, 'Add "additionalProperties": false.', severity="warning")


def notes(feed: Feed) -> Iterator[Fault]:
    for field in feed.fields if feed.schema_type == "AVRO" else ():
        for note in feed.written(field):
            if note not in NOTES and (known := get_close_matches(note, NOTES, n=1, cutoff=0.75)):
                message = f'the field "{field.name}" has "{note}", which nobody reads.'
                yield Fault("", field.path, message, f'Did you mean "{known[0]}"?', note, severity="warning")


def draft(feed: Feed) -> Iterator[Fault]:
    named = feed.schema.get("$schema")
    if feed.schema_type == "JSON" and isinstance(named, str) and not DRAFT.fullmatch(named):
        message = f"is {show(named)}, which is none of the drafts 4, 6, 7, 2019-09 and 2020-12: it is read as draft 7."
        fix = 'Write "https://json-schema.org/draft/2020-12/schema", for example.'
        yield Fault("", "$schema", message, fix, named, severity="warning")


RULES: tuple[Rule, ...] = (draft, owner, keys, no_order, clocks, partition, personal, open_model, notes)
