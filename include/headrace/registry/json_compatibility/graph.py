"""A JSON Schema as a graph: its schemas are nodes, references are followed, and a recursion is a circle."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from referencing.exceptions import Unresolvable

from headrace.registry.json_compatibility.draft import Draft
from headrace.registry.json_compatibility.keywords import one_form
from headrace.registry.json_compatibility.node import ANYTHING, NOTHING, Node, in_place
from headrace.registry.schema import InvalidSchema

if TYPE_CHECKING:
    from referencing._core import Resolver  # The library names this type nowhere else.

Key = tuple[str, bytes]


@dataclass
class Graph:
    """The nodes of one document and of what it refers to; equal schemas are one node, so that each is compared once."""

    draft: Draft
    documents: tuple[Any, ...]
    drafts: Mapping[str, Draft] = field(default_factory=dict)
    """The drafts of other documents, by their addresses, where they name their own."""
    _nodes: dict[Key, Node] = field(default_factory=dict)
    _seen: dict[tuple[int, str], Node] = field(default_factory=dict)
    """The nodes of places in the documents: a large schema that is often referred to is read once."""
    _references: dict[Node, Any] = field(default_factory=dict)
    """How the nodes that are referred to are called."""
    _awaited: list[tuple[Node, Any, "Resolver[Any]"]] = field(default_factory=list)

    def root(self, document: Any, resolver: "Resolver[Any]") -> Node:
        """The node of a whole document, with everything that can be reached from it."""
        root = self._node(document, resolver)
        while self._awaited:  # References are followed one by one: a long chain of them is no deep recursion.
            node, schema, resolver = self._awaited.pop()
            self._fill(node, schema, resolver)
        self._refuse_endless()
        return root

    def _refuse_endless(self) -> None:
        """Refuse references that lead back to themselves without a step into the value: no validator would end."""
        ended: set[Node] = set()
        for start in self._nodes.values():
            way: dict[Node, Iterator[Node]] = {start: in_place(start)} if start not in ended else {}
            while way:
                last = next(reversed(way))
                follows = next(way[last], None)
                if follows is None:
                    ended.add(last)
                    del way[last]
                elif follows in way:
                    name = next(
                        self._references[node] for node in (follows, *reversed(way)) if node in self._references
                    )
                    raise InvalidSchema(f'"$ref": {name!r} leads back to itself about the very same value, without end')
                elif follows not in ended:
                    way[follows] = in_place(follows)

    def _node(self, schema: Any, resolver: "Resolver[Any]") -> Node:
        """The node of a schema that stands inside another."""
        node, is_new = self._found(schema, resolver)
        if is_new:
            self._fill(node, schema, resolver)
        return node

    def _target(self, reference: Any, resolver: "Resolver[Any]") -> Node:
        """The node of a schema that is referred to; it is filled later."""
        try:
            found = resolver.lookup(reference)
        except (Unresolvable, ValueError, AttributeError) as error:
            raise InvalidSchema(
                f'"$ref": {reference!r} cannot be resolved: it is neither in this schema nor in one of its references'
            ) from error
        node, is_new = self._found(found.contents, found.resolver)
        if is_new:
            self._draft(found.resolver).check(found.contents, at=str(reference))
            self._awaited.append((node, found.contents, found.resolver))
        self._references.setdefault(node, reference)
        return node

    def _found(self, schema: Any, resolver: "Resolver[Any]") -> tuple[Node, bool]:
        """The node of a schema, and whether it has just been made."""
        if isinstance(schema, bool):
            return (ANYTHING if schema else NOTHING), False
        place = (id(schema), _address(resolver))
        if place in self._seen:
            return self._seen[place], False
        key = _key(schema, resolver)
        is_new = key not in self._nodes
        if is_new:
            self._nodes[key] = Node({}, isinstance(schema, dict) and "default" in schema)
        self._seen[place] = self._nodes[key]
        return self._nodes[key], is_new

    def _draft(self, resolver: "Resolver[Any]") -> Draft:
        return self.drafts.get(_address(resolver), self.draft)

    def _fill(self, node: Node, schema: Mapping[str, Any], resolver: "Resolver[Any]") -> None:
        draft = self._draft(resolver)
        inside = resolver.in_subresource(draft.specification.create_resource(schema))
        words = {word: value for word, value in schema.items() if word in draft.keywords}
        if "$ref" in words and draft.reference_stands_alone:
            words = {"$ref": words["$ref"]}
        node.keywords.update(self._followed(words, inside))
        node.keywords.update(one_form(words, draft, lambda value: self._node(value, inside)))

    def _followed(self, words: Mapping[str, Any], resolver: "Resolver[Any]") -> Iterator[tuple[str, Any]]:
        if "$ref" in words:
            yield "$ref", self._target(words["$ref"], resolver)
        for word, anchor in (("$dynamicRef", "$dynamicAnchor"), ("$recursiveRef", "$recursiveAnchor")):
            if word not in words:
                continue
            name = words[word].partition("#")[2] or True
            if _count(self.documents, anchor, name) == 1:
                yield "$dynamicRef", self._target(words[word], resolver)
            else:
                # Where it leads depends on the way by which one came: it is the same only where all is the same.
                digest = hashlib.sha256(repr(self.documents).encode()).hexdigest()
                yield "unknownRef", (words[word], digest)


def _count(document: Any, word: str, name: str | bool) -> int:
    """How many schemas of some documents declare an anchor to which references lead dynamically."""
    if isinstance(document, list | tuple):
        return sum(_count(item, word, name) for item in document)
    if not isinstance(document, dict):
        return 0
    return (document.get(word) == name) + sum(_count(item, word, name) for item in document.values())


def _key(schema: Any, resolver: "Resolver[Any]") -> Key:
    """What two schemas have in common only if they demand the same: their words, and where their references start."""
    return _address(resolver), hashlib.blake2b(repr(schema).encode(), digest_size=20).digest()


def _address(resolver: "Resolver[Any]") -> str:
    return str(resolver._base_uri)
