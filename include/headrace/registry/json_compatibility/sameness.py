"""Whether two schemas demand the very same, word for word, references followed."""

from dataclasses import dataclass, field
from typing import Any

from headrace.registry.json_compatibility.node import Node

Pair = tuple[Node, Node]


@dataclass
class Sameness:
    """Answers, and what has been found out so far."""

    _same: set[Pair] = field(default_factory=set)
    _different: set[Pair] = field(default_factory=set)

    def __call__(self, one: Node, other: Node) -> bool:
        asked_by: dict[Pair, Pair | None] = {(one, other): None}
        waiting = [(one, other)]
        while waiting:
            pair = waiting.pop()
            if pair[0] is pair[1] or pair in self._same:
                continue
            children = None if pair in self._different else _children(*pair)
            if children is None:
                self._tell_apart(pair, asked_by)
                return False
            for child in children:
                if child not in asked_by:
                    asked_by[child] = pair
                    waiting.append(child)
        # All hang together, so all of them are the same.
        self._same |= asked_by.keys()
        return True

    def _tell_apart(self, pair: Pair | None, asked_by: dict[Pair, Pair | None]) -> None:
        """Where two differ, so do all that they are parts of."""
        while pair is not None:
            self._different.add(pair)
            pair = asked_by[pair]


def _children(one: Node, other: Node) -> list[Pair] | None:
    """The schemas that must be the same for these two to be; none where they differ themselves."""
    if one.keywords.keys() != other.keywords.keys():
        return None
    found: list[Pair] = []
    for word, value in one.keywords.items():
        pairs = _pairs(value, other.keywords[word])
        if pairs is None:
            return None
        found += pairs
    return found


def _pairs(one: Any, other: Any) -> list[Pair] | None:
    match one, other:
        case Node(), Node():
            return [(one, other)]
        case (tuple(), tuple()) if all(isinstance(each, Node) for each in (*one, *other)):
            return [*zip(one, other, strict=True)] if len(one) == len(other) else None
        case (dict(), dict()) if all(isinstance(each, Node) for each in (*one.values(), *other.values())):
            return [(one[name], other[name]) for name in one] if one.keys() == other.keys() else None
    return [] if one == other else None
