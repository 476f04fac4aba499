"""Reconciling in the running stack: a run's own proofs, the night's for everything, and the page that shows both."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow.compute as pc
import pytest
import registry_users
from airflow_runs import SECONDS, awaited, ended, started, states
from browsing import base, open_tab, signed_in
from playwright.sync_api import Browser, expect
from row_feed import RowFeed, row_feed

from headrace import heads, layout
from headrace.lake import heads_of

DAG = "reconcile"


@pytest.fixture(scope="module")
def feed(stack: Any, airflow: httpx.Client) -> Iterator[RowFeed]:
    """A feed of two rows that were published."""
    with row_feed({"runs": {"retries": 0}, "correctness": {"sum": ["price"]}, "warehouses": {"finance": {}}}) as made:
        awaited(airflow, made.name)
        airflow.patch(f"/api/v2/dags/{made.name}", json={"is_paused": False}).raise_for_status()
        made.publish(("a", 1), ("b", 2))
        yield made


@pytest.fixture(scope="module")
def run(airflow: httpx.Client, feed: RowFeed) -> dict[str, str | None]:
    made = started(airflow, feed.name)
    assert ended(airflow, feed.name, made) == "success"
    return states(airflow, feed.name, made)


def night(airflow: httpx.Client, feed: RowFeed) -> dict[str | None, str]:
    """How each store of the feed fared in a run of the DAG that was asked for it alone."""
    awaited(airflow, DAG)
    made = started(airflow, DAG, conf={"feed": feed.name})
    ended(airflow, DAG, made)
    path = f"/api/v2/dags/{DAG}/dagRuns/{made}/taskInstances/compare/listMapped"
    found: dict[str | None, str] = {None: ""}
    deadline = time.monotonic() + SECONDS
    while None in found:  # a task that failed gets its name a moment after its state
        assert time.monotonic() < deadline, found
        listed = airflow.get(path).json()["task_instances"]
        found = {each["rendered_map_index"]: each["state"] for each in listed}
    return found


def lose_a_row(feed: RowFeed) -> None:
    """Take a row out of the clean table behind Headrace's back."""
    from headrace.airflow import connections
    from headrace.settings import Settings

    table = connections.lake(Settings()).find(layout.clean_table(feed.name))
    assert table is not None
    rows = table.scan().to_arrow()
    noted = {heads.PROPERTY: heads_of(table).to_json()}
    table.overwrite(rows.filter(pc.field("id") != "b"), snapshot_properties=noted)


def test_a_run_proves_what_it_archived_and_published(run: dict[str, str | None]) -> None:
    proofs = {task: state for task, state in run.items() if task.startswith("reconcile_")}
    assert proofs == dict.fromkeys(("reconcile_archive", "reconcile_clean", "reconcile_finance"), "success")


def test_a_night_compares_everything_and_what_one_store_trips_over_is_its_own(
    airflow: httpx.Client, feed: RowFeed, run: dict[str, str | None], browser: Browser, password: str
) -> None:
    stores = [f"{feed.name}: {store}" for store in ("archive", "clean", "finance")]
    assert night(airflow, feed) == dict.fromkeys(stores, "success")
    lose_a_row(feed)
    assert night(airflow, feed) == {**dict.fromkeys(stores, "success"), stores[1]: "failed"}
    page = signed_in(browser, password)
    page.goto(f"{base()}/dags/{feed.name}")
    open_tab(page, "Reconcile")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="archive–clean")).to_be_visible(timeout=60_000)
    expect(frame.get_by_text("lost 1: b")).to_be_visible()
    page.close()


@pytest.mark.parametrize("path", ["", "orders", "docs", "openapi.json"])
def test_only_the_signed_in_see_it(stack: Any, path: str) -> None:
    assert httpx.get(f"{base()}/reconcile/{path}", timeout=60).status_code == httpx.codes.UNAUTHORIZED
    viewer = httpx.get(
        f"{base()}/reconcile/orders",
        auth=("viewer", registry_users.password("viewer")),
        timeout=60,
        follow_redirects=True,
    )
    assert viewer.status_code == httpx.codes.OK
    assert "default-src 'none'" in viewer.headers["Content-Security-Policy"]
