"""A nursery: a warm process, with all libraries and no client, that forks a child for every errand a test asks for.

librdkafka, boto3 and Arrow's S3 do not survive a fork once they are used; so the parent never uses them. One line of
JSON asks, one line answers; a child that stops itself is told of at once, and again when it has ended.
"""

import base64
import contextlib
import faulthandler
import importlib
import json
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from interception import Interception, at, note

STUCK_S = 120
"""After so long a child shows where it is, and ends."""

Point = tuple[str, int, str]
"""A call's name, its number, and before or after."""


@dataclass(frozen=True)
class Errand:
    """What a child does: extract a feed, or other work, this often, and perhaps be hit by a signal on its way."""

    feed: tuple[str, str]
    """The feed file's name and text."""
    kafka: Mapping[str, Any]
    lake: Any
    limits: tuple[int, int]
    times: int = 1
    work: Callable[[Interception], int] | None = None
    """Instead of an extract; the nursery must know its modules."""
    point: Point | None = None
    at_latest: Point | None = None
    """Where the signal hits a child that made fewer calls and never came to the point."""
    sign: int = signal.SIGKILL
    peers: frozenset[tuple[str, int]] | None = None
    """Whom it may talk to; whether it goes around the doors is only watched if that is said."""
    spark: Mapping[str, Any] | None = None
    """How to ask Spark, which then reads every plan, however small; the nursery must know its modules."""
    plant: str = ""
    """The name of a call that goes around the doors, for a test of the watch itself."""


def errand(shop: Any, **more: Any) -> Errand:
    """Extract a workshop's feed once, unless more is said."""
    from headrace.lake import Lake

    # A session that renews credentials cannot be sent to another process; the test stack's keys last.
    lake = Lake(shop.lake.name, shop.lake.location, shop.lake.database, replace(shop.lake.storage, session=None))
    feed = (f"{shop.feed.name}.avsc", json.dumps(shop.feed.schema))
    return Errand(feed, dict(shop.kafka), lake, (1000, 1 << 20), **more)


@dataclass(frozen=True)
class Outcome:
    """How a child ended."""

    signal: int = 0
    stopped: int = 0
    """The process id of a child that sleeps."""
    records: int = 0
    restarts: int = 0
    error: str = ""
    calls: Sequence[tuple[str, float, float]] = ()
    bypasses: Sequence[str] = ()


