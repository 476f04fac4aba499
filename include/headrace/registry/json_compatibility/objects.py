"""Rules for objects: their properties, listed or not, and what these demand of each other."""

from headrace.registry.json_compatibility.content import PROPERTIES, always_beside
from headrace.registry.json_compatibility.facts import Facts, facts
from headrace.registry.json_compatibility.goal import Goal, Proof
from headrace.registry.json_compatibility.node import Node, constant, of_kinds
from headrace.registry.json_compatibility.pattern import matches, never_together
from headrace.registry.json_compatibility.reason import Reason, Reasons
from headrace.registry.json_compatibility.value import frozen


def required(reader: Node, known: Facts) -> Proof:
    """A property that must be there must have been there before, or have a default."""
    yield from ()
    listed = reader.keywords.get("properties", {})
    new = (name for name in sorted(reader.keywords["required"] - known.required))
    # Of a property that is new altogether, `properties` tells.
    old = (name for name in new if name not in listed or (name in known.properties and not listed[name].has_default))
    return tuple(Reason("REQUIRED_ATTRIBUTE_ADDED", ("required", name)) for name in old)


def properties(reader: Node, known: Facts) -> Proof:
    """A listed property accepts what the writer may have put there, listed or not."""
    reasons: Reasons = ()
    for name, child in reader.keywords["properties"].items():
        value = known.property(name)
        found = yield Goal(child, value, ("properties", name))
        if name in known.properties:
            reasons += found
        else:
            demanded = name in reader.keywords.get("required", ()) and name not in known.required
            added = _added_to_unopen if value else _added_to_open
            reasons += tuple(
                each if each.path else Reason(each.type, ("properties", name))
                for each in added(found, demanded=demanded, has_default=child.has_default)
            )
    return reasons


