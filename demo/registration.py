"""Registers the feeds by the command that a data engineer types, and learns their topics and schema ids from it."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from demo.errors import DemoError


@dataclass(frozen=True)
class Registered:
    """What the registry knows of a feed."""

    feed: str
    topic: str
    id: int


def register() -> dict[str, Registered]:
    """Every feed's topic and the id of its newest schema, by feed."""
    command = [str(Path(sys.executable).parent / "headrace"), "register", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"`headrace register --json` ended with {done.returncode}:\n{done.stderr.strip()[-2000:]}")
    return registrations(done.stdout)


def registrations(text: str) -> dict[str, Registered]:
    """The command's JSON array, by feed; of several versions the newest counts."""
    entries = sorted(json.loads(text), key=lambda entry: entry["version"])
    return {entry["feed"]: Registered(entry["feed"], entry["topic"], entry["id"]) for entry in entries}
