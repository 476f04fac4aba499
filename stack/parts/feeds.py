"""The feeds: registered, with their topics made, before Airflow may know their DAGs and run them."""

import sys
from pathlib import Path

from stack import commands, stamps
from stack.parts.part import Part, Stack

HEADRACE = Path(sys.executable).parent / "headrace"
NAME = "register"


async def register(stack: Stack) -> None:
    """Register the feed files, unless they are still those that were registered last."""
    stamp, current = stack.settings.state / "registered", _digest(stack)
    if not stamps.is_current(stamp, current):
        log = stack.settings.log("register")
        log.unlink(missing_ok=True)
        await commands.run([HEADRACE, "register"], log=log, environment=stack.environment)
        stamps.write(stamp, current)


def _digest(stack: Stack) -> str:
    files = sorted(path for path in stack.settings.schemas.rglob("*") if path.is_file())
    return stamps.digest(files=files)


def _done(_: Stack, __: int) -> None:
    """The registration has been run to its end: there is nothing to ask."""


# Airflow's database too: registering ends with the feeds' Variables.
PART = Part(NAME, None, _done, needs=("postgres", "kafka", "airflow-migration"), prepare=register, vital=False)