@dataclass
class Nursery:
    """The test's side of it."""

    modules: Sequence[str] = ()
    """What its children need besides."""
    _process: Any = field(init=False)

    def __enter__(self) -> "Nursery":
        self._process = subprocess.Popen(
            [sys.executable, __file__, *self.modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(30)

    def run(self, errand: Errand) -> Outcome:
        self.ask(errand)
        return self.hear()

    def ask(self, errand: Errand) -> None:
        self._send({"errand": base64.b64encode(pickle.dumps(errand)).decode()})

    def wake(self, pid: int) -> Outcome:
        """Let a sleeping child go on to its end."""
        self._send({"wake": pid})
        return self.hear()

    def _send(self, order: Mapping[str, Any]) -> None:
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Outcome:
        line = self._process.stdout.readline()
        assert line, "the nursery ended"
        return Outcome(**json.loads(line))


def main() -> None:
    """The nursery's side: fork, wait, tell."""
    # Libraries that log to the standard output must not talk into the answers.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: F401
    from pyiceberg.io import pyarrow  # noqa: F401
    from sqlalchemy.dialects.postgresql import psycopg2  # noqa: F401

    from headrace.stages import extract, stream  # noqa: F401

    for module in sys.argv[1:]:
        importlib.import_module(module)
    answers: dict[int, IO[str]] = {}
    for line in sys.stdin:
        order = json.loads(line)
        if "wake" in order:
            pid = order["wake"]
            os.kill(pid, signal.SIGCONT)
        else:
            # Not a pipe: one that is full would hold a child until somebody reads.
            answer = tempfile.TemporaryFile("w+")  # noqa: SIM115
            pid = os.fork()
            if not pid:
                try:
                    _child(pickle.loads(base64.b64decode(order["errand"])), answer)
                except BaseException:  # noqa: BLE001
                    # Threads of the libraries must not keep a child that failed.
                    traceback.print_exc()
                    os._exit(1)
            answers[pid] = answer
        print(json.dumps(_ended(pid, answers)), file=told, flush=True)


def _ended(pid: int, answers: dict[int, IO[str]]) -> dict[str, Any]:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return {"stopped": pid}
    with answers.pop(pid) as answer:
        answer.seek(0)
        told = answer.read()
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return dict(json.loads(told)) if told else {"error": f"the child ended with {os.waitstatus_to_exitcode(status)}"}


def _child(errand: Errand, answer: IO[str]) -> None:
    from headrace.errors import HeadraceError

    faulthandler.dump_traceback_later(STUCK_S, exit=True)
    restarts = _Restarts()
    logging.getLogger("headrace").addHandler(restarts)
    logging.getLogger("headrace").setLevel(logging.INFO)
    interception = Interception(at({errand.point, errand.at_latest}, errand.sign) if errand.point else note)
    interception.install()
    if errand.plant:
        _plant(errand)
    watch = interception.watch(set(errand.peers)) if errand.peers else None
    records, error = 0, ""
    for _ in range(errand.times):
        try:
            records += errand.work(interception) if errand.work else _extract(errand)
        except HeadraceError as raised:
            error = f"{type(raised).__name__}: {raised}"
    if watch:
        watch.end()
    told = {
        "records": records,
        "restarts": restarts.count,
        "error": error,
        "calls": interception.calls,
        "bypasses": sorted(set(interception.bypasses)),
    }
    json.dump(told, answer)
    answer.flush()
    os._exit(0)


def _extract(errand: Errand) -> int:
    """One extract, of a topic or of a stream; the number of records."""
    from headrace import feed as feeds
    from headrace.stages import extract, stream

    feed, limits = feeds.parse(*errand.feed), extract.Limits(*errand.limits)
    if feed.declaration.kinesis:
        from stream_shop import client_of

        kinesis = client_of(errand.kafka["kinesis"])
        return stream.extract(feed, lake=errand.lake, kinesis=kinesis, limits=limits, records=1_000_000).records
    cluster = _cluster(errand) if errand.spark else None
    return extract.extract(feed, lake=errand.lake, kafka=errand.kafka, limits=limits, cluster=cluster).records


def _cluster(errand: Errand) -> Any:
    from headrace.stages.cluster import Cluster
    from spark_jobs import extract as job

    return Cluster(lambda plan: job.run(plan, storage=errand.lake.storage, **(errand.spark or {})), 0)


class _Restarts(logging.Handler):
    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += "starting over" in record.getMessage()


def _plant(errand: Errand) -> None:
    """Give extract a call that passes no door."""
    from headrace.stages import extract

    inner = extract.archive_of

    def planted(*arguments: Any) -> Any:
        PLANTS[errand.plant](errand)
        return inner(*arguments)

    extract.archive_of = planted


def _by_urllib(errand: Errand) -> None:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    try:
        urlopen(errand.lake.storage.endpoint).close()
    except HTTPError as error:
        error.close()


def _by_arrow(errand: Errand) -> None:
    from pyarrow.fs import S3FileSystem

    storage = errand.lake.storage
    S3FileSystem(
        access_key=storage.access_key,
        secret_key=storage.secret_key,
        endpoint_override=storage.endpoint,
        region=storage.region,
    ).get_file_info("headrace/nothing")


def _by_psycopg(errand: Errand) -> None:
    import psycopg2

    psycopg2.connect(errand.lake.database.url()).close()


def _by_librdkafka(errand: Errand) -> None:
    from confluent_kafka import cimpl

    client = cimpl.Producer(dict(errand.kafka))
    client.list_topics(timeout=30)
    client.poll(1)  # a life so short that a busy machine does not look at it once would prove nothing


def _by_stranger(errand: Errand) -> None:
    """A C library's connection to somebody who is none of the services, and says nothing."""
    import psycopg2

    with socket.create_server(("127.0.0.1", 0)) as stranger, contextlib.suppress(psycopg2.OperationalError):
        psycopg2.connect(host="127.0.0.1", port=stranger.getsockname()[1], connect_timeout=2)


def _by_process(errand: Errand) -> None:
    subprocess.run(["true"], check=True)


PLANTS = {
    "urllib": _by_urllib,
    "arrow": _by_arrow,
    "psycopg": _by_psycopg,
    "librdkafka": _by_librdkafka,
    "stranger": _by_stranger,
    "process": _by_process,
}

if __name__ == "__main__":
    # What the test pickled names this module as the test imports it.
    sys.modules["nursery"] = sys.modules["__main__"]
    main()
