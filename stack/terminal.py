"""What every Python of .venv runs at its start: take over the settings of the stack, so that commands talk to it.

`make setup` copies this file into .venv, because the repository itself is not on the path of every Python.
"""

from __future__ import annotations

import os
import sys


def parse(text: str) -> dict[str, str]:
    """Read KEY=VALUE lines; a value is taken as it stands, without quotes or expansion."""
    lines = (line.partition("=") for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {key.strip(): value for key, equals, value in lines if equals}


def load() -> None:
    """Set what <state>/stack.env says and the environment does not; without that file do nothing."""
    state = os.environ.get("HEADRACE_STATE") or os.path.join(os.path.dirname(sys.prefix), ".headrace")
    try:
        with open(os.path.join(state, "stack.env"), encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return  # no stack here, or another user's: a Python start must stay silent
    for key, value in parse(text).items():
        os.environ.setdefault(key, value)
