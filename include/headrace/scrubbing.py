"""Scrubbing: texts of JSON without the keys that are listed in them."""

import json
from collections.abc import Callable, Collection
from typing import Any


def scrubber(keys: Collection[str]) -> Callable[[str], str]:
    """Takes these keys out of every list in a JSON text; a text that has none of them stays as it is."""

    def scrubbed(text: str) -> str:
        if not any(key in text for key in known):
            return text
        before = json.loads(text)
        after = without(before, keys)
        return text if after == before else json.dumps(after)

    # As they stand inside a text of JSON, with letters beyond ASCII in either form.
    known = {json.dumps(key, ensure_ascii=plain)[1:-1] for key in keys for plain in (True, False)}
    return scrubbed


def without(value: Any, keys: Collection[str]) -> Any:
    """A value of JSON without the list members that are one of the keys."""
    match value:
        case dict():
            return {name: without(each, keys) for name, each in value.items()}
        case list():
            return [without(each, keys) for each in value if not (isinstance(each, str) and each in keys)]
    return value
