"""One stack command at a time: two that start and stop the same parts would undo each other."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stack.errors import StackError


@contextmanager
def hold(state: Path) -> Iterator[None]:
    """Hold the state folder's lock; the system lets go of it when the process ends, however it ends."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise StackError(
                f"Another stack command (pid {file.read().strip() or 'unknown'}) is at work on {state}. "
                "Wait until it is done, then try again."
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
