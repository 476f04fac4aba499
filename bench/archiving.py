"""One extract in a process of its own, as Airflow runs a task: python -m bench.archiving FEED_FILE

Tells as one line of JSON how long Airflow's own imports took, then waits until its input is closed, so that it can be
measured to the end.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stack.settings import REPOSITORY


@contextmanager
def extracting(path: Path, *, log: Path) -> Iterator[Any]:
    """That process, from its start; it is let go at the end."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.archiving", str(path)],
            cwd=REPOSITORY, env=dict(os.environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    try:
        yield process
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        if process.returncode > 0:
            print(f"the extract failed; the end of its log:\n{log.read_text()[-3000:]}", file=sys.stderr)


def told(process: Any) -> dict[str, float]:
    """What it says, past whatever Airflow logs to the same output; nothing when it ended before."""
    lines = (json.loads(line) for line in process.stdout if line.startswith(b"{"))
    return next(lines, {})


def main(path: Path) -> None:
    began = time.time()
    # What the process that Airflow forks for a task has imported already; all that is ours comes after.
    import airflow.sdk.execution_time.task_runner  # noqa: F401

    start = time.time() - began
    from airflow.sdk.execution_time.context import set_current_context

    from headrace.airflow import tasks

    run: Any = SimpleNamespace(dag_id=path.stem, run_id="bench", run_type="manual")
    with set_current_context({"dag_run": run}):
        tasks.extract(str(path))
    print(json.dumps({"start": start}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
