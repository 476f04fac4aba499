"""A forwarder between a client and a service, which a test cuts and restores as a network would fail."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

HOST = "127.0.0.1"


@dataclass
class Forwarder:
    """Forwards a port of its own to a service, until it is cut."""

    target: int
    port: int = 0
    is_cut: bool = False
    _listener: socket.socket = field(default_factory=socket.socket)
    _open: set[socket.socket] = field(default_factory=set)
    _before: tuple[bytes, Callable[[], None]] | None = None
    _after: bytes | None = None
    _lose: bytes | None = None
    _hear: Callable[[bytes], None] | None = None

    def __post_init__(self) -> None:
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((HOST, 0))
        self._listener.listen(64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Drop every connection, and each new one at once."""
        self.is_cut = True
        for each in list(self._open):
            self._drop(each)

    def restore(self) -> None:
        self.is_cut, self._before, self._after = False, None, None

    def before(self, sent: bytes, act: Callable[[], None] | None = None) -> None:
        """When a client is about to send this, do that first: cut, if nothing else is said."""
        self._before = (sent, act or self.cut)

    def cut_after(self, sent: bytes) -> None:
        """Let the service answer when a client has sent this, and cut before the answer comes back."""
        self._after = sent

    def lose_answer(self, sent: bytes) -> None:
        """Once, when a client has sent this, drop its connection when the answer is there."""
        self._lose = sent

    def listen(self, hear: Callable[[bytes], None]) -> None:
        """Be told what clients send."""
        self._hear = hear

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if self.is_cut:
                client.close()
                continue
            service = socket.create_connection((HOST, self.target))
            self._open |= {client, service}
            swallow, lose = threading.Event(), threading.Event()
            threading.Thread(target=self._up, args=(client, service, swallow, lose), daemon=True).start()
            threading.Thread(target=self._down, args=(service, client, swallow, lose), daemon=True).start()

    def _up(
        self, client: socket.socket, service: socket.socket, swallow: threading.Event, lose: threading.Event
    ) -> None:
        for data in _chunks(client):
            if self._hear:
                self._hear(data)
            if self._before and self._before[0] in data:
                act, self._before = self._before[1], None
                act()
            if self.is_cut:
                break
            if self._after and self._after in data:
                swallow.set()
            if self._lose and self._lose in data:
                self._lose = None
                lose.set()
            if not _sent(service, data):
                break
        self._drop(client, service)

    def _down(
        self, service: socket.socket, client: socket.socket, swallow: threading.Event, lose: threading.Event
    ) -> None:
        for data in _chunks(service):
            if swallow.is_set():
                self.cut()
            # What is only asked to send on is not yet an answer.
            if self.is_cut or (lose.is_set() and not data.startswith(b"HTTP/1.1 100")):
                break
            if not _sent(client, data):
                break
        self._drop(client, service)

    def _drop(self, *sockets: socket.socket) -> None:
        for each in sockets:
            self._open.discard(each)
            with contextlib.suppress(OSError):  # the other side may have been first
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _chunks(source: socket.socket) -> Iterator[bytes]:
    while True:
        try:
            data = source.recv(65536)
        except OSError:
            return
        if not data:
            return
        yield data


def _sent(target: socket.socket, data: bytes) -> bool:
    try:
        target.sendall(data)
    except OSError:  # it was cut, or went away
        return False
    return True
