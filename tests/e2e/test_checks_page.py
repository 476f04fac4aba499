"""The pages about checks in the running Airflow: who may see them, and how a person finds them."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import registry_users
from browsing import base, open_tab, signed_in
from playwright.sync_api import Browser, expect

from headrace import layout
from headrace.outcome import Expectation, Outcome

FEED = "orders"
PRICE = Expectation(
    name="expect_column_values_to_be_between", arguments={"column": "price", "min_value": 0, "max_value": 5}
)


@pytest.fixture(scope="module")
def result(stack: Any) -> Any:
    """A result of a failed check, as the newest of the feed."""
    from headrace import results
    from headrace.airflow import connections
    from headrace.settings import Settings

    run = f"manual__{uuid.uuid4()}"
    outcome = Outcome(expectation=PRICE, success=False, unexpected=3, rows=9, keys=("k1", "k2", "k3"))
    made = results.Result(
        feed=FEED, run=run, branch=layout.branch(run), snapshot="1", at=datetime.now(UTC), outcomes=[outcome]
    )
    results.write(made, lake=connections.lake(Settings()))
    return made


@pytest.fixture(scope="module")
def clients(stack: Any) -> Iterator[dict[str, httpx.Client]]:
    made = {
        role: httpx.Client(base_url=base(), auth=(role, registry_users.password(role)), timeout=60)
        for role in ("viewer", "admin")
    }
    made["anonymous"] = httpx.Client(base_url=base(), timeout=60)
    yield made
    for each in made.values():
        each.close()


def test_the_signed_in_see_a_feeds_results_and_each_of_them(clients: dict[str, httpx.Client], result: Any) -> None:
    for role in ("viewer", "admin"):
        history = clients[role].get(f"/checks/{FEED}")
        assert (history.status_code, result.run in history.text) == (200, True)
        assert "default-src 'none'" in history.headers["Content-Security-Policy"]
        single = clients[role].get(f"/checks/{FEED}/{result.name}")
        assert (single.status_code, "3 of 9 rows; keys k1, k2, k3" in single.text) == (200, True)
        of_run = clients[role].get("/checks/", params={"dag_id": FEED, "run_id": result.run}, follow_redirects=True)
        assert (of_run.status_code, of_run.text) == (200, single.text)


@pytest.mark.parametrize(
    "path",
    ["/checks/", f"/checks/{FEED}", f"/checks/{FEED}/x", "/checks/a/b/c", "/checks/openapi.json", "/checks/docs"],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_nobody_else_learns_anything(clients: dict[str, httpx.Client], method: str, path: str) -> None:
    assert clients["anonymous"].request(method, path).status_code == httpx.codes.UNAUTHORIZED


def test_the_pages_are_only_read_and_what_is_not_there_is_not_found(clients: dict[str, httpx.Client]) -> None:
    admin = clients["admin"]
    assert admin.post(f"/checks/{FEED}").status_code == httpx.codes.METHOD_NOT_ALLOWED
    for path in (f"/checks/{FEED}/nothing", f"/checks/{FEED}/..%2Fother", "/checks/Not-A-Feed", "/checks/?dag_id=Not"):
        assert admin.get(path).status_code == httpx.codes.NOT_FOUND
    assert "No run of this feed was checked yet" in admin.get("/checks/never_checked").text


def test_a_person_finds_them_in_a_tab_of_the_dag(browser: Browser, password: str, result: Any) -> None:
    page = signed_in(browser, password)
    page.goto(f"{base()}/dags/{FEED}")
    open_tab(page, "Checks")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("1 of 1 checks failed; nothing was published")).to_be_visible(timeout=60_000)
    expect(frame.get_by_text(f"headrace compare {FEED} {result.branch}")).to_be_visible()
    frame.locator("a.cell").first.click()
    expect(frame.get_by_role("heading", name=f"{FEED}: one run's checks")).to_be_visible(timeout=60_000)
    page.close()
