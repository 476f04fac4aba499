"""Stamps: small files that say which inputs a finished step was made from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path


def digest(*, files: Iterable[Path] = (), words: Iterable[str] = ()) -> str:
    """Hash the content of the files (a missing one counts as empty) and the words."""
    total = hashlib.sha256()
    for path in files:
        content = path.read_bytes() if path.is_file() else b""
        total.update(f"{path.name} {len(content)}\n".encode() + content)
    for word in words:
        total.update(f"{word}\n".encode())
    return total.hexdigest()


def is_current(stamp: Path, value: str) -> bool:
    """Tell whether the step behind this stamp was finished with the same inputs."""
    return stamp.is_file() and stamp.read_text() == value


def write(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all, so that an interrupted command leaves nothing half-written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
