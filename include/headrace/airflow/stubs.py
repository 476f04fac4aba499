"""Stubs: one three-line DAG file per feed file, so that a bad feed is its own import error and harms no other."""

import os
from pathlib import Path

from headrace import feed

STUB = """\
# Written by Headrace from {name}; change that file, not this one.
from headrace.airflow.factory import build_dag
dag = build_dag({path!r})
"""


def write(schemas: Path, folder: Path) -> list[Path]:
    """Make the folder's stubs match the feed files: new and changed ones written, others of ours removed."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {folder / f"{path.stem}_feed.py": path.absolute() for path in feed.files(schemas)}
    for stale in set(folder.glob("*_feed.py")) - wanted.keys():
        stale.unlink(missing_ok=True)
    return [stub for stub, path in wanted.items() if _write(stub, path)]


def _write(stub: Path, path: Path) -> bool:
    """Write one stub if its feed file changed; Airflow parses a file again when its time of change moves."""
    text, changed = STUB.format(name=path.name, path=str(path)), path.stat().st_mtime_ns
    if stub.exists() and stub.stat().st_mtime_ns == changed and stub.read_text(encoding="utf-8") == text:
        return False
    # Several processes may do this at once; each moves a whole file into place.
    draft = stub.with_suffix(f".{os.getpid()}.draft")
    draft.write_text(text, encoding="utf-8")
    os.utime(draft, ns=(changed, changed))
    draft.replace(stub)
    return True
