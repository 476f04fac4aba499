"""Interception: every call by which a process reaches outside passes one of a few doors, where it is noted or killed.

The doors are the methods of the Kafka clients, boto3's one way to call a service, SQLAlchemy's way to a database,
PyIceberg's files and, where Spark is asked, gRPC's calls and their answers. What goes around the doors is noticed:
Python's own connections by an audit hook, those of C libraries by their peers and by the number of their threads, and
on the wire by whoever watches that (`wiretap`).
"""

import functools
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

Act = Callable[[str, int, str], None]
"""Is told a call's name, its number among those of that name, and `before` or `after`."""

STARTERS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.fork", "os.forkpty")


@dataclass
class Interception:
    """What passed the doors of this process, and what went around them."""

    act: Act
    calls: list[tuple[str, float, float]] = field(default_factory=list)
    """Name, beginning and end of every call, in the order of their beginnings."""
    bypasses: list[str] = field(default_factory=list)
    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _inside: threading.local = field(default_factory=threading.local)

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a door around it."""

        @functools.wraps(function)
        def through(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                number = self._counts[name]
                self._counts[name] += 1
                call = [name, time.monotonic(), float("inf")]
                self.calls.append(call)  # type: ignore[arg-type]
            self.act(name, number, "before")
            self._inside.depth = self.depth + 1
            try:
                return function(*arguments, **named)
            finally:
                self._inside.depth -= 1
                call[2] = time.monotonic()
                self.act(name, number, "after")

        return through

    @property
    def depth(self) -> int:
        """How many doors this thread stands in."""
        return getattr(self._inside, "depth", 0)

    def install(self) -> None:
        """Put the doors in; clients that were made before go around them."""
        self._kafka()
        self._boto()
        self._sql()
        self._files()
        if "grpc" in sys.modules:
            self._grpc()

    def _kafka(self) -> None:
        import confluent_kafka
        import confluent_kafka.admin

        for made in (confluent_kafka.Consumer, confluent_kafka.Producer):
            self._replace(made, type(made.__name__, (made,), self._methods(made)))
        # This one is written in Python, and ours is made of it.
        for name, method in self._methods(confluent_kafka.admin.AdminClient).items():
            setattr(confluent_kafka.admin.AdminClient, name, method)

    def _methods(self, made: type) -> dict[str, Callable[..., Any]]:
        names = [name for name in dir(made) if not name.startswith("_") and callable(getattr(made, name))]
        methods = {name: self.around(f"kafka.{made.__name__}.{name}", getattr(made, name)) for name in names}
        return {**methods, "__init__": self.around(f"kafka.{made.__name__}", made.__init__)}

    @staticmethod
    def _replace(old: type, new: type) -> None:
        """Wherever a module has taken a class of C's by its name."""
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in ("headrace", "spark_jobs", "confluent_kafka") and not name.endswith(".cimpl"):
                for attribute, value in list(vars(module).items()):
                    if value is old:
                        setattr(module, attribute, new)

    def _boto(self) -> None:
        from botocore.client import BaseClient

        call = BaseClient._make_api_call

        def through(client: Any, operation: str, parameters: Any) -> Any:
            service = client.meta.service_model.service_name
            return self.around(f"{service}.{operation}", call)(client, operation, parameters)

        BaseClient._make_api_call = through

    def _sql(self) -> None:
        from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2 as Dialect

        names = [name for name in dir(Dialect) if name.startswith("do_") and name != "do_set_input_sizes"]
        isolation = [name for name in dir(Dialect) if name.endswith("isolation_level") and not name.startswith("_")]
        for name in ("connect", *names, *isolation):
            setattr(Dialect, name, self.around(f"sql.{name.removeprefix('do_')}", getattr(Dialect, name)))
        prepare = Dialect.on_connect

        def on_connect(dialect: Any) -> Any:
            begin = prepare(dialect)
            return self.around("sql.on_connect", begin) if begin else None

        Dialect.on_connect = on_connect

    def _files(self) -> None:
        from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

        for name in ("exists", "__len__"):
            setattr(PyArrowFile, name, self.around(f"file.{name.strip('_')}", getattr(PyArrowFile, name)))
        for name in ("open", "create"):
            opened = self.around(f"file.{name}", getattr(PyArrowFile, name))
            setattr(PyArrowFile, name, self._streaming(opened))
        PyArrowFileIO.delete = self.around("file.delete", PyArrowFileIO.delete)

    def _streaming(self, opened: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **named: _Stream(opened(*arguments, **named), self)

    def _grpc(self) -> None:
        from grpc._channel import Channel

        for name in ("unary_unary", "unary_stream", "stream_unary", "stream_stream"):
            setattr(Channel, name, self._calling(getattr(Channel, name)))

    def _calling(self, made: Callable[..., Any]) -> Callable[..., Any]:
        def through(channel: Any, method: str, *arguments: Any, **named: Any) -> _Call:
            return _Call(made(channel, method, *arguments, **named), f"grpc.{method.rpartition('/')[2]}", self)

        return through

    def watch(self, peers: set[tuple[str, int]]) -> "Watch":
        """Notice what goes around the doors, from now on; `peers` are the services that may be reached."""
        sys.addaudithook(self._heard)
        return Watch(self, peers)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect" and not self.depth:
            self.bypasses.append(f"a connection of Python's to {arguments[1]}")
        if event in STARTERS:
            self.bypasses.append(f"another process: {event}")


class _Stream:
    """A file that PyIceberg reads or writes, each call a door."""

    def __init__(self, stream: Any, interception: Interception) -> None:
        self._stream = stream
        for name in ("read", "write", "seek", "flush"):
            setattr(self, name, interception.around(f"file.{name}", getattr(stream, name)))
        self._close = interception.around("file.close", stream.close)

    def close(self) -> None:
        if not self._stream.closed:
            self._close()

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Call:
    """A method of a gRPC service: each call of it is a door, and so is the way to each answer of a stream."""

    def __init__(self, call: Any, name: str, interception: Interception) -> None:
        self._call, self._name, self._interception = call, name, interception

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        answer = self._interception.around(self._name, self._call)(*arguments, **named)
        return _Answers(answer, self._name, self._interception) if hasattr(answer, "__next__") else answer

    def __getattr__(self, name: str) -> Any:
        return self._interception.around(f"{self._name}.{name}", getattr(self._call, name))


class _Answers:
    def __init__(self, answers: Any, name: str, interception: Interception) -> None:
        self._answers = answers
        self._next = interception.around(f"{name}.answer", answers.__next__)

    def __iter__(self) -> "_Answers":
        return self

    def __next__(self) -> Any:
        return self._next()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answers, name)


