"""A folder to work in that goes away, also when the process that made it was killed: the next one removes it."""

import errno
import fcntl
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace.errors import HistoryError

PREFIX = "headrace-scratch-"
YOUNG_S = 60.0
"""A folder that is younger may not be locked yet."""


@contextmanager
def folder(parent: Path | None = None) -> Iterator[Path]:
    """A folder of one's own, locked as long as its process lives: what lies in it may be personal."""
    parent = parent or Path(tempfile.gettempdir())
    if not parent.is_dir():
        raise HistoryError(f"--scratch {parent}: there is no such folder here. Make it, or name another.")
    _sweep(parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent) as name, (Path(name) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name)


FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def writing(room: Path) -> Iterator[None]:
    """Around what is written into a folder, which may be full."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise HistoryError(
            f"{room}: there is no room left to work in. Name a folder with room for all encoded rows: --scratch FOLDER."
        ) from None


def _sweep(parent: Path) -> None:
    """Remove the folders whose processes have died."""
    for left in parent.glob(f"{PREFIX}*"):
        try:
            with (left / "lock").open() as lock:
                if time.time() - left.stat().st_mtime < YOUNG_S:
                    continue
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue  # it is in use, somebody else's, or gone
