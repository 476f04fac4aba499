"""A wiretap: forwards a port of its own to a service, and notes when a client sent something."""

import contextlib
import socket
import threading
import time
from dataclasses import dataclass, field

HOST = "127.0.0.1"
GOODBYE = b"X\x00\x00\x00\x04"
"""What libpq says when it lets a connection go; it asks for nothing."""


@dataclass
class Wiretap:
    target: int
    sent: list[tuple[float, bytes]] = field(default_factory=list)
    """When, and how it began."""
    _listener: socket.socket = field(default_factory=lambda: socket.create_server((HOST, 0)))

    def __post_init__(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                service = socket.create_connection((HOST, self.target))
                threading.Thread(target=self._pass, args=(client, service), daemon=True).start()
                threading.Thread(target=self._pass, args=(service, client, False), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, noted: bool = True) -> None:
        with contextlib.suppress(OSError):
            while chunk := one.recv(65536):
                if noted and chunk != GOODBYE:
                    self.sent.append((time.monotonic(), chunk[:40]))
                other.sendall(chunk)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.close()
