"""The rebuild DAG in a running stack: what triggering it does, for readers and for who reads about its checks."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import registry_users
from airflow_runs import awaited, ended, logged, pushed, started, triggered
from row_feed import RowFeed, row_feed

DAG = "rebuild"
CHECKS = [{"column": "price", "between": [0, 10]}]


@pytest.fixture
def feed(stack: Any, airflow: httpx.Client) -> Iterator[RowFeed]:
    with row_feed({"runs": {"retries": 0}}) as made:
        awaited(airflow, made.name)
        yield made


def test_a_triggered_rebuild_is_checked_and_then_switched_to(airflow: httpx.Client, feed: RowFeed) -> None:
    from headrace import results
    from headrace.airflow import connections
    from headrace.settings import Settings

    feed.publish(("a", 5), ("a", 50))
    triggered(airflow, feed.name)
    assert feed.published() == {"a": 50}
    awaited(airflow, DAG)

    feed.declare({"checks": CHECKS})
    stopped = started(airflow, DAG, conf={"feed": feed.name, "dry_run": False})
    assert ended(airflow, DAG, stopped) == "failed"
    logged(airflow, DAG, stopped, "rebuild again. Every outcome: ", task="rebuild")
    assert feed.published() == {"a": 50}

    feed.declare({"checks": CHECKS, "merge": "first"})
    (task,) = triggered(airflow, DAG, conf={"feed": feed.name, "dry_run": False})
    done = pushed(airflow, DAG, task["dag_run_id"], task="rebuild")
    assert (done["published"], done["rows"]) == (True, {"added": 0, "removed": 0, "changed": 1})
    assert feed.published() == {"a": 5}
    kept = results.latest(feed.name, lake=connections.lake(Settings()), count=2)
    assert [len(each.stopped) for each in kept] == [0, 1]
    assert httpx.URL(done["checks"]).path.endswith(kept[0].name)
    page = httpx.get(done["checks"], auth=("viewer", registry_users.password("viewer")), timeout=60)
    assert kept[0].run in page.raise_for_status().text
