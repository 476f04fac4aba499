"""Rules for schemas made of schemas: references, allOf, anyOf, oneOf, not and if."""

from collections.abc import Generator
from typing import Literal

from headrace.registry.json_compatibility.facts import Facts, facts
from headrace.registry.json_compatibility.goal import Goal, Proof
from headrace.registry.json_compatibility.node import ANYTHING, Node
from headrace.registry.json_compatibility.reason import Reason, Reasons

SUMS = ("anyOf", "oneOf")


def references(reader: Node, known: Facts) -> Proof:
    """What is referred to stands in the place of the reference."""
    reasons: Reasons = ()
    for word in ("$ref", "$dynamicRef"):
        if word in reader.keywords:
            reasons += yield Goal(reader.keywords[word], known, inward=False)
    return reasons


def unknown_reference(reader: Node, known: Facts) -> Proof:
    """A reference that leads elsewhere by the way one came is the same only in the same document."""
    yield from ()
    same = reader.keywords["unknownRef"] in known.each("unknownRef")
    return () if same else (Reason("REFERENCE_CHANGED", (reader.keywords["unknownRef"][0],)),)


def all_of(reader: Node, known: Facts) -> Proof:
    """Every one of the schemas accepts the value."""
    reasons: Reasons = ()
    for index, child in enumerate(reader.keywords["allOf"]):
        reasons += yield Goal(child, known, ("allOf", str(index)), inward=False)
    return (_headline("allOf", reader, known), *reasons) if reasons else ()


def any_of(reader: Node, known: Facts) -> Proof:
    """Some one of the schemas accepts the value, in each case of the writer's perhaps another."""
    for case in known.cases():
        for child in reader.keywords["anyOf"]:
            found = yield Goal(child, case, inward=False)
            if not found:
                break
        else:
            return (_headline("anyOf", reader, known),)
    return ()


def one_of(reader: Node, known: Facts) -> Proof:
    """One of the schemas accepts the value and all others refuse it."""
    children: tuple[Node, ...] = reader.keywords["oneOf"]
    exclusive = [node for node, word in known.disjunctions() if word == "oneOf"]
    fits = []
    for node in exclusive:
        fits.append((yield from _branch_by_branch(children, known, node)))
    if not exclusive:
        fits.append((yield from _as_a_whole(children, known)))
    if "apart" in fits:
        return ()
    return (Reason("ONE_OF_OVERLAPS") if "overlapping" in fits else _headline("oneOf", reader, known),)


Fit = Literal["apart", "overlapping", "refused"]


def _as_a_whole(children: tuple[Node, ...], known: Facts) -> Generator[Goal, Reasons, Fit]:
    """Whether whatever is known is accepted by one of the reader's schemas, and by no other."""
    fit: Fit = "refused"
    for index, child in enumerate(children):
        found = yield Goal(child, known, inward=False)
        if not found:
            fit = "overlapping"
            if all(known.and_(other).impossible() for other in _others(children, index)):
                return "apart"
    return fit


def _branch_by_branch(children: tuple[Node, ...], known: Facts, node: Node) -> Generator[Goal, Reasons, Fit]:
    """Whether whatever is of one of the writer's branches is accepted by one of the reader's, and by no other."""
    branches: tuple[Node, ...] = node.keywords["oneOf"]
    fit: Fit = "apart"
    for index, branch in enumerate(branches):
        case = known.and_(branch, settled=(node, "oneOf"))
        if case.impossible():
            continue
        accepted = False
        # The branch in the same place is the likeliest to fit.
        for place in sorted(range(len(children)), key=lambda each: each != index):
            found = yield Goal(children[place], case, inward=False)
            if found:
                continue
            accepted = True
            if (yield from _excluded(_others(children, place), case, rivals=_others(branches, index))):
                break
        else:
            if not accepted:
                return "refused"
            fit = "overlapping"
    return fit


def _excluded(others: tuple[Node, ...], case: Facts, *, rivals: tuple[Node, ...]) -> Generator[Goal, Reasons, bool]:
    """Whether other schemas refuse a value that is of one of the writer's branches, and of none of its rivals."""
    for other in others:
        if case.and_(other).impossible():
            continue
        for rival in rivals:
            # Whatever the other schema accepts would be of the rival branch too, and the value is not.
            found = yield Goal(rival, facts(other), inward=False)
            if not found:
                break
        else:
            return False
    return True


def _others(nodes: tuple[Node, ...], index: int) -> tuple[Node, ...]:
    return nodes[:index] + nodes[index + 1 :]


def not_(reader: Node, known: Facts) -> Proof:
    """What is refused was impossible, or refused before."""
    denied: Node = reader.keywords["not"]
    together = known.and_(denied)
    if together.impossible():
        return ()
    for before in known.each("not"):
        found = yield Goal(before, together, inward=False)
        if not found:
            return ()
    return (Reason("NOT_TYPE_EXTENDED", ("not",)),)


def condition(reader: Node, known: Facts) -> Proof:
    """Both outcomes accept the value, each as far as it may come to it."""
    asked: Node = reader.keywords["if"]
    then, otherwise = reader.keywords.get("then", ANYTHING), reader.keywords.get("else", ANYTHING)
    reasons = yield Goal(then, known.and_(asked), ("then",), inward=False)
    reasons += yield Goal(otherwise, known, ("else",), inward=False)
    if not reasons:
        return ()
    for words in (node.keywords for node in known.nodes if "if" in node.keywords):
        there = yield Goal(asked, facts(words["if"]), inward=False)
        back = yield Goal(words["if"], facts(asked), inward=False)
        if not there and not back:
            reasons = yield Goal(then, known.and_(asked, words.get("then", ANYTHING)), ("then",), inward=False)
            reasons += yield Goal(otherwise, known.and_(words.get("else", ANYTHING)), ("else",), inward=False)
            return reasons
    return (Reason("CONDITION_CHANGED" if any(known.each("if")) else "CONDITION_ADDED", ("if",)),)


def _headline(word: str, reader: Node, known: Facts) -> Reason:
    """What Confluent calls it when schemas made of schemas do not fit."""
    count = len(reader.keywords[word])
    words = (word, *SUMS, "allOf")
    before = next(
        ((one, len(node.keywords[one])) for one in words for node in known.nodes if one in node.keywords), None
    )
    if before is None:
        return Reason("TYPE_CHANGED")
    criterion, size = before
    if criterion != word and not _criterion_extended(criterion, size, word, count):
        return Reason("COMBINED_TYPE_CHANGED")
    if word == "allOf" and count > size:
        return Reason("PRODUCT_TYPE_EXTENDED")
    if word in SUMS and criterion in SUMS and count < size:
        return Reason("SUM_TYPE_NARROWED")
    return Reason("COMBINED_TYPE_SUBSCHEMAS_CHANGED")


def _criterion_extended(before: str, size: int, word: str, count: int) -> bool:
    return word == "anyOf" or (size == 1 and (count == 1 or word == "oneOf")) or (count == 1 and before == "allOf")
