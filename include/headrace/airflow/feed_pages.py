"""Pages about feeds inside Airflow's API server: for the signed-in, and of a feed whose DAG they may read."""

import logging
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.configuration import conf
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from headrace.airflow.guards import Guard
from headrace.errors import HeadraceError
from headrace.registry.access import Unauthorized

if TYPE_CHECKING:
    from headrace.lake import Lake

log = logging.getLogger(__name__)

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'",
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "same-origin",
}
"""Nothing is loaded, nobody else shows the page, and nothing stays behind."""


def application(routes: list[BaseRoute]) -> ASGIApp:
    """What the plugin mounts."""
    return PageGuard(Starlette(routes=routes, exception_handlers={HeadraceError: unreachable}))


@dataclass(frozen=True)
class PageGuard:
    """Middleware of pages that are each about one feed, the first part of the path: who may read its DAG may come."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # What is no plain request, such as a web socket, nobody needs and nobody gets.
        refused = await self.refusal(Request(scope)) if scope["type"] == "http" else WebSocketClose()
        await (refused or self.app)(scope, receive, send)

    async def refusal(self, request: Request) -> Response | None:
        """The answer to a request that may not go on."""
        if request.method not in ("GET", "HEAD"):
            return page("These pages are only read.", 405)
        try:
            identity = await Guard(self.app).identity(request)
        except Unauthorized:
            return page(f'<a href="{escape(base_url())}/" target="_top">Sign in to Airflow</a>, then come back.', 401)
        feed = feed_of(request.scope)
        if not feed:
            return None
        allowed = await run_in_threadpool(
            get_auth_manager().is_authorized_dag, method="GET", user=identity.user, details=DagDetails(id=feed)
        )
        return None if allowed else page("It takes the permission to read the feed's DAG.", 403)


def feed_of(scope: Scope) -> str:
    """The feed that a request is about, read as the routes read it: what is guarded must be what is served."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return path.lstrip("/").partition("/")[0]


def unreachable(_: Request, error: Exception) -> Response:
    """The answer when the lake is away."""
    log.error("The pages about feeds cannot reach the lake: %s", error)
    return page("The lake cannot be reached now; the API server's log says why.", 503)


@cache
def lake() -> "Lake":
    from headrace.airflow import connections
    from headrace.settings import Settings

    return connections.lake(Settings())


def base_url() -> str:
    """Where people reach this Airflow."""
    return str(conf.get("api", "base_url", fallback="")).rstrip("/")


def page(content: str, status: int = 200) -> Response:
    return HTMLResponse(content, status, headers=HEADERS)
