"""JSON text: values in one canonical form, so that equal values are equal texts wherever they come from."""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

EXPONENT = 308
"""Numbers beyond this power of ten, or below its inverse, are no doubles either: no store is asked to keep them."""

NOT_NUMBERS = {math.inf: '"Infinity"', -math.inf: '"-Infinity"'}


def decoder() -> Callable[[str], Any]:
    """A function that parses texts with every digit of their numbers, and refuses what only Python takes for JSON.

    To make one costs more than to parse a short text.
    """
    return json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse).decode


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def canonical(value: Any) -> str:
    """The one text of a value: members by name, no blanks, numbers without exponents or trailing zeros."""
    write = WRITERS.get(type(value))
    if write is None:
        raise TypeError(f"JSON has no {type(value).__name__}")
    return write(value)


def _object(value: dict[str, Any]) -> str:
    return "{" + ",".join(f"{_string(name)}:{canonical(value[name])}" for name in sorted(value)) + "}"


def _array(value: list[Any]) -> str:
    return "[" + ",".join(map(canonical, value)) + "]"


def _string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _float(value: float) -> str:
    if math.isfinite(value):
        return _decimal(Decimal(repr(value)))
    return NOT_NUMBERS.get(value, '"NaN"')


def _decimal(value: Decimal) -> str:
    if value and abs(value.adjusted()) > EXPONENT:
        raise ValueError(f"a number of more than {EXPONENT} digits")
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


WRITERS: dict[type, Callable[[Any], str]] = {
    dict: _object,
    list: _array,
    str: _string,
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _float,
    Decimal: _decimal,
    type(None): lambda _: "null",
}