class Watch:
    """Looks at this process as from outside, all the time: whom it talks to, and how many Kafka clients it has."""

    def __init__(self, interception: Interception, peers: set[tuple[str, int]]) -> None:
        self._interception, self._peers = interception, peers
        self._ended = threading.Event()
        self._made = 0
        self._thread = threading.Thread(target=self._look_often)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _look_often(self) -> None:
        while not self._ended.wait(0.005):
            self._look()
        self._look()

    def _look(self) -> None:
        import psutil

        found = self._interception.bypasses
        for each in psutil.Process().net_connections(kind="inet"):
            if each.raddr and tuple(each.raddr) not in self._peers:
                found.append(f"a connection to {tuple(each.raddr)}")
        # A client that is being made or let go may have its thread a moment longer than its object.
        ours = sum(name.startswith("kafka.") and name.count(".") == 1 for name, _, _ in list(self._interception.calls))
        if _main_threads() > ours:
            found.append("a Kafka client that was not made at a door")


def _main_threads() -> int:
    """Every client of librdkafka has one thread of this name."""
    count = 0
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as name:
                count += name.read().strip() == "rdk:main"
        except (FileNotFoundError, ProcessLookupError):
            continue
    return count


def at(points: Collection[tuple[str, int, str] | None], sign: int) -> Act:
    """Send this process a signal at one of some points: SIGKILL ends it there, SIGSTOP lets it sleep there."""

    def act(name: str, number: int, when: str) -> None:
        if (name, number, when) in points:
            os.kill(os.getpid(), sign)

    return act


def note(name: str, number: int, when: str) -> None:
    """Only look on."""


KILL, STOP = signal.SIGKILL, signal.SIGSTOP
