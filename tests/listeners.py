"""Listeners: a webhook, a collector of metrics and a mail server of a test's own, which keep what they are told."""

import gzip
import json
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Listener:
    """Where it listens, and what it was told."""

    port: int
    told: list[Any] = field(default_factory=list)


@contextmanager
def _posted(read: Callable[[bytes], Iterable[Any]]) -> Iterator[Listener]:
    """Takes what is posted, as `read` tells it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.told.extend(read(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    heard = Listener(server.server_address[1])
    with _served(server):
        yield heard


def webhook() -> AbstractContextManager[Listener]:
    """Takes JSON, as Slack's incoming webhooks do."""
    return _posted(lambda body: [json.loads(body)])


def collector() -> AbstractContextManager[Listener]:
    """Takes OpenTelemetry's metrics: of each its name, its tags and its last value, or the sum of a histogram's."""
    return _posted(_points)


def _points(body: bytes) -> Iterator[tuple[str, dict[str, str], Any]]:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    said = ExportMetricsServiceRequest.FromString(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
    for every in said.resource_metrics:
        for metric in (each for scope in every.scope_metrics for each in scope.metrics):
            sort = metric.WhichOneof("data")
            for point in getattr(metric, sort).data_points:
                tags = {tag.key: tag.value.string_value for tag in point.attributes}
                kind = point.WhichOneof("value") if sort == "gauge" else "sum"
                yield metric.name, tags, getattr(point, kind)


@contextmanager
def mail_server() -> Iterator[Listener]:
    """Takes mail as plain SMTP has it: who it is for, then the message."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 here")
            to: list[str] = []
            while line := self.rfile.readline().decode().strip():
                command = line.split(":")[0].split(" ")[0].upper()
                if line.upper().startswith("RCPT TO:"):
                    to.append(line[8:].strip("<> "))
                if command == "DATA":
                    self.say("354 go on")
                    text = b"".join(iter(self.rfile.readline, b".\r\n")).decode()
                    heard.told.append({"to": to, "text": text})
                self.say("221 bye" if command == "QUIT" else "250 well")

        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    heard = Listener(server.server_address[1])
    with _served(server):
        yield heard


@contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
