"""The whole story in a running Airflow: publish, run every DAG, compare every store with the oracle, row by row."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psycopg
from airflow_runs import triggered
from playwright.sync_api import Browser, expect

FEEDS = ("calls", "customers", "orders")
PROGRAMS = Path(sys.executable).parent


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


def test_every_feed_ends_up_in_every_warehouse_as_the_oracle_says(demo: str) -> None:
    rows = [line for line in demo.splitlines() if line.split() and line.split()[0] in FEEDS and "✓" in line]
    assert len(rows) == len(FEEDS)


def test_the_demo_ends_with_a_query_and_the_way_to_the_ui(demo: str) -> None:
    assert "revenue" in demo
    assert os.environ["AIRFLOW__API__BASE_URL"] in demo


def test_an_idle_feed_only_looks_and_skips_the_rest(airflow: httpx.Client, demo: str) -> None:
    tasks = triggered(airflow, "orders")
    states = {task["task_id"]: task["state"] for task in tasks}
    assert states.pop("extract") == "success"
    assert set(states.values()) == {"skipped"}


def test_a_teams_own_job_follows_the_feed_that_it_reads(airflow: httpx.Client, demo: str) -> None:
    triggered(airflow, "hourly_revenue")  # the publishing of orders has triggered it too; both take turns
    with psycopg.connect(os.environ["HEADRACE_READER_FINANCE"]) as finance:
        computed = finance.execute(
            "select currency, sum(orders), sum(revenue) from hourly_revenue group by 1"
        ).fetchall()
        ordered = finance.execute(
            "select currency, count(*), sum(price) from orders where status <> 'cancelled' group by 1"
        ).fetchall()
    assert ordered
    assert sorted(computed) == sorted(ordered)


def test_the_runs_say_what_they_did_without_a_personal_value(airflow: httpx.Client, demo: str) -> None:
    logs = Path(os.environ["HEADRACE_STATE"]) / "logs"
    text = "\n".join(path.read_text(errors="replace") for path in logs.rglob("*.log"))
    assert "archived" in text
    assert "rows agree" in text
    assert "@example." not in text


def test_a_terminal_in_the_virtual_environment_talks_to_the_stack(stack: Any) -> None:
    listed = run(str(PROGRAMS / "airflow"), "dags", "list", "--output", "json")
    assert {dag["dag_id"] for dag in json.loads(listed.stdout)} >= set(FEEDS)
    registered = run(str(PROGRAMS / "headrace"), "register", "--json")
    assert {each["feed"] for each in json.loads(registered.stdout)} >= set(FEEDS)


def test_a_person_signs_in_and_sees_the_feeds_and_their_stages(browser: Browser, password: str, demo: str) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    base = os.environ["AIRFLOW__API__BASE_URL"]
    page.goto(f"{base}/auth/login")
    page.get_by_label("username").fill("admin")
    page.get_by_label("password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "login" not in url)
    page.goto(f"{base}/dags")
    for feed in FEEDS:
        expect(page.get_by_role("link", name=feed, exact=True).first).to_be_visible(timeout=30_000)
    page.goto(f"{base}/dags/orders")
    for task in ("extract", "reconcile_archive", "transform", "check", "publish", "load_finance", "reconcile_finance"):
        expect(page.get_by_text(task, exact=True).first).to_be_visible(timeout=30_000)
    page.close()
