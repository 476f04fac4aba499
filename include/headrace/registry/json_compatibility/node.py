"""One schema of a document: what it demands, keyword by keyword, every draft's words brought to one form.

The form is that of 2020-12: tuples are `prefixItems` and `items`, exclusive bounds are numbers, `dependencies` are
`dependentRequired` and `dependentSchemas`. Keywords without effect are left out, so that a node without keywords
accepts everything; one that accepts nothing has the type of nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from headrace.registry.json_compatibility.value import Value

REFERENCES = ("$ref", "$dynamicRef")


@dataclass(frozen=True, eq=False)
class Node:
    """One schema of a document: what it demands, keyword by keyword."""

    keywords: dict[str, Any] = field(default_factory=dict)
    has_default: bool = False


def in_place(node: Node) -> Iterator[Node]:
    """The schemas inside a node that may have a say on the same value."""
    words = node.keywords
    yield from (words[word] for word in (*REFERENCES, "not", "if", "then", "else") if word in words)
    yield from (each for word in ("allOf", "anyOf", "oneOf") for each in words.get(word, ()))
    yield from words.get("dependentSchemas", {}).values()


ANYTHING = Node()
NOTHING = Node({"type": frozenset()})


@lru_cache(maxsize=4096)
def constant(value: Value) -> Node:
    """The schema of one value, the same node for the same value."""
    return Node({"const": value})


@lru_cache(maxsize=64)
def of_kinds(*kinds: str) -> Node:
    """The schema of some kinds of values, the same node for the same kinds."""
    return Node({"type": frozenset(kinds)})
