"""A broker's administration that says why it gets no answer, and does not wait where no waiting helps."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

T = TypeVar("T")

FINAL = {KafkaError._AUTHENTICATION, KafkaError._SSL}
"""What the client would try again until its time is up, though the same password cannot become right."""

UNTELLING = {KafkaError._ALL_BROKERS_DOWN}
"""What follows from another error, which says more."""

POLL_S = 0.05


class Admin(AdminClient):
    """The client, listening to what it would only log: it calls every failure to connect a time-out."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._heard: list[KafkaError] = []
        listening: dict[str, Any] = {**config, "error_cb": _listener(self._heard, config.get("error_cb"))}
        super().__init__(listening)

    def answer(self, asked: "Future[T]") -> T:
        """What the broker says; raises KafkaException with the true reason where it says nothing."""
        while not wait([asked], POLL_S).done:
            self.poll(0)
            if final := next((error for error in self._heard if error.code() in FINAL), None):
                raise KafkaException(final)
        try:
            return asked.result()
        except KafkaException as error:
            if self._heard and error.args[0].code() == KafkaError._TIMED_OUT:
                raise KafkaException(self._heard[-1]) from error
            raise


def _listener(heard: list[KafkaError], also: Callable[[KafkaError], None] | None) -> Callable[[KafkaError], None]:
    """Keeps what it hears; a callback of the connection's own is still called."""

    def hear(error: KafkaError) -> None:
        if error.code() not in UNTELLING:
            heard[:] = [*heard[-9:], error]
        if also is not None:
            also(error)

    return hear
