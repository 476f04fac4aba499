"""What spark-submit runs: it reads an errand, runs its job in this driver's own session, and writes the answer."""

import importlib
import json
import os
import sys
from pathlib import Path

if sys.path[0] == str(Path(__file__).parent):
    # A script's own folder comes first, and the jobs in it are called like other people's modules.
    sys.path.pop(0)
# A process that has once asked a Connect server says so to all that it starts; this driver is to have its own session.
os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)

from headrace import layout
from headrace.errors import HeadraceError


def main(errand: Path, answer: Path) -> None:
    """An error of ours is an answer; any other ends this driver, and the task that waits for it is told."""
    asked = json.loads(errand.read_text())
    job = importlib.import_module(layout.job_module(asked["job"]))
    try:
        done = {"result": job.run(asked["plan"], remote=None, properties=asked["properties"])}
    except HeadraceError as error:
        done = {"error": {"kind": type(error).__name__, "message": str(error)}}
    answer.write_text(json.dumps(done))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
