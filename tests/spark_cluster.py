"""A standalone Spark cluster of a test's own: a master and one worker on this machine."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker import free_port

from stack import java as javas
from stack.settings import HOST, JARS

SECONDS = 60
BETWEEN_LOOKS = 0.1
REGISTERED = "Successfully registered with master"


@dataclass(frozen=True)
class Cluster:
    """Where the master listens, and what a job needs to know of this machine."""

    master: str
    folder: Path

    @property
    def conf(self) -> dict[str, str]:
        """Where Iceberg's jars lie, and little memory."""
        jars = f"{JARS / 'spark'}/*"
        return {
            "spark.driver.extraClassPath": jars,
            "spark.executor.extraClassPath": jars,
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.driver.memory": "768m",
            "spark.executor.memory": "768m",
            "spark.local.dir": str(self.folder),
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        }


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Bring both up, and end both."""
    port = free_port()
    master = f"spark://{HOST}:{port}"
    started = [
        _start("master", folder, "master.Master", "--port", str(port)),
        _start("worker", folder, "worker.Worker", "-c", "2", "-m", "2g", "-d", str(folder), master),
    ]
    try:
        _await(folder / "worker.log", started)
        yield Cluster(master, folder)
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(SECONDS)


def surroundings() -> dict[str, str]:
    """What spark-submit and Spark's daemons look for in their environment, as the stack's own parts have it."""
    java = javas.find(os.environ)
    assert java is not None, javas.complaint(os.environ)
    programs = Path(sys.executable).parent
    return {
        "JAVA_HOME": str(javas.home_of(java)),
        "SPARK_LOCAL_IP": HOST,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }


def _start(name: str, folder: Path, main: str, *arguments: str) -> subprocess.Popen[bytes]:
    program = Path(sys.executable).parent / "spark-class"
    at = ["--host", HOST, "--webui-port", "0"]
    environment = {**os.environ, **surroundings(), "SPARK_DAEMON_MEMORY": "256m"}
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [program, f"org.apache.spark.deploy.{main}", *at, *arguments], stdout=log, stderr=log, env=environment
        )


def _await(log: Path, started: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + SECONDS
    while REGISTERED not in (said := log.read_text(errors="replace")):
        assert all(process.poll() is None for process in started), said
        assert time.monotonic() < deadline, said
        time.sleep(BETWEEN_LOOKS)
