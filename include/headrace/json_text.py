"""JSON text: values in one canonical form, so that equal values are equal texts wherever they come from."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

LARGEST, SMALLEST = 308, -324
"""Numbers of other powers of ten are no doubles either: no store is asked to keep them."""

NOT_NUMBERS = {math.inf: '"Infinity"', -math.inf: '"-Infinity"'}


def decoder() -> Callable[[str], Any]:
    """A function that parses texts with every digit of their numbers, and refuses what only Python takes for JSON.

    To make one costs more than to parse a short text.
    """
    return json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse).decode


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


@dataclass(frozen=True)
class Form:
    """How objects and arrays are written; all else is the same everywhere."""

    comma: str
    colon: str
    order: Callable[[str], Any]
    """By what an object's members are sorted."""
    deepest: float = math.inf
    """So many levels at most, whatever the stack of who asks."""

    def text(self, value: Any, depth: int = 1) -> str:
        """The one text of a value: numbers without exponents or trailing zeros, texts as they are."""
        if depth > self.deepest and isinstance(value, dict | list):
            raise ValueError(f"more than {self.deepest} levels")
        match value:
            case dict():
                members = (
                    f"{_string(name)}{self.colon}{self.text(value[name], depth + 1)}" for name in self.sorted(value)
                )
                return "{" + self.comma.join(members) + "}"
            case list():
                return "[" + self.comma.join(self.text(each, depth + 1) for each in value) + "]"
        write = WRITERS.get(type(value))
        if write is None:
            raise TypeError(f"JSON has no {type(value).__name__}")
        return write(value)

    def sorted(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self.order)


CANONICAL = Form(",", ":", str, deepest=200)
"""Members by name, no blanks: how the clean table has it."""

JSONB = Form(", ", ": ", lambda name: (len(name.encode()), name.encode()))
"""As Postgres writes its jsonb: rows travel to warehouses like this, and can be held against what is read there."""

canonical = CANONICAL.text


def number(text: str) -> str:
    """The one text of a number that is written in any way, or of what is none: `nan`, `inf`."""
    return _float(float(text)) if text.lstrip("-") in ("nan", "inf") else _decimal(Decimal(text))


def _string(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _float(value: float) -> str:
    if math.isfinite(value):
        return _decimal(Decimal(repr(value)))
    return NOT_NUMBERS.get(value, '"NaN"')


def _decimal(value: Decimal) -> str:
    if not value:  # whatever its exponent
        return "0"
    if not SMALLEST <= value.adjusted() <= LARGEST:
        raise ValueError(f"a number of more than {LARGEST} digits")
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


WRITERS: dict[type, Callable[[Any], str]] = {
    str: _string,
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _float,
    Decimal: _decimal,
    type(None): lambda _: "null",
}
