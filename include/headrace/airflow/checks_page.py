"""The pages about checks inside Airflow's API server."""

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from headrace import layout
from headrace.airflow.feed_pages import application, base_url, lake, page

NO_FEED = "Only feeds have checks, and no feed is called so."


def pages() -> ASGIApp:
    """What the plugin mounts."""
    return application([Route("/", tab), Route("/{feed}", history), Route("/{feed}/{name}", single)])


async def tab(request: Request) -> Response:
    """Where the tabs of a DAG and of a run lead: they know them by Airflow's ids only."""
    feed, run = request.query_params.get("dag_id", ""), request.query_params.get("run_id")
    if not layout.NAME.fullmatch(feed):
        return page(NO_FEED, 404)
    place = f"{request.scope.get('root_path', '')}/{feed}"
    return RedirectResponse(f"{place}?run_id={quote(run)}" if run else place, 303)


def history(request: Request) -> Response:
    """A feed's last results, or the last one of a run."""
    from headrace import results
    from headrace.pages import checks

    feed, run = request.path_params["feed"], request.query_params.get("run_id")
    if not layout.NAME.fullmatch(feed):
        return page(NO_FEED, 404)
    if run is None:
        found = results.latest(feed, lake=lake(), count=checks.SHOWN)
        return page(checks.history(feed, found, base_url=base_url()))
    one = results.of_run(feed, run, lake=lake())
    if one is None:
        return page("This run has no result: its check has not come to an end, or had nothing to check.", 404)
    return page(checks.single(one, base_url=base_url()))


def single(request: Request) -> Response:
    """One result by its name."""
    from headrace import results
    from headrace.pages import checks

    feed, name = request.path_params["feed"], request.path_params["name"]
    known = layout.NAME.fullmatch(feed) and layout.RESULT.fullmatch(name)
    found = results.read(feed, name, lake=lake()) if known else None
    if found is None:
        return page("There is no such result, or no longer.", 404)
    return page(checks.single(found, base_url=base_url()))
