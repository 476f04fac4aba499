"""Regular expressions, as JSON Schema's own validators understand them."""

from functools import lru_cache

import jsonschema_rs

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- :/@#")


@lru_cache(maxsize=1024)
def _validator(pattern: str) -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator({"pattern": pattern})


def is_expression(pattern: str) -> bool:
    """Whether a validator can make anything of it."""
    try:
        _validator(pattern)
    except jsonschema_rs.ValidationError:
        return False
    return True


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text."""
    return bool(_validator(pattern).is_valid(text))


def never_together(one: str, other: str) -> bool:
    """Whether no text can match both: known only of patterns that start with different plain letters."""
    first, second = _prefix(one), _prefix(other)
    return not (first.startswith(second) or second.startswith(first))


def _prefix(pattern: str) -> str:
    """The letters that every match starts with, as far as they can be read off."""
    if not pattern.startswith("^") or "|" in pattern:
        return ""
    length = next((at for at, letter in enumerate(pattern[1:]) if letter not in _PLAIN), len(pattern) - 1)
    follows = pattern[1 + length : 2 + length]
    # A quantifier that allows none takes the letter before it back.
    return pattern[1 : 1 + length - (follows in ("*", "?", "{"))] if length else ""
