"""What a part of the stack is: a process, what it needs first, and how it shows that it answers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stack.passwords import Passwords
from stack.settings import Settings
from stack.supervision import Program


@dataclass(frozen=True)
class Stack:
    """All that the parts of one stack are made from."""

    settings: Settings
    passwords: Passwords
    java: Path
    environment: Mapping[str, str]


class NotReady(Exception):
    """A part does not answer yet; the text says how far it has come."""


async def nothing(_: Stack) -> None:
    """The step of a part that needs none."""


@dataclass(frozen=True)
class Part:
    """One part. `program` is absent for a step that has no process of its own."""

    name: str
    program: Callable[[Stack], Program] | None
    answers: Callable[[Stack, int], None]
    """Raises NotReady until the part, started at the given second, answers."""
    needs: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    prepare: Callable[[Stack], Awaitable[None]] = nothing
    settle: Callable[[Stack], Awaitable[None]] = nothing
    """What is created in a part once it answers."""
    patience: int = 180
    """Seconds until silence counts as failure: a busy machine is slow, and a part that ended is noticed at once."""
    vital: bool = True
    """Whether the stack is of no use without it; the failure of another is told when the rest is up."""
    advice: str = "Look at the log above, then try again: make up"
