"""A run that its checks stopped waits for somebody; meanwhile the feed goes on archiving."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import registry_users
from airflow_runs import awaited, ended, logged, pushed, reached, started, states, triggered
from row_feed import RowFeed, row_feed

READING = 3.0
WHY = "a discount of the sales team, seen and agreed"
CHECKED = {"checks": [{"column": "price", "between": [0, 100]}], "runs": {"retries": 0, "approval": "1h"}}


@pytest.fixture
def feed(stack: Any, airflow: httpx.Client) -> Iterator[RowFeed]:
    with row_feed(CHECKED) as made:
        awaited(airflow, made.name)
        yield made


def answer(airflow: httpx.Client, feed: str, run: str, *, option: str, reason: str) -> None:
    """What the form in the UI sends, once it is asked."""
    reached(airflow, feed, run, task="approve", state="awaiting_input")
    # Airflow fails a task that is answered before its scheduler has heard that the task's process ended; nobody sees
    # when it has. A person takes longer.
    time.sleep(READING)
    airflow.patch(
        f"/api/v2/dags/{feed}/dagRuns/{run}/taskInstances/approve/-1/hitlDetails",
        json={"chosen_options": [option], "params_input": {"reason": reason}},
    ).raise_for_status()


def test_on_call_publishes_what_a_check_stopped_while_the_feed_goes_on_archiving(
    airflow: httpx.Client, feed: RowFeed
) -> None:
    from headrace import results
    from headrace.airflow import connections
    from headrace.settings import Settings

    feed.publish(("a", 5))
    triggered(airflow, feed.name)
    feed.publish(("b", 500))
    waits = started(airflow, feed.name)
    reached(airflow, feed.name, waits, task="approve", state="awaiting_input")
    assert states(airflow, feed.name, waits)["check"] == "failed"
    asked = airflow.get(f"/api/v2/dags/{feed.name}/dagRuns/{waits}/hitlDetails").json()["hitl_details"]
    assert "price" in asked[0]["body"]
    page = pushed(airflow, feed.name, waits, task="check", key="checks")
    logged(airflow, feed.name, waits, page, task="check")
    shown = httpx.get(page, auth=("viewer", registry_users.password("viewer")), timeout=60).raise_for_status().text
    assert waits in shown
    assert "checks failed; nothing was published" in shown

    feed.publish(("c", 7))
    later = started(airflow, feed.name)
    assert ended(airflow, feed.name, later) == "failed"
    assert feed.archived() == 3
    logged(airflow, feed.name, later, f"run {waits} waits for an approval already", task="approve")
    assert feed.published() == {"a": 5}

    answer(airflow, feed.name, waits, option="Publish anyway", reason=" ")
    answer(airflow, feed.name, waits, option="Publish anyway", reason=WHY)
    assert ended(airflow, feed.name, waits) == "success"
    assert feed.published() == {"a": 5, "b": 500}
    assert states(airflow, feed.name, waits)["check"] == "failed"
    approval = pushed(airflow, feed.name, waits, task="approve")
    assert (approval["by"], approval["why"]) == ("admin", WHY)
    logged(airflow, feed.name, waits, f"approved by admin at {approval['at']}: {WHY}", task="publish")

    kept = results.of_run(feed.name, waits, lake=connections.lake(Settings()))
    assert kept is not None
    assert kept.approval is not None
    assert (kept.approval.by, kept.approval.why) == ("admin", WHY)

    triggered(airflow, feed.name)
    assert feed.published() == {"a": 5, "b": 500, "c": 7}


def test_what_another_run_has_published_meanwhile_is_not_published_again(airflow: httpx.Client, feed: RowFeed) -> None:
    feed.publish(("b", 500))
    waits = started(airflow, feed.name)
    reached(airflow, feed.name, waits, task="approve", state="awaiting_input")
    feed.publish(("b", 50))
    triggered(airflow, feed.name)
    assert feed.published() == {"b": 50}
    answer(airflow, feed.name, waits, option="Publish anyway", reason=WHY)
    assert ended(airflow, feed.name, waits) == "success"
    assert states(airflow, feed.name, waits)["publish"] == "skipped"
    assert feed.published() == {"b": 50}


def test_a_run_that_is_not_approved_ends_failed_and_the_next_one_may_wait(airflow: httpx.Client, feed: RowFeed) -> None:
    feed.publish(("b", 500))
    left = started(airflow, feed.name)
    answer(airflow, feed.name, left, option="Do not publish", reason="")
    assert ended(airflow, feed.name, left) == "failed"
    assert states(airflow, feed.name, left)["publish"] == "upstream_failed"
    waits = started(airflow, feed.name)
    reached(airflow, feed.name, waits, task="approve", state="awaiting_input")
    # Marked in the UI it waits no more, and nobody may wait for it in vain.
    path = f"/api/v2/dags/{feed.name}/dagRuns/{waits}"
    airflow.patch(path, json={"state": "failed"}).raise_for_status()
    third = started(airflow, feed.name)
    reached(airflow, feed.name, third, task="approve", state="awaiting_input")
    assert feed.published() == {}
