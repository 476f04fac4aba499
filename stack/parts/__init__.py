"""The parts of the stack, in the order in which they are shown and, backwards, stopped."""

from stack.errors import StackError
from stack.parts import airflow, kafka, postgres, s3, spark
from stack.parts.part import Part, Stack
from stack.supervision import Program

ALL: tuple[Part, ...] = (postgres.PART, kafka.PART, s3.PART, spark.PART, *airflow.PARTS)
NAMES: tuple[str, ...] = tuple(part.name for part in ALL if part.program is not None)


def programs(stack: Stack) -> list[Program]:
    """All that supervisord looks after: the parts' processes, and Spark's first query."""
    return [*(part.program(stack) for part in ALL if part.program is not None), spark.WARMING]


def choose(names: list[str]) -> list[Part]:
    """The named parts and what they need; no names mean all."""
    known = {part.name: part for part in ALL}
    chosen: set[str] = set()
    waiting = list(names or known)
    while waiting:
        name = waiting.pop()
        if name not in known:
            raise StackError(f'"{name}" is not a part of the stack. The parts are: {", ".join(NAMES)}.')
        if name not in chosen:
            chosen.add(name)
            waiting += known[name].needs
    return [part for part in ALL if part.name in chosen]
