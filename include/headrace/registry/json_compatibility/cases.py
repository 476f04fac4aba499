"""Cases: what cannot be shown of all values at once may be shown of each kind of them."""

from collections.abc import Iterator

from headrace.registry.json_compatibility.facts import Facts
from headrace.registry.json_compatibility.node import ANYTHING, Node, constant, of_kinds
from headrace.registry.json_compatibility.reason import Reasons
from headrace.registry.json_compatibility.value import KINDS, NUMBERS

NESTED = 3
"""How many times cases are told apart within cases."""
LISTED = 50
"""How many values are looked at one by one."""

_GROUPS = (NUMBERS, *(frozenset({kind}) for kind in sorted(KINDS - NUMBERS)))


def told_apart(reader: Node, known: Facts, reasons: Reasons) -> Iterator[tuple[Facts, ...]]:
    """Ways to look at the values case by case, each a list of facts of which one holds."""
    if len(known.settled) >= NESTED:
        return
    # The rule for oneOf has already gone through such branches of the writer's, and knows more of them.
    gone_through = "oneOf" in reader.keywords and any(not reason.path for reason in reasons)
    disjunctions = [*known.disjunctions()]
    for node, word in disjunctions:
        if not (gone_through and word == "oneOf"):
            yield tuple(known.and_(branch, settled=(node, word)) for branch in node.keywords[word])
    yield from _by_condition(known)
    # What else differs from case to case does so within the branches too.
    if not disjunctions and {"anyOf", "oneOf", "if", "not"} & reader.keywords.keys():
        yield from _by_kind(known)


def _by_condition(known: Facts) -> Iterator[tuple[Facts, ...]]:
    for node in known.nodes:
        words = node.keywords
        if "if" in words and (node, "if") not in known.settled:
            held = known.and_(words["if"], words.get("then", ANYTHING), settled=(node, "if"))
            yield held, known.and_(words.get("else", ANYTHING), settled=(node, "if"))


def _by_kind(known: Facts) -> Iterator[tuple[Facts, ...]]:
    groups = [group & known.kinds for group in _GROUPS if group & known.kinds]
    if len(groups) > 1:
        yield tuple(known.and_(of_kinds(*sorted(group))) for group in groups)
    if known.values is not None and 1 < len(known.values) <= LISTED:
        yield tuple(known.and_(constant(value)) for value in sorted(known.values, key=repr))
