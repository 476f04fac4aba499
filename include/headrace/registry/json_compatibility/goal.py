"""What is to be shown: that a schema accepts every value of which some facts are known.

A rule shows it for one keyword. It is a generator that asks for further goals, gets the reasons against each (none: it
holds) and returns its own, so that rules know nothing of how goals are searched, remembered and found to be circular.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

from headrace.registry.json_compatibility.facts import Facts
from headrace.registry.json_compatibility.node import Node
from headrace.registry.json_compatibility.reason import Path, Reasons


@dataclass(frozen=True)
class Goal:
    """A schema that has to accept every value of which these facts are known."""

    reader: Node
    facts: Facts
    path: Path = ()
    """The way there, put before the path of every reason against it."""
    inward: bool = True
    """Whether it is about a part of the value that the asking rule is about, not about the value itself."""


Proof = Generator[Goal, Reasons, Reasons]
Prove = Callable[[Node, Facts], Proof]


def at_once(check: Callable[[Node, Facts], Reasons]) -> Prove:
    """A rule that needs no further goals."""

    def prove(reader: Node, facts: Facts) -> Proof:
        yield from ()
        return check(reader, facts)

    return prove
