"""Rules for types, lists of values, numbers and strings."""

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from headrace.registry.json_compatibility.facts import Facts
from headrace.registry.json_compatibility.goal import Prove, at_once
from headrace.registry.json_compatibility.node import Node
from headrace.registry.json_compatibility.pattern import matches
from headrace.registry.json_compatibility.reason import Reason, Reasons
from headrace.registry.json_compatibility.value import NUMBERS

WIDER_FORMATS: Mapping[str, frozenset[str]] = {
    "uri": frozenset({"uri-reference", "iri", "iri-reference"}),
    "uri-reference": frozenset({"iri-reference"}),
    "iri": frozenset({"iri-reference"}),
    "email": frozenset({"idn-email"}),
    "hostname": frozenset({"idn-hostname"}),
}
"""Formats whose every text is also of another format."""


def _types(reader: Node, facts: Facts) -> Reasons:
    accepted: frozenset[str] = reader.keywords["type"]
    refused = facts.kinds - accepted
    if not refused:
        return ()
    if refused <= NUMBERS and accepted & NUMBERS:
        return (Reason("TYPE_NARROWED"),)
    declared = any(facts.each("type")) or facts.values is not None
    return (Reason("SUM_TYPE_NARROWED" if declared and facts.kinds & accepted else "TYPE_CHANGED"),)


def _enum(reader: Node, facts: Facts) -> Reasons:
    return _listed(reader.keywords["enum"], facts, "enum")


def _const(reader: Node, facts: Facts) -> Reasons:
    return _listed(frozenset({reader.keywords["const"]}), facts, "const")


def _listed(accepted: frozenset[Any], facts: Facts, word: str) -> Reasons:
    if facts.values is not None and facts.values <= accepted:
        return ()
    narrowed = facts.values is None or accepted < facts.values
    return (Reason("ENUM_ARRAY_NARROWED" if narrowed and word == "enum" else "ENUM_ARRAY_CHANGED", (word,)),)


def every_value(facts: Facts, kind: str, holds: Callable[[Any], bool]) -> bool:
    """Whether the values are a short list and all of a kind hold."""
    return facts.values is not None and all(holds(content) for each, content in facts.values if each == kind)


def upper(word: str, kind: str, measure: Callable[[Any], Any]) -> Prove:
    """The rule for a count that must not be exceeded."""

    def check(reader: Node, facts: Facts) -> Reasons:
        limit, known = reader.keywords[word], facts.least(word)
        if (known is not None and known <= limit) or every_value(facts, kind, lambda each: measure(each) <= limit):
            return ()
        return (_changed(word, known, "DECREASED"),)

    return at_once(check)


def lower(word: str, kind: str, measure: Callable[[Any], Any]) -> Prove:
    """The rule for a count that must be reached."""

    def check(reader: Node, facts: Facts) -> Reasons:
        limit, known = reader.keywords[word], facts.greatest(word)
        if (known is not None and known >= limit) or every_value(facts, kind, lambda each: measure(each) >= limit):
            return ()
        return (_changed(word, known, "INCREASED"),)

    return at_once(check)


def _changed(word: str, known: Any, change: str) -> Reason:
    name = "".join(f"_{letter}" if letter.isupper() else letter for letter in word).upper()
    return Reason(f"{name}_{'ADDED' if known is None else change}", (word,))


def _bound(
    word: str, change: str, holds: Callable[[Facts, Decimal], bool], within: Callable[[Any, Any], bool]
) -> Prove:
    def check(reader: Node, facts: Facts) -> Reasons:
        limit: Decimal = reader.keywords[word]
        if holds(facts, limit) or every_value(facts, "number", lambda each: within(each, limit)):
            return ()
        return (_changed(word, next(facts.each(word), None), change),)

    return at_once(check)


def _below(facts: Facts, limit: Decimal) -> bool:
    return any(each <= limit for word in ("maximum", "exclusiveMaximum") for each in facts.each(word))


def _strictly_below(facts: Facts, limit: Decimal) -> bool:
    return any(each < limit for each in facts.each("maximum")) or any(
        each <= limit for each in facts.each("exclusiveMaximum")
    )


def _above(facts: Facts, limit: Decimal) -> bool:
    return any(each >= limit for word in ("minimum", "exclusiveMinimum") for each in facts.each(word))


def _strictly_above(facts: Facts, limit: Decimal) -> bool:
    return any(each > limit for each in facts.each("minimum")) or any(
        each >= limit for each in facts.each("exclusiveMinimum")
    )


def _multiple(reader: Node, facts: Facts) -> Reasons:
    step: Decimal = reader.keywords["multipleOf"]
    known = [*facts.each("multipleOf")]
    whole = [] if "fraction" in facts.kinds else [Decimal(1)]
    if any(_divides(step, each) for each in (*known, *whole)):
        return ()
    if every_value(facts, "number", lambda each: _divides(step, each)):
        return ()
    if not known:
        return (Reason("MULTIPLE_OF_ADDED", ("multipleOf",)),)
    expanded = any(_divides(each, step) for each in known)
    return (Reason("MULTIPLE_OF_EXPANDED" if expanded else "MULTIPLE_OF_CHANGED", ("multipleOf",)),)


def _divides(step: Decimal, number: Decimal) -> bool:
    try:
        return number % step == 0
    except InvalidOperation:  # More digits than can be counted: not known to divide.
        return False


def _pattern(reader: Node, facts: Facts) -> Reasons:
    pattern, known = reader.keywords["pattern"], {*facts.each("pattern")}
    if pattern in known or every_value(facts, "string", lambda each: matches(pattern, each)):
        return ()
    return (Reason("PATTERN_CHANGED" if known else "PATTERN_ADDED", ("pattern",)),)


def _format(reader: Node, facts: Facts) -> Reasons:
    format_, known = reader.keywords["format"], {*facts.each("format")}
    if format_ in known or any(format_ in WIDER_FORMATS.get(each, ()) for each in known):
        return ()
    return (Reason("FORMAT_CHANGED" if known else "FORMAT_ADDED", ("format",)),)


def unchanged(word: str, name: str) -> Prove:
    """The rule for a keyword of which only equal values are known to be as wide."""

    def check(reader: Node, facts: Facts) -> Reasons:
        known = [*facts.each(word)]
        if reader.keywords[word] in known:
            return ()
        return (Reason(f"{name}_{'CHANGED' if known else 'ADDED'}", (word,)),)

    return at_once(check)


def _unique(reader: Node, facts: Facts) -> Reasons:
    longest = facts.least("maxItems")
    if any(facts.each("uniqueItems")) or (longest is not None and longest <= 1):
        return ()
    return (Reason("UNIQUE_ITEMS_ADDED", ("uniqueItems",)),)


types = at_once(_types)
enum = at_once(_enum)
const = at_once(_const)
maximum = _bound("maximum", "DECREASED", _below, lambda each, limit: each <= limit)
minimum = _bound("minimum", "INCREASED", _above, lambda each, limit: each >= limit)
exclusive_maximum = _bound("exclusiveMaximum", "DECREASED", _strictly_below, lambda each, limit: each < limit)
exclusive_minimum = _bound("exclusiveMinimum", "INCREASED", _strictly_above, lambda each, limit: each > limit)
multiple_of = at_once(_multiple)
pattern = at_once(_pattern)
format_ = at_once(_format)
unique_items = at_once(_unique)
