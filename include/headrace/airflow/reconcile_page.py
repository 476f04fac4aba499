"""The page about reconciliations inside Airflow's API server."""

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from headrace import layout
from headrace.airflow.feed_pages import application, base_url, lake, page

NO_FEED = "Only feeds are reconciled, and no feed is called so."


def pages() -> ASGIApp:
    """What the plugin mounts."""
    return application([Route("/", tab), Route("/{feed}", history)])


async def tab(request: Request) -> Response:
    """Where the tab of a DAG leads: it knows it by Airflow's id only."""
    feed = request.query_params.get("dag_id", "")
    if not layout.NAME.fullmatch(feed):
        return page(NO_FEED, 404)
    return RedirectResponse(f"{request.scope.get('root_path', '')}/{feed}", 303)


def history(request: Request) -> Response:
    """How a feed's stores compared lately."""
    from headrace import reconciliation
    from headrace.pages import reconciliations

    feed = request.path_params["feed"]
    if not layout.NAME.fullmatch(feed):
        return page(NO_FEED, 404)
    found = reconciliation.latest(feed, lake=lake(), count=reconciliations.SHOWN, now=datetime.now(UTC))
    return page(reconciliations.history(feed, found, base_url=base_url()))
