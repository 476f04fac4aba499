"""JSON values as JSON compares them: 1 is 1.0, but neither is true."""

from decimal import Decimal
from typing import Any

Value = tuple[str, Any]
"""A kind of value (null, boolean, number, string, array, object) and what it holds, all of it hashable."""

NUMBERS = frozenset({"int", "whole", "fraction"})
"""Numbers by how they are written: 1, 1.0 and 1.5."""
KINDS = frozenset({"null", "boolean", "string", "array", "object"}) | NUMBERS


def frozen(value: Any) -> Value:
    """A value of a JSON document as one that can be compared and kept in a set."""
    match value:
        case None:
            return ("null", None)
        case bool():
            return ("boolean", value)
        case int() | Decimal():
            return ("number", Decimal(value))
        case str():
            return ("string", value)
        case list():
            return ("array", tuple(frozen(item) for item in value))
    return ("object", frozenset((name, frozen(item)) for name, item in value.items()))


def kinds(value: Value) -> frozenset[str]:
    """What a value can be; a whole number may be written either way."""
    kind, content = value
    if kind != "number":
        return frozenset({kind})
    whole = content.is_finite() and content == content.to_integral_value()
    return frozenset({"int", "whole"}) if whole else frozenset({"fraction"})