def _added_to_open(found: Reasons, *, demanded: bool, has_default: bool) -> Reasons:
    if demanded and not has_default:
        return (Reason("REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"),)
    if not found:
        return ()
    kind = "REQUIRED_PROPERTY_WITH_DEFAULT" if demanded else "OPTIONAL_PROPERTY"
    return (Reason(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL"),)


def _added_to_unopen(found: Reasons, *, demanded: bool, has_default: bool) -> Reasons:
    covered = (Reason("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"),) if found else ()
    missing = (Reason("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"),) if demanded and not has_default else ()
    return (*found, *covered, *missing)


def pattern_properties(reader: Node, known: Facts) -> Proof:
    """Properties that match a pattern accept what the writer may have put under any such name."""
    reasons: Reasons = ()
    for pattern, child in reader.keywords["patternProperties"].items():
        path = ("patternProperties", pattern)
        if pattern in known.patterns:
            reasons += yield Goal(child, known.pattern(pattern), path)
            continue
        for name in reader.keywords.get("properties", {}):
            if matches(pattern, name):
                reasons += yield Goal(child, known.property(name), ("properties", name))
        for other in known.patterns:
            if not never_together(pattern, other):
                found = yield Goal(child, known.pattern(other), path)
                reasons += _not_covered("PATTERN_PROPERTY_ADDED", found, path)
        rest = known.other_properties()
        found = yield Goal(child, rest, path)
        if found and not rest:
            reasons += (Reason("PATTERN_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", path),)
        else:
            reasons += _not_covered("PATTERN_PROPERTY_ADDED", found, path)
    return reasons


def _not_covered(change: str, found: Reasons, path: tuple[str, ...]) -> Reasons:
    return (*found, Reason(f"{change}_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)) if found else ()


def other_properties(reader: Node, known: Facts) -> Proof:
    """What the reader does not list by name, it accepts by pattern or by its content model."""
    rest, listing = _content_model(reader)
    names = {name for node in listing for name in node.keywords.get("properties", {})}
    patterns = {pattern for node in listing for pattern in node.keywords.get("patternProperties", {})}
    reasons: Reasons = ()
    for name in sorted(known.properties - names):
        by_pattern = [
            child for each, child in reader.keywords.get("patternProperties", {}).items() if matches(each, name)
        ]
        unlisted = rest is not None and not any(matches(pattern, name) for pattern in patterns)
        for child in (*by_pattern, *((rest,) if rest is not None and unlisted else ())):
            reasons += yield from _removed("PROPERTY", child, known.property(name), ("properties", name))
    if rest is None:
        return reasons
    for pattern in sorted(known.patterns - patterns):
        path = ("patternProperties", pattern)
        reasons += yield from _removed("PATTERN_PROPERTY", rest, known.pattern(pattern), path)
    return (*reasons, *(yield from _rest(reader, rest, known)))


def _content_model(reader: Node) -> tuple[Node | None, tuple[Node, ...]]:
    """The schema of what is not listed, if any, and the nodes that list."""
    if PROPERTIES.additional in reader.keywords:
        return reader.keywords[PROPERTIES.additional], (reader,)
    listing = always_beside(reader)
    others = {PROPERTIES.additional, PROPERTIES.unevaluated}
    if PROPERTIES.unevaluated not in reader.keywords or any(others & each.keywords.keys() for each in listing[1:]):
        return None, (reader,)
    return reader.keywords[PROPERTIES.unevaluated], listing


def _removed(kind: str, child: Node, value: Facts, path: tuple[str, ...]) -> Proof:
    if value.impossible():
        return ()
    found = yield Goal(child, value, path)
    if found and facts(child).impossible():
        return (Reason(f"{kind}_REMOVED_FROM_CLOSED_CONTENT_MODEL", path),)
    return _not_covered(f"{kind}_REMOVED", found, path)


def _rest(reader: Node, rest: Node, known: Facts) -> Proof:
    additional = PROPERTIES.additional in reader.keywords
    word, name = (
        (PROPERTIES.additional, "ADDITIONAL_PROPERTIES")
        if additional
        else (PROPERTIES.unevaluated, "UNEVALUATED_PROPERTIES")
    )
    before = known.other_properties()
    found = yield Goal(rest, before, (word,))
    if found and facts(rest).impossible():
        return (Reason(f"{name}_REMOVED", (word,)),)
    return (Reason(f"{name}_NARROWED", (word,)),) if found and not before else found


def property_names(reader: Node, known: Facts) -> Proof:
    """Every name that the writer may have used is accepted."""
    child, path = reader.keywords["propertyNames"], ("propertyNames",)
    before = facts(of_kinds("string"), *known.each("propertyNames"))
    found = yield Goal(child, before, path)
    if not found:
        return ()
    if not known.patterns and known.other_properties().impossible():
        for name in sorted(known.properties):
            refused = yield Goal(child, facts(constant(frozen(name))), path)
            if refused and not known.property(name).impossible():
                break
        else:
            return ()
    return found if any(known.each("propertyNames")) else (Reason("PROPERTY_NAMES_ADDED", path),)


def dependent_required(reader: Node, known: Facts) -> Proof:
    """A property brings along no more others than before."""
    yield from ()
    reasons: Reasons = ()
    for name, demanded in reader.keywords["dependentRequired"].items():
        if demanded <= _brought_along(name, known) or known.property(name).impossible():
            continue
        before = frozenset().union(*(each.get(name, ()) for each in known.each("dependentRequired")))
        change = "ADDED" if not before else "EXTENDED" if before < demanded else "CHANGED"
        reasons += (Reason(f"DEPENDENCY_ARRAY_{change}", ("dependencies", name)),)
    return reasons


def _brought_along(name: str, known: Facts) -> frozenset[str]:
    there = known.required | {name}
    while True:
        more = there.union(*(each.get(one, ()) for each in known.each("dependentRequired") for one in there))
        if more == there:
            return there
        there = more


def dependent_schemas(reader: Node, known: Facts) -> Proof:
    """A property's presence demands no more than before."""
    reasons: Reasons = ()
    for name, child in reader.keywords["dependentSchemas"].items():
        if known.property(name).impossible():
            continue
        before = [each[name] for each in known.each("dependentSchemas") if name in each]
        path = ("dependencies", name)
        found = yield Goal(child, known.and_(*before), path, inward=False)
        reasons += found if before or not found else (Reason("DEPENDENCY_SCHEMA_ADDED", path),)
    return reasons
