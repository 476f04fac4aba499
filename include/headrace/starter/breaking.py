"""A breaking change as a starter: the same feed under a new name and topic, which drains the old topic first."""

import re

from headrace import layout
from headrace.errors import FeedError
from headrace.feed import Feed
from headrace.starter.draft import Guess, Starter, of_schema

VERSIONED = re.compile(r"(.+)_v([0-9]+)")


def next_name(name: str) -> str:
    """The name of the next version: orders, orders_v2, orders_v3."""
    versioned = VERSIONED.fullmatch(name)
    following = f"{versioned[1]}_v{int(versioned[2]) + 1}" if versioned else f"{name}_v2"
    if not layout.NAME.fullmatch(following):
        raise FeedError(f"{following} is too long for a feed's name. Give another: headrace new NAME --breaks {name}")
    return following


def starter(old: Feed, name: str) -> Starter:
    """The old feed's file with a topic of its own that drains the old one; the change itself is the author's."""
    if name == old.name:
        raise FeedError(f"{name}: a breaking change is a new feed with a new name, such as {next_name(name)}.")
    declared = dict(old.schema[old.attribute])
    shape = {attribute: value for attribute, value in declared.get("topic", {}).items() if attribute not in FRESH}
    unframed = {"unframed": declared.pop("unframed")} if "unframed" in declared else {}
    declared["topic"] = {**shape, "drains": {"topic": old.topic, "fields": {}, **unframed}}
    guesses = [
        Guess("topic.drains", f"{old.topic} is read to its end first; late records of it still count"),
        Guess("topic.drains.fields", 'for each field that you rename: "new name": "old name"'),
        Guess("order", _compared(old)),
        *_chained(old),
    ]
    return of_schema(name, old.schema, schema_type=old.schema_type, declaration=declared, guesses=guesses)


FRESH = ("name", "drains")
"""What the new topic does not take over from the old one."""


def _compared(old: Feed) -> str:
    if old.declaration.order:
        return "records of both topics are compared by it: the new producers must go on counting, not start again"
    return "none: where both topics tell of one key, the new one wins"


def _chained(old: Feed) -> list[Guess]:
    if old.declaration.topic.drains is None:
        return []
    older = old.declaration.topic.drains.topic
    return [Guess("topic.drains", f"{old.name} itself drains {older}, whose records are not in {old.topic}")]
