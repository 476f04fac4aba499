"""What is known of every value that a writer may write: the schemas, all at once, that it fulfils."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from headrace.registry.json_compatibility import content
from headrace.registry.json_compatibility.node import NOTHING, REFERENCES, Node
from headrace.registry.json_compatibility.value import KINDS, NUMBERS, Value, frozen, kinds

Disjunction = tuple[Node, str]
DEPTH = 4
"""How deep a contradiction is looked for: a union's tag lies at hand, and the search must end in a recursion."""


@dataclass(frozen=True, eq=False)
class Facts:
    """Schemas that hold together, with references and `allOf` already unfolded; equal in whatever order."""

    nodes: tuple[Node, ...] = ()
    settled: frozenset[Disjunction] = frozenset()
    """The disjunctions among them of which one case has been added already."""

    @cached_property
    def _identity(self) -> tuple[frozenset[Node], frozenset[Disjunction]]:
        return frozenset(self.nodes), self.settled

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __bool__(self) -> bool:
        """Whether anything is known at all."""
        return bool(self.nodes)

    def and_(self, *nodes: Node, settled: Disjunction | None = None) -> "Facts":
        """These facts and some more, perhaps in place of a disjunction that they settle."""
        if settled is None:
            return Facts(_unfolded((*self.nodes, *nodes)), self.settled)
        node, word = settled
        if node.keywords.keys() == {word}:  # Nothing else is known by it.
            rest = (each for each in self.nodes if each is not node)
            return Facts(_unfolded((*rest, *nodes)), self.settled)
        return Facts(_unfolded((*self.nodes, *nodes)), self.settled | {settled})

    def each(self, keyword: str) -> Iterator[Any]:
        """What every node says under a keyword."""
        return (node.keywords[keyword] for node in self.nodes if keyword in node.keywords)

    def least(self, keyword: str) -> Decimal | None:
        """The tightest upper bound."""
        return min(self.each(keyword), default=None)

    def greatest(self, keyword: str) -> Decimal | None:
        """The tightest lower bound."""
        return max(self.each(keyword), default=None)

    @cached_property
    def _declared_kinds(self) -> frozenset[str]:
        found = KINDS
        for types in self.each("type"):
            found &= types
        for denied in self.each("not"):
            if denied.keywords.keys() <= {"type"}:
                found -= denied.keywords.get("type", KINDS)
        return found

    @cached_property
    def values(self) -> frozenset[Value] | None:
        """Every value there can be, where that is a short list."""
        lists = [*self.each("enum"), *(frozenset({value}) for value in self.each("const"))]
        if not lists and self._declared_kinds <= {"null", "boolean"}:
            lists = [frozenset({frozen(None), frozen(True), frozen(False)})]
        if not lists:
            return None
        return frozenset(value for value in frozenset.intersection(*lists) if kinds(value) & self._declared_kinds)

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of values there can be."""
        if self.values is None:
            return self._declared_kinds
        return frozenset().union(*(kinds(value) for value in self.values)) & self._declared_kinds

    @cached_property
    def required(self) -> frozenset[str]:
        """The properties that are always there."""
        return frozenset().union(*self.each("required"))

    @cached_property
    def properties(self) -> frozenset[str]:
        """The properties that some node lists by name."""
        return frozenset().union(*self.each("properties"))

    @cached_property
    def patterns(self) -> frozenset[str]:
        """The patterns by which some node lists properties."""
        return frozenset().union(*self.each("patternProperties"))

    @cached_property
    def prefix(self) -> int:
        """How many items some node lists one by one."""
        return max((len(each) for each in self.each("prefixItems")), default=0)

    def property(self, name: str) -> "Facts":
        """What is known of one property's value."""
        return facts(*(each for node in self.nodes for each in content.of_property(node, name)))

    def pattern(self, pattern: str) -> "Facts":
        """What is known of properties that match a pattern which some node lists."""
        return facts(*(each[pattern] for each in self.each("patternProperties") if pattern in each))

    def other_properties(self) -> "Facts":
        """What is known of properties that no node lists."""
        return self._rest(content.PROPERTIES)

    def item(self, index: int) -> "Facts":
        """What is known of one item."""
        longest = self.least("maxItems")
        if longest is not None and index >= longest:
            return facts(NOTHING)
        return facts(*(each for node in self.nodes for each in content.of_item(node, index)))

    def other_items(self, *, after: int) -> "Facts":
        """What is known of items after a count, and after those that some node lists."""
        longest = self.least("maxItems")
        if longest is not None and max(after, self.prefix) >= longest:
            return facts(NOTHING)
        return self._rest(content.ITEMS)

    def _rest(self, words: content.Content) -> "Facts":
        rest = (words.rest(node, known=self.nodes) for node in self.nodes)
        return facts(*(node for node in rest if node))

    def impossible(self) -> bool:
        """Whether no value can fulfil all of this, as far as can be seen without much searching."""
        return self._contradictory(DEPTH) or any(
            all(self.and_(branch, settled=(node, word))._contradictory(DEPTH) for branch in node.keywords[word])
            for node, word in self.disjunctions()
        )

    def _contradictory(self, depth: int) -> bool:
        if not self.kinds or self.values == frozenset():
            return True
        if depth == 0:
            return False
        if self.kinds == {"object"}:
            return any(self.property(name)._contradictory(depth - 1) for name in self.required)
        if self.kinds == {"array"}:
            count = min(int(self.greatest("minItems") or 0), DEPTH)
            return any(self.item(index)._contradictory(depth - 1) for index in range(count))
        return self.kinds <= NUMBERS and self._no_number()

    def _no_number(self) -> bool:
        most = min((*self.each("maximum"), *self.each("exclusiveMaximum")), default=Decimal("inf"))
        return most < max((*self.each("minimum"), *self.each("exclusiveMinimum")), default=Decimal("-inf"))

    def disjunctions(self) -> Iterator[Disjunction]:
        """Where one of several schemas must hold, and it is not settled yet which."""
        for node in self.nodes:
            for word in ("anyOf", "oneOf"):
                if word in node.keywords and (node, word) not in self.settled:
                    yield node, word

    def cases(self) -> tuple["Facts", ...]:
        """These facts, once for each schema of the first disjunction that is not settled; as they are without one."""
        for node, word in self.disjunctions():
            return tuple(self.and_(branch, settled=(node, word)) for branch in node.keywords[word])
        return (self,)


def facts(*nodes: Node) -> Facts:
    """What is known of a value that fulfils all these schemas."""
    return Facts(_unfolded(nodes))


def _unfolded(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The nodes, what they refer to and their `allOf`, without those that say nothing more."""
    found = dict.fromkeys(each for node in nodes for each in content.always_beside(node))
    return tuple(node for node in found if node.keywords.keys() - {*REFERENCES})
