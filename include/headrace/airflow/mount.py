"""The registry inside Airflow's API server: guarded, made when it is first asked, followed by the Variables."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import psycopg
from airflow.sdk.exceptions import AirflowNotFoundException
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.airflow import connections, variables
from headrace.airflow.guards import Guard, answer, inner_path
from headrace.errors import SettingsError
from headrace.registry import access
from headrace.registry.store import Store

log = logging.getLogger(__name__)


def registry() -> ASGIApp:
    """What the plugin mounts."""
    return Guard(Followed(Deferred(_application), lambda: variables.sync(_store())))


def _application() -> ASGIApp:
    from headrace.registry.api import application
    from headrace.registry.registry import Registry

    return application(Registry(_store()))


@cache
def _store() -> Store:
    store = connections.registry()
    store.prepare()
    return store


@dataclass
class Deferred:
    """An application that its first request makes: where that cannot be yet, Airflow's server starts all the same."""

    make: Callable[[], ASGIApp]
    _made: ASGIApp | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        application = await run_in_threadpool(self._get) if self._made is None else self._made
        await application(scope, receive, send)

    def _get(self) -> ASGIApp:
        with self._lock:
            try:
                if self._made is None:
                    self._made = self.make()
            except (SettingsError, AirflowNotFoundException, psycopg.OperationalError, SQLAlchemyError) as error:
                log.error("The schema registry cannot reach its store: %s", error)
                return answer(500, "The registry cannot reach its store; the API server's log says why.", code=50001)
            return self._made


@dataclass(frozen=True)
class Followed:
    """An application whose changes something follows before its answer is sent."""

    application: ASGIApp
    follow: Callable[[], object]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_change = access.change(scope["method"], inner_path(scope)) is not None

        async def sent(message: Message) -> None:
            if is_change and message["type"] == "http.response.start" and message["status"] < 400:
                await run_in_threadpool(self._follow)
            await send(message)

        await self.application(scope, receive, sent)

    def _follow(self) -> None:
        try:
            self.follow()
        except (SQLAlchemyError, psycopg.Error) as error:
            # The change itself is done; the DAG bundle brings the Variables after it.
            log.error("Airflow's Variables could not follow the schema registry: %s", error)
