"""Rules for arrays: items listed one by one, all others, and those that must be among them."""

from decimal import Decimal

from headrace.registry.json_compatibility.content import ITEMS, always_beside
from headrace.registry.json_compatibility.facts import Facts, facts
from headrace.registry.json_compatibility.goal import Goal, Proof
from headrace.registry.json_compatibility.node import Node
from headrace.registry.json_compatibility.reason import Path, Reason, Reasons


def prefix_items(reader: Node, known: Facts) -> Proof:
    """A listed item accepts what the writer may have put there, listed or not."""
    reasons: Reasons = ()
    for index, child in enumerate(reader.keywords["prefixItems"]):
        value, path = known.item(index), ("items", str(index))
        found = yield Goal(child, value, path)
        if found and index >= known.prefix:
            added = "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN" if value else "ITEM_ADDED_TO_OPEN"
            found = (*(found if value else ()), Reason(f"{added}_CONTENT_MODEL", path))
        reasons += found
    return reasons


def other_items(reader: Node, known: Facts) -> Proof:
    """What the reader does not list, it accepts by its content model."""
    rest, listed = _content_model(reader)
    if rest is None:
        return ()
    closed = facts(rest).impossible()
    reasons: Reasons = ()
    for index in range(listed, known.prefix):
        value, path = known.item(index), ("items", str(index))
        found = () if value.impossible() else (yield Goal(rest, value, path))
        if found and closed:
            reasons += (Reason("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path),)
        elif found:
            reasons += (*found, Reason("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path))
    before = known.other_items(after=listed)
    where = _path(reader, listed, closed=closed)
    found = yield Goal(rest, before, where)
    return (*reasons, *_narrowed(found, where, known_before=bool(before), closed=closed))


def _content_model(reader: Node) -> tuple[Node | None, int]:
    """The schema of items that are not listed, if any, and how many are listed."""
    if ITEMS.additional in reader.keywords:
        return reader.keywords[ITEMS.additional], len(reader.keywords.get("prefixItems", ()))
    listing = always_beside(reader)
    if any({ITEMS.additional, ITEMS.unevaluated} & each.keywords.keys() for each in listing[1:]):
        return None, 0
    return reader.keywords.get(ITEMS.unevaluated), max(len(each.keywords.get("prefixItems", ())) for each in listing)


def _path(reader: Node, listed: int, *, closed: bool) -> Path:
    if ITEMS.additional not in reader.keywords:
        return (ITEMS.unevaluated,)
    return ("additionalItems",) if listed or closed else ("items",)


def _narrowed(found: Reasons, path: Path, *, known_before: bool, closed: bool) -> Reasons:
    if not found or (known_before and not closed):
        return found
    if path == ("items",):
        return (Reason("SCHEMA_ADDED", path),)
    name = "UNEVALUATED_ITEMS" if path == (ITEMS.unevaluated,) else "ADDITIONAL_ITEMS"
    return (Reason(f"{name}_{'REMOVED' if closed else 'NARROWED'}", path),)


def contains(reader: Node, known: Facts) -> Proof:
    """As many items as must be of a kind were so before, and no more than may be."""
    words = reader.keywords
    reasons: Reasons = ()
    if (least := words.get("minContains", Decimal(1))) > 0:
        reasons += yield from _enough(words["contains"], least, known)
    if (most := words.get("maxContains")) is not None:
        reasons += yield from _not_too_many(words["contains"], most, known)
    return reasons


def _enough(kind: Node, least: Decimal, known: Facts) -> Proof:
    change = "CONTAINS_CHANGED" if any(known.each("contains")) else "CONTAINS_ADDED"
    for node in known.nodes:
        if "contains" not in node.keywords:
            continue
        found = yield Goal(kind, facts(node.keywords["contains"]), ("contains",))
        if found:
            continue
        if node.keywords.get("minContains", Decimal(1)) >= least:
            return ()
        return (Reason("MIN_CONTAINS_INCREASED", ("minContains",)),)
    return (Reason(change, ("contains",)),)


def _not_too_many(kind: Node, most: Decimal, known: Facts) -> Proof:
    longest = known.least("maxItems")
    if longest is not None and longest <= most:
        return ()
    for node in known.nodes:
        if "maxContains" not in node.keywords:
            continue
        # The other way round: what the reader counts, the writer must have counted too.
        found = yield Goal(node.keywords["contains"], facts(kind), ("contains",))
        if found:
            return (Reason("CONTAINS_CHANGED", ("contains",)),)
        if node.keywords["maxContains"] <= most:
            return ()
        return (Reason("MAX_CONTAINS_DECREASED", ("maxContains",)),)
    return (Reason("MAX_CONTAINS_ADDED", ("maxContains",)),)
