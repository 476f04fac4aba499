"""What is unfit to be a column."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Unfit:
    """A place in a record that cannot be a column: where, why, and what to do instead."""

    path: str
    message: str
    fix: str
    value: Any = None
