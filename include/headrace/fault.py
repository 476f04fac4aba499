"""A fault: one thing that is wrong, or suspicious, in a feed file, and what to do about it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

Severity = Literal["error", "warning"]
LISTED = 25
"""More known words than this are no help."""


@dataclass(frozen=True)
class Fault:
    """Where it is, what it is, which value it is about and what to do; an error keeps the feed out, a warning not."""

    file: str
    path: str
    """Dotted, from the root of the file, such as `feed.topic.name`; empty for the whole file."""
    message: str
    fix: str = ""
    value: Any = None
    severity: Severity = "error"
    line: int | None = None
    """Where that is known."""

    def __str__(self) -> str:
        where = f"{self.file}: {self.path}" if self.path else f"{self.file}:"
        told = f"{where} {self.message}"
        return f"{told} {self.fix}" if self.fix else told


def nearest(word: str, known: Sequence[str]) -> str:
    """What to do about an unknown word: the nearest known one, or all of them; of very many, those most like it."""
    match = get_close_matches(word, known, n=1)
    if match:
        return f'Did you mean "{match[0]}"?'
    if len(known) <= LISTED:
        return f"Known: {', '.join(known)}." if known else ""
    return f"Known, among {len(known)}: {', '.join(get_close_matches(word, known, n=5, cutoff=0))}."


def show(value: Any) -> str:
    """A value as it stands in the file, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
