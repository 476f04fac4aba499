"""Keywords as each draft writes them, and the one form to which they are brought."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from headrace.registry.json_compatibility.draft import Draft
from headrace.registry.json_compatibility.node import ANYTHING, Node
from headrace.registry.json_compatibility.pattern import is_expression
from headrace.registry.json_compatibility.value import KINDS, NUMBERS, frozen
from headrace.registry.schema import InvalidSchema

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


def one_form(words: Mapping[str, Any], draft: Draft, child: Child) -> dict[str, Any]:
    """The keywords of a draft in the form that nodes have them, without references."""
    read = {word: READINGS[word](value, child) for word, value in words.items() if word in READINGS}
    if "type" in words:
        read["type"] = _kinds(words["type"], draft)
    for settle in (_exclusive, _dependencies, _items, _content):
        settle(read, child)
    return read


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
    """Names and schemas that a property brings along were told under one keyword, and still may be."""
    for name, value in read.pop("dependencies", {}).items():
        if isinstance(value, list):
            names = read.setdefault("dependentRequired", {})
            names[name] = names.get(name, frozenset()) | frozenset(value)
        else:
            schemas = read.setdefault("dependentSchemas", {})
            both = (child(value), schemas.get(name, ANYTHING))
            schemas[name] = both[0] if both[1] is ANYTHING else Node({"allOf": both})


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
