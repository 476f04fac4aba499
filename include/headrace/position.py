"""Positions: the line of a JSON text in which each of its values stands, for editors and reviews to point at."""

import json
import re
from collections.abc import Mapping
from itertools import count

SPACE = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder()


def lines(text: str) -> dict[str, int]:
    """The line of every value by its dotted path; only of the whole where the text is not JSON."""
    try:
        places = _walk(text, _skip(text, 0))[0]
    except (ValueError, IndexError, RecursionError):
        places = []
    return {"": 1, **{path: text.count("\n", 0, place) + 1 for path, place in places}}


def nearest(lines: Mapping[str, int], path: str) -> int:
    """The line of a path, or of the nearest value around it."""
    while path not in lines:
        path = path.rpartition(".")[0]
    return lines[path]


def _walk(text: str, start: int, path: str = "") -> tuple[list[tuple[str, int]], int]:
    """The places of a value's parts, each where its name begins, and where the value ends."""
    if text[start] not in "{[":
        return [], DECODER.raw_decode(text, start)[1]
    found: list[tuple[str, int]] = []
    at, names = _skip(text, start + 1), count()
    while text[at] not in "}]":
        begins, name = at, str(next(names))
        if text[start] == "{":
            name, at = DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        inner = f"{path}.{name}" if path else str(name)
        below, at = _walk(text, at, inner)
        found += [(inner, begins), *below]
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at
    return found, at + 1


def _skip(text: str, at: int) -> int:
    """Past white space."""
    match = SPACE.match(text, at)
    assert match is not None, "nothing at all is white space too"
    return match.end()
