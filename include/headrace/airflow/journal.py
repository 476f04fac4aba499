"""The journal: what was judged of each feed and how, so that only what changed is judged again."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from headrace import __version__
from headrace.airflow import stubs

Verdict = Literal["accepted", "faulty", "refused", "waiting"]
"""Taken; wrong in itself; wrong beside what is registered; not judged yet, as a service gave no answer."""

LAYOUT = "2"
"""Changes with what an entry holds."""

FORMAT = hashlib.sha256("\n".join((__version__, LAYOUT, stubs.FEED, stubs.FAULT)).encode()).hexdigest()
"""Another version of Headrace may judge otherwise and writes other stubs: it starts a journal of its own."""


@dataclass(frozen=True)
class Entry:
    """The verdict on one version of a feed."""

    signature: str
    """Tells the version: a file's time, size and number on disk, or a schema's id."""
    verdict: Verdict
    reason: str = ""
    """Why it was not accepted."""
    mark: str = ""
    """How far the registry was."""
    at: float = 0.0
    """When, in seconds since 1970."""
    registered: bool = False
    """Whether it was registered, and not only compared."""
    topic: str = ""
    """The topic that the feed's file claims."""
    offered: bool = False
    """Whether no file but the registry declares the feed."""


@dataclass(frozen=True)
class Known:
    """What the last version of a subject, that no file registered, was found to declare."""

    id: int
    feed: str = ""
    """Empty when it declares none."""
    topic: str = ""


@dataclass(frozen=True)
class Journal:
    """All verdicts, by feed."""

    feeds: Mapping[str, Entry] = field(default_factory=dict)
    subjects: Mapping[str, Known] = field(default_factory=dict)
    """What was read of the registry: a version never changes, so none is read twice."""
    mark: str | None = None
    """How far the registry was when its own feeds were last looked through."""
    whole: bool = False
    """Whether every feed has been judged once: until then the folder's silence about one says nothing."""

    def claims(self) -> dict[str, str]:
        """Which feed's file claims which topic, as far as Kafka tells their names apart."""
        return {claim(entry.topic): name for name, entry in self.feeds.items() if entry.topic and not entry.offered}

    def told(self, name: str, entry: Entry) -> "Journal":
        return replace(self, feeds={**self.feeds, name: entry})

    def without(self, name: str) -> "Journal":
        return replace(self, feeds={known: entry for known, entry in self.feeds.items() if known != name})


def claim(topic: str) -> str:
    """A topic's name as far as Kafka tells it from another's: it refuses two that differ only in these characters."""
    return topic.replace(".", "_")


def read(path: Path) -> Journal:
    """The journal of a folder; an empty one if there is none that we understand."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return Journal()
    if kept["format"] != FORMAT:
        return Journal()
    return Journal(
        feeds={name: Entry(**entry) for name, entry in kept["feeds"].items()},
        subjects={subject: Known(**known) for subject, known in kept["subjects"].items()},
        mark=kept["mark"],
        whole=kept["whole"],
    )


def write(path: Path, journal: Journal) -> None:
    """Keep the journal; a reader sees the old one or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    draft.write_text(json.dumps({"format": FORMAT, **asdict(journal)}), encoding="utf-8")
    draft.replace(path)
