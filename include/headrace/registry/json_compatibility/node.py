"""A JSON Schema as a graph of nodes: references followed, and every draft's keywords brought to one form.

The form is that of 2020-12: tuples are `prefixItems` and `items`, exclusive bounds are numbers, `dependencies` are
`dependentRequired` and `dependentSchemas`. Keywords without effect are left out, so that a node without keywords
accepts everything; one that accepts nothing has the type of nothing.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from referencing.exceptions import Unresolvable

from headrace.registry.json_compatibility.draft import Draft
from headrace.registry.json_compatibility.pattern import is_expression
from headrace.registry.json_compatibility.value import KINDS, NUMBERS, Value, frozen
from headrace.registry.schema import InvalidSchema

if TYPE_CHECKING:
    from referencing._core import Resolver  # The library names this type nowhere else.


@dataclass(frozen=True, eq=False)
class Node:
    """One schema of a document: what it demands, keyword by keyword."""

    keywords: dict[str, Any] = field(default_factory=dict)
    has_default: bool = False


REFERENCES = ("$ref", "$dynamicRef")


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


_DATES = {"date-time", "date", "time", "duration"}
_HOSTS = {"email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6"}
_ADDRESSES = {"uri", "uri-reference", "iri", "iri-reference", "uri-template", "json-pointer", "relative-json-pointer"}
FORMATS = frozenset(_DATES | _HOSTS | _ADDRESSES | {"uuid", "regex"})
"""The formats that some draft defines; validators pass over all others."""

Child = Callable[[Any], Node]
Reading = Callable[[Any, Child], Any]


def _one(value: Any, child: Child) -> Node:
    return child(value)


def _list(value: Any, child: Child) -> tuple[Node, ...]:
    return tuple(child(item) for item in value)


def _map(value: Any, child: Child) -> dict[str, Node]:
    return {name: child(item) for name, item in value.items()}


def _patterns(value: Any, child: Child) -> dict[str, Node]:
    return {_pattern(name, child): child(item) for name, item in value.items()}


def _number(value: Any, _: Child) -> Decimal:
    return Decimal(value)


def _pattern(value: Any, _: Child) -> str:
    if not is_expression(value):
        raise InvalidSchema(f"{value!r} is no regular expression; mend the pattern")
    return str(value)


def _same(value: Any, _: Child) -> Any:
    return value


def _names(value: Any, _: Child) -> frozenset[str]:
    return frozenset(value)


def _name_lists(value: Any, _: Child) -> dict[str, frozenset[str]]:
    return {name: frozenset(names) for name, names in value.items()}


READINGS: Mapping[str, Reading] = {
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _list),
    **dict.fromkeys(("properties", "dependentSchemas"), _map),
    **dict.fromkeys(
        ("additionalProperties", "unevaluatedProperties", "propertyNames", "unevaluatedItems", "contains"), _one
    ),
    **dict.fromkeys(("not", "if", "then", "else"), _one),
    **dict.fromkeys(("maximum", "minimum", "multipleOf", "maxLength", "minLength", "maxItems", "minItems"), _number),
    **dict.fromkeys(("maxProperties", "minProperties", "maxContains", "minContains"), _number),
    **dict.fromkeys(("uniqueItems", "format", "contentEncoding", "contentMediaType"), _same),
    **dict.fromkeys(("items", "additionalItems", "exclusiveMaximum", "exclusiveMinimum", "dependencies"), _same),
    "patternProperties": _patterns,
    "pattern": _pattern,
    "required": _names,
    "dependentRequired": _name_lists,
    "enum": lambda value, _: frozenset(frozen(item) for item in value),
    "const": lambda value, _: frozen(value),
}


@dataclass
class Graph:
    """The nodes of one document and of what it refers to, each made once, so that a recursion is a circle of nodes."""

    draft: Draft
    documents: tuple[Any, ...]
    _nodes: dict[int, Node] = field(default_factory=dict)
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
        if isinstance(schema, bool):
            return ANYTHING if schema else NOTHING
        node = self._nodes.get(id(schema))
        if node is None:
            node = self._nodes[id(schema)] = Node({}, "default" in schema)
            self._fill(node, schema, resolver)
        return node

    def _target(self, reference: Any, resolver: "Resolver[Any]") -> Node:
        try:
            found = resolver.lookup(reference)
        except (Unresolvable, ValueError, AttributeError) as error:
            raise InvalidSchema(
                f'"$ref": {reference!r} cannot be resolved: it is neither in this schema nor in one of its references'
            ) from error
        if isinstance(found.contents, bool):
            return ANYTHING if found.contents else NOTHING
        node = self._nodes.get(id(found.contents))
        if node is None:
            self.draft.check(found.contents, at=str(reference))
            node = self._nodes[id(found.contents)] = Node({}, "default" in found.contents)
            self._awaited.append((node, found.contents, found.resolver))
        self._references.setdefault(node, reference)
        return node

    def _fill(self, node: Node, schema: Mapping[str, Any], resolver: "Resolver[Any]") -> None:
        inside = resolver.in_subresource(self.draft.specification.create_resource(schema))

        def child(value: Any) -> Node:
            return self._node(value, inside)

        words = {word: value for word, value in schema.items() if word in self.draft.keywords}
        if "$ref" in words and self.draft.reference_stands_alone:
            words = {"$ref": words["$ref"]}
        read = {word: READINGS[word](value, child) for word, value in words.items() if word in READINGS}
        if "type" in words:
            read["type"] = _kinds(words["type"], self.draft)
        read |= self._followed(words, inside)
        for settle in (_exclusive, _dependencies, _items, _content):
            settle(read, child)
        node.keywords.update(read)

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


def _kinds(types: Any, draft: Draft) -> frozenset[str]:
    meanings = {"integer": draft.whole_numbers, "number": NUMBERS}
    names = [types] if isinstance(types, str) else types
    return frozenset().union(*(meanings.get(name, frozenset({name}) & KINDS) for name in names))


def _exclusive(read: dict[str, Any], _: Child) -> None:
    """Draft 4 says whether a bound is exclusive; later drafts give the exclusive bound itself."""
    for word, bound in (("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")):
        limit = read.pop(word, None)
        if limit is True and bound in read:
            read[word] = read.pop(bound)
        elif limit is not None and not isinstance(limit, bool):
            read[word] = Decimal(limit)


def _dependencies(read: dict[str, Any], child: Child) -> None:
    dependencies = read.pop("dependencies", None)
    if dependencies is not None:
        lists = {name: frozenset(value) for name, value in dependencies.items() if isinstance(value, list)}
        schemas = {name: child(value) for name, value in dependencies.items() if not isinstance(value, list)}
        read |= {"dependentRequired": lists, "dependentSchemas": schemas}


def _items(read: dict[str, Any], child: Child) -> None:
    items, additional = read.pop("items", None), read.pop("additionalItems", None)
    if isinstance(items, list):
        read["prefixItems"] = tuple(child(item) for item in items)
        items = additional
    if items is not None:
        read["items"] = child(items)


def _content(read: dict[str, Any], _: Child) -> None:
    """Take away what has no effect."""
    if "contains" not in read:
        read.pop("minContains", None)
        read.pop("maxContains", None)
    if "if" not in read:
        read.pop("then", None)
        read.pop("else", None)
    if read.get("format") not in FORMATS:
        read.pop("format", None)
    if not read.get("uniqueItems"):
        read.pop("uniqueItems", None)
    for word in ("minLength", "minItems", "minProperties"):
        if read.get(word) == 0:
            read.pop(word)
    for word in ("required", "properties", "patternProperties", "dependentRequired", "dependentSchemas", "prefixItems"):
        if word in read and not read[word]:
            read.pop(word)
