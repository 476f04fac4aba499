"""The replay DAG in a running stack: its form in the browser, and what triggering it does."""

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from airflow_runs import awaited, triggered
from playwright.sync_api import Browser, Page, expect
from workshop import Record, Workshop

FIELDS = [{"name": "id", "type": "string"}, {"name": "state", "type": "string"}]
SCHEMA = {
    "type": "record",
    "name": "Row",
    "feed": {"key": ["id"], "schedule": "0 0 1 1 *", "topic": {"partitions": 1}},
    "fields": FIELDS,
}
DAG = "replay"


@pytest.fixture
def shop(stack: Any, airflow: httpx.Client) -> Iterator[Workshop]:
    """A feed of the test's own, from a file, with five records merged by its DAG."""
    from headrace import feed as feeds
    from headrace.airflow import connections
    from headrace.settings import Settings

    path = Path(os.environ["HEADRACE_SCHEMAS"]) / f"t_{uuid.uuid4().hex[:8]}.avsc"
    path.write_text(json.dumps(SCHEMA))
    try:
        awaited(airflow, path.stem)
        (schema_id,) = connections.registry().writers(f"{path.stem}-value")
        made = Workshop(feeds.load(path), schema_id, connections.kafka(), connections.lake(Settings()))
        made.publish(*(Record({"id": f"key-{number}", "state": "fine"}) for number in range(5)))
        triggered(airflow, path.stem)
        yield made
    finally:
        path.unlink()


def result(airflow: httpx.Client, **form: Any) -> dict[str, Any]:
    """Trigger a replay with a form, and what it told in the end."""
    awaited(airflow, DAG)
    (task,) = triggered(airflow, DAG, conf=form)
    path = f"/api/v2/dags/{DAG}/dagRuns/{task['dag_run_id']}/taskInstances/replay/xcomEntries/return_value"
    told: dict[str, Any] = airflow.get(path, params={"deserialize": True}).json()["value"]
    return told


def rows(shop: Workshop) -> list[dict[str, Any]]:
    from headrace import layout

    found = shop.lake.find(layout.clean_table(shop.feed.name)).scan().to_arrow().to_pylist()
    return sorted(found, key=str)


def test_a_triggered_replay_sends_the_slice_and_no_row_changes(airflow: httpx.Client, shop: Workshop) -> None:
    before = rows(shop)
    slice_ = {"feed": shop.feed.name, "offsets": ["0:1-3"], "partitions": ["0"], "keys": ["key-1", "key-2", "key-9"]}
    counted = result(airflow, **slice_, dry_run=True)
    assert (counted["records"], counted["dry_run"]) == (2, True)
    sent = result(airflow, **slice_, dry_run=False)
    assert (sent["records"], sent["topic"]) == (2, shop.feed.topic)
    assert "key-" not in json.dumps(sent)
    assert result(airflow, **slice_, dry_run=False)["records"] == 0
    triggered(airflow, shop.feed.name)
    assert rows(shop) == before
    assert shop.extract().records == 0, "the copies were archived"
    told = json.loads(command(shop.feed.name, "--dry-run", "--json").stdout)
    assert (told["records"], told["copies"], [hour["records"] for hour in told["hours"]]) == (5, 2, [5])
    shown = command(shop.feed.name, "--offsets", "0:4-4").stdout
    assert shown.startswith("1 records, ")
    assert "key-" not in shown
    refused = command(shop.feed.name, "--offsets", "4")
    assert (refused.returncode, "PARTITION:FIRST-LAST" in refused.stderr) == (2, True)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("headrace")
    return subprocess.run([program, "replay", *arguments], check=False, capture_output=True, text=True)


def test_the_form_asks_for_a_slice_and_says_what_becomes_of_keys(
    airflow: httpx.Client, browser: Browser, password: str
) -> None:
    awaited(airflow, DAG)
    page = signed_in(browser, password)
    page.goto(f"{os.environ['AIRFLOW__API__BASE_URL']}/dags/{DAG}")
    page.get_by_role("button", name=re.compile("^Trigger")).first.click()
    expect(page.get_by_role("checkbox", name="Dry run")).to_be_checked(timeout=60_000)
    expect(page.get_by_role("checkbox", name="Quarantine")).not_to_be_checked()
    expect(page.get_by_role("spinbutton", name="Rate", exact=True)).to_be_visible()
    for said in (
        "The feed's name.",
        "Kafka timestamps before this.",
        "such as 0:100-199",
        "stay in Airflow's database",
    ):
        expect(page.get_by_text(said)).to_be_visible()
    expect(page.get_by_text("Select date and time")).to_have_count(2)
    page.close()


def signed_in(browser: Browser, password: str) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 1500})
    page.goto(f"{os.environ['AIRFLOW__API__BASE_URL']}/")
    page.locator("input[name=username]").fill("admin")
    page.locator("input[name=password]").fill(password)
    page.locator("button[type=submit]").click()
    page.wait_for_url(lambda url: "login" not in url, timeout=60_000)
    return page
