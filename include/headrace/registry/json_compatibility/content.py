"""Content models: what a schema says of the properties or items that it does not list one by one."""

from collections.abc import Container, Iterator
from dataclasses import dataclass

from headrace.registry.json_compatibility.node import REFERENCES, Node, in_place
from headrace.registry.json_compatibility.pattern import matches


@dataclass(frozen=True)
class Content:
    """The keywords by which objects, or arrays, say what they may hold."""

    additional: str
    unevaluated: str
    lists: frozenset[str]
    """Where properties or items are listed."""
    swallows: frozenset[str]
    """What may evaluate things that it does not list, so that nothing is left for `unevaluated…` to judge."""

    def rest(self, node: Node, *, known: Container[Node]) -> Node | None:
        """The schema of whatever nobody lists; none where it cannot be told, or all is welcome.

        Listings of the known nodes are looked at by whoever asks; those of others are not, so they leave a doubt.
        """
        if self.additional in node.keywords:
            return node.keywords[self.additional]  # type: ignore[no-any-return]
        rest: Node | None = node.keywords.get(self.unevaluated)
        if rest is None or (self.swallows - {self.unevaluated}) & node.keywords.keys():
            return None
        for each in beside(node):
            if self.swallows & each.keywords.keys() or (each not in known and self.lists & each.keywords.keys()):
                return None
        return rest

    def surely(self, node: Node) -> tuple[Node | None, tuple[Node, ...]]:
        """The schema of whatever nobody lists, and the nodes whose listings are to be looked at for that."""
        if self.additional in node.keywords:
            return node.keywords[self.additional], ()
        if self.unevaluated not in node.keywords:
            return None, ()
        around = tuple(beside(node))
        return self.rest(node, known=around), around


PROPERTIES = Content(
    "additionalProperties",
    "unevaluatedProperties",
    frozenset({"properties", "patternProperties"}),
    frozenset({"additionalProperties", "unevaluatedProperties", "unknownRef"}),
)
ITEMS = Content(
    "items",
    "unevaluatedItems",
    frozenset({"prefixItems"}),
    frozenset({"items", "unevaluatedItems", "contains", "unknownRef"}),
)


def of_property(node: Node, name: str) -> Iterator[Node]:
    """Every schema that a node surely lays on one property."""
    if name in node.keywords.get("properties", {}):
        yield node.keywords["properties"][name]
    yield from (each for pattern, each in node.keywords.get("patternProperties", {}).items() if matches(pattern, name))
    if not lists_property(node, name):
        rest, around = PROPERTIES.surely(node)
        if rest and not any(lists_property(each, name) for each in around):
            yield rest


def lists_property(node: Node, name: str) -> bool:
    """Whether a node lists a property, by name or by pattern."""
    return name in node.keywords.get("properties", {}) or any(
        matches(pattern, name) for pattern in node.keywords.get("patternProperties", {})
    )


def of_item(node: Node, index: int) -> Iterator[Node]:
    """Every schema that a node surely lays on one item."""
    prefix = node.keywords.get("prefixItems", ())
    if index < len(prefix):
        yield prefix[index]
    else:
        rest, around = ITEMS.surely(node)
        if rest and all(index >= len(each.keywords.get("prefixItems", ())) for each in around):
            yield rest


def beside(node: Node) -> Iterator[Node]:
    """Every schema that may have a say on the same value because of this one, this one left out."""
    seen, waiting = {node}, [*in_place(node)]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            yield each
            waiting += in_place(each)


def always_beside(node: Node) -> tuple[Node, ...]:
    """The schemas that surely have a say on the same value: a node, its references and all of its `allOf`."""
    found: dict[Node, None] = {}
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each] = None
            waiting += reversed(each.keywords.get("allOf", ()))
            waiting += [each.keywords[word] for word in REFERENCES if word in each.keywords]
    return tuple(found)
