"""Stubs: small DAG files, one per feed, over the accepted copies of the feed files.

A feed's stub makes its DAG of the accepted copy: the last good version. When the feed file is at fault, a second stub
raises the reason: Airflow shows it as an import error of its own, while the feed's DAG, and every other, runs on.

    FOLDER/feeds/orders.avsc            the accepted copy
    FOLDER/stubs/orders_feed.py         the DAG
    FOLDER/stubs/orders_fault.py        the fault, while there is one
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from headrace import layout
from headrace.feed import SUFFIXES

ENDINGS = ("_feed.py", "_fault.py")

FEED = """\
# Written by Headrace from {file} ({digest}); change that file, not this one.
from pathlib import Path

from headrace.airflow.factory import build_dag

dag = build_dag(Path(__file__).parents[1] / "feeds" / {file!r})
"""

FAULT = """\
# Written by Headrace, for Airflow to show; the feed's DAG goes on with its last good version, if it has one.
from headrace.errors import FeedError

REASON = {reason!r}
raise FeedError(REASON)
"""


@dataclass(frozen=True)
class Stubs:
    """A folder of stubs and accepted copies; each file is replaced as a whole, so that anybody may read at any time."""

    folder: Path

    @property
    def path(self) -> Path:
        """The folder that Airflow reads."""
        return self.folder / "stubs"

    @property
    def feeds(self) -> Path:
        return self.folder / "feeds"

    def prepare(self) -> None:
        """Make the folders."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.feeds.mkdir(exist_ok=True)

    def names(self) -> frozenset[str]:
        """The stubs that are there; another's files may lie beside them."""
        if not self.path.exists():
            return frozenset()
        return frozenset(name for name in os.listdir(self.path) if name.endswith(ENDINGS) and name[0] != ".")

    def accepted(self, name: str) -> Path | None:
        """The feed's last good version."""
        copies = (self.feeds / f"{name}{suffix}" for suffix in SUFFIXES)
        return next((copy for copy in copies if copy.exists()), None)

    def accept(self, name: str, *, suffix: str, text: str) -> None:
        """Make this text the feed's last good version, and its DAG of it; any fault is mended."""
        copy = self.feeds / f"{name}{suffix}"
        self._write(copy, text)
        # The digest makes the stub another one with each version: were this process killed before the next line, the
        # copy alone would not tell that Airflow has yet to parse it.
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        self._write(self.path / feed_stub(name), FEED.format(file=copy.name, digest=digest))
        self.absolve(name)
        for other in set(SUFFIXES) - {suffix}:
            (self.feeds / f"{name}{other}").unlink(missing_ok=True)

    def blame(self, name: str, reason: str) -> None:
        """Show why the feed file was not accepted; the DAG stays as it is."""
        self._write(self.path / fault_stub(name), FAULT.format(reason=reason))

    def absolve(self, name: str) -> None:
        """Take the fault away."""
        (self.path / fault_stub(name)).unlink(missing_ok=True)

    def touch(self, name: str) -> None:
        """Have Airflow parse a feed's DAG again, whose own file is what it was."""
        with suppress(FileNotFoundError):
            os.utime(self.path / feed_stub(name))

    def sweep(self, names: Collection[str]) -> None:
        """Take away what belongs to none of these feeds."""
        stubs = {stub for name in names for stub in (feed_stub(name), fault_stub(name))}
        for stub in self.names() - stubs:
            (self.path / stub).unlink(missing_ok=True)
        for copy in self.feeds.iterdir():
            if copy.suffix in SUFFIXES and copy.stem not in names:
                copy.unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[bool]:
        """Keep other processes of this host from changing the folder; False when one of them is at it."""
        with (self.folder / ".lock").open("w") as file:
            try:
                flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _write(self, path: Path, text: str) -> None:
        """Move a whole file into place; its time is now, whatever the feed file's is, so that Airflow parses it."""
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return
        # Several processes may do this at once. Airflow does not look at hidden files.
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)


def feed_stub(name: str) -> str:
    """The file that makes a feed's DAG."""
    return f"{name}_feed.py"


def fault_stub(name: str) -> str:
    """The file that raises a feed's fault; what is no name of a feed makes a name of a file all the same."""
    if not layout.NAME.fullmatch(name):
        digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:8]
        name = f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:48]}_{digest}"
    return f"{name}_fault.py"
