"""The pages about checks inside Airflow's API server: for the signed-in, and of a feed whose DAG they may read."""

import logging
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.configuration import conf
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from headrace import layout
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


def pages() -> ASGIApp:
    """What the plugin mounts."""
    routes = [Route("/", tab), Route("/{feed}", history), Route("/{feed}/{name}", single)]
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
            return _page("These pages are only read.", 405)
        try:
            identity = await Guard(self.app).identity(request)
        except Unauthorized:
            return _page(f'<a href="{escape(base_url())}/" target="_top">Sign in to Airflow</a>, then come back.', 401)
        feed = feed_of(request.scope)
        if not feed:
            return None
        allowed = await run_in_threadpool(
            get_auth_manager().is_authorized_dag, method="GET", user=identity.user, details=DagDetails(id=feed)
        )
        return None if allowed else _page("It takes the permission to read the feed's DAG.", 403)


def feed_of(scope: Scope) -> str:
    """The feed that a request is about, read as the routes read it: what is guarded must be what is served."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return path.lstrip("/").partition("/")[0]


async def tab(request: Request) -> Response:
    """Where the tabs of a DAG and of a run lead: they know them by Airflow's ids only."""
    feed, run = request.query_params.get("dag_id", ""), request.query_params.get("run_id")
    if not layout.NAME.fullmatch(feed):
        return _page("Only feeds have checks, and no feed is called so.", 404)
    place = f"{request.scope.get('root_path', '')}/{feed}"
    return RedirectResponse(f"{place}?run_id={quote(run)}" if run else place, 303)


def history(request: Request) -> Response:
    """A feed's last results, or the last one of a run."""
    from headrace import results
    from headrace.pages import checks

    feed, run = request.path_params["feed"], request.query_params.get("run_id")
    if not layout.NAME.fullmatch(feed):
        return _page("Only feeds have checks, and no feed is called so.", 404)
    if run is None:
        found = results.latest(feed, lake=_lake(), count=checks.SHOWN)
        return _page(checks.history(feed, found, base_url=base_url()))
    one = results.of_run(feed, run, lake=_lake())
    if one is None:
        return _page("This run has no result: its check has not come to an end, or had nothing to check.", 404)
    return _page(checks.single(one, base_url=base_url()))


def single(request: Request) -> Response:
    """One result by its name."""
    from headrace import results
    from headrace.pages import checks

    feed, name = request.path_params["feed"], request.path_params["name"]
    known = layout.NAME.fullmatch(feed) and layout.RESULT.fullmatch(name)
    found = results.read(feed, name, lake=_lake()) if known else None
    if found is None:
        return _page("There is no such result, or no longer.", 404)
    return _page(checks.single(found, base_url=base_url()))


def unreachable(_: Request, error: Exception) -> Response:
    """Where the lake does not answer, or no connection leads to it: the log says which, for it may name hosts."""
    log.error("The pages about checks cannot reach the lake: %s", error)
    return _page("The lake cannot be reached now; the API server's log says why.", 503)


@cache
def _lake() -> "Lake":
    from headrace.airflow import connections
    from headrace.settings import Settings

    return connections.lake(Settings())


def base_url() -> str:
    """Where people reach this Airflow."""
    return str(conf.get("api", "base_url", fallback="")).rstrip("/")


def _page(content: str, status: int = 200) -> Response:
    return HTMLResponse(content, status, headers=HEADERS)
