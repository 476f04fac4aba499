"""Whether a reader accepts everything that a writer may write, and all reasons why not.

Goals are shown one from another. A goal that comes up again on the way to itself, about a smaller part of the value,
may be taken as shown: values are finite. What was taken so and then refused is known in the next pass, until nothing
changes. Goals wait on a list of our own, not on Python's stack: schemas may refer to each other in long chains.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.registry.json_compatibility.cases import told_apart
from headrace.registry.json_compatibility.facts import Facts, facts
from headrace.registry.json_compatibility.goal import Goal, Proof
from headrace.registry.json_compatibility.node import Node
from headrace.registry.json_compatibility.reason import Reason, Reasons, once
from headrace.registry.json_compatibility.rules import RULES
from headrace.registry.json_compatibility.sameness import Sameness

EFFORT = 20_000
"""How many goals are looked at in all; beyond, each counts as refused, so that every answer comes within seconds."""
MOST = 500
"""How many reasons are told of one goal: where definitions are shared, the ways to one fault double with each step."""
Key = tuple[Node, Facts]


@dataclass
class _Attempt:
    goal: Goal
    proof: Proof
    depth: int
    """How far inside the value it is."""


@dataclass
class Comparison:
    """The search for reasons, and what it has found so far."""

    passed_over: frozenset[str] = frozenset()
    """Types of reasons that do not count."""
    effort: int = EFFORT
    _refused: dict[Key, Reasons] = field(default_factory=dict)
    _shown: set[Key] = field(default_factory=set)
    _assumed: set[Key] = field(default_factory=set)
    _open: dict[Key, int] = field(default_factory=dict)
    _same: Sameness = field(default_factory=Sameness)

    def reasons(self, reader: Node, writer: Node) -> Reasons:
        """Every reason why the reader refuses something that the writer may write."""
        goal = Goal(reader, facts(writer))
        while True:
            self._shown.clear()
            self._assumed.clear()
            found = self._pass(goal)
            if not any(key in self._refused for key in self._assumed):
                return found

    def _pass(self, first: Goal) -> Reasons:
        known = self._known(first, 0)
        if known is not None:
            return known
        attempts, answer = [self._attempt(first, 0)], None
        while True:
            attempt = attempts[-1]
            try:
                goal = attempt.proof.send(answer)  # type: ignore[arg-type]  # A generator is started with nothing.
            except StopIteration as end:
                answer = self._settle(attempts.pop(), end.value)
                if not attempts:
                    return answer
                answer = _under(answer, attempt.goal)
                continue
            depth = attempt.depth + goal.inward
            answer = self._known(goal, depth)
            if answer is None:
                attempts.append(self._attempt(goal, depth))
            else:
                answer = _under(answer, goal)

    def _attempt(self, goal: Goal, depth: int) -> _Attempt:
        self._open[goal.reader, goal.facts] = depth
        return _Attempt(goal, self._prove(goal.reader, goal.facts), depth)

    def _settle(self, attempt: _Attempt, found: Reasons) -> Reasons:
        key = (attempt.goal.reader, attempt.goal.facts)
        del self._open[key]
        reasons = once(self._counted(found))[:MOST]
        if reasons:
            self._refused[key] = reasons
        else:
            self._shown.add(key)
        return reasons

    def _known(self, goal: Goal, depth: int) -> Reasons | None:
        key = (goal.reader, goal.facts)
        if not goal.reader.keywords or key in self._shown:
            return ()
        if key in self._refused:
            return self._refused[key]
        if key in self._open:
            if depth <= self._open[key]:
                # A schema that refers to itself about the very same value says nothing that could be shown.
                return (Reason("REFERENCE_CHANGED"),)
            self._assumed.add(key)
            return ()
        if any(self._same(goal.reader, node) for node in goal.facts.nodes):
            self._shown.add(key)
            return ()
        self.effort -= 1
        return None if self.effort >= 0 else (Reason("TOO_COMPLEX"),)

    def _prove(self, reader: Node, known: Facts) -> Proof:
        if known.impossible():
            return ()
        reasons: Reasons = ()
        for rule in RULES:
            if rule.kinds & known.kinds and any(word in reader.keywords for word in rule.keywords):
                reasons += yield from rule.prove(reader, known)
            if "type" in rule.keywords and Reason("TYPE_CHANGED") in reasons:
                break  # Of a value of another kind, nothing else is worth telling.
        if not reasons:
            return ()
        in_one_case: Reasons = ()
        for cases in told_apart(reader, known, reasons):
            for case in cases:
                in_one_case = yield Goal(reader, case, inward=False)
                if in_one_case:
                    break
            else:
                return ()
        # What does not count here may hide what counts in a case: a property that only one of several schemas lists.
        return tuple(self._counted(reasons)) or in_one_case

    def _counted(self, reasons: Reasons) -> Iterator[Reason]:
        return (reason for reason in reasons if reason.type not in self.passed_over)


def _under(reasons: Reasons, goal: Goal) -> Reasons:
    return tuple(reason.under(goal.path) for reason in reasons)
