"""An example feed whose jobs a running Airflow submits to a standalone Spark cluster, held against the oracle."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from airflow_runs import awaited, triggered
from spark_cluster import Cluster, cluster

from demo.comparison import compared
from demo.feed import SCHEMAS, read_feed
from demo.generator import meanings
from demo.oracle import expected
from demo.publisher import publish
from demo.registration import register
from demo.settings import read_settings
from demo.stores import found, open_catalog

EXAMPLE, NAME, CONNECTION = "customers", "customers_submitted", "spark_cluster"


@pytest.fixture
def submitting(airflow: httpx.Client, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster, and a connection to it as on-call would make one in the UI."""
    with cluster(tmp_path) as started:
        made = airflow.post(
            "/api/v2/connections", json={"connection_id": CONNECTION, "conn_type": "spark", "host": started.master}
        )
        made.raise_for_status()
        yield started
        airflow.delete(f"/api/v2/connections/{CONNECTION}").raise_for_status()


@pytest.fixture
def path(submitting: Cluster) -> Iterator[Path]:
    """The example's file under another name, with one attribute more."""
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{EXAMPLE}.avsc").read_text(encoding="utf-8"))
    schema["feed"] |= {"schedule": "0 0 1 1 *", "spark": {"connection": CONNECTION, "conf": submitting.conf}}
    file = Path(os.environ["HEADRACE_SCHEMAS"]) / f"{NAME}.avsc"
    file.write_text(json.dumps(schema), encoding="utf-8")
    yield file
    file.unlink()


def test_an_example_feed_runs_by_spark_submit_to_the_oracles_rows(airflow: httpx.Client, path: Path) -> None:
    settings, feed = read_settings(os.environ), read_feed(EXAMPLE, name=NAME, folder=path.parent)
    registered = register()
    ids = {name: each.id for name, each in registered.items()}
    publish(feed, topic=registered[NAME].topic, kafka=settings.kafka, rounds=1, ids=ids)
    awaited(airflow, NAME)
    states = {task["task_id"]: task["state"] for task in triggered(airflow, NAME)}
    assert states.pop("approve") == "skipped"
    assert set(states.values()) == {"success"}
    stands = found(feed, catalog=open_catalog(settings.catalog), readers=settings.readers)
    said = expected(feed, meanings(feed, rounds=1), mask_key=settings.mask_key)
    assert compared(feed, said, found=stands).reconciled
    logs = Path(os.environ["HEADRACE_STATE"]) / "logs" / "airflow" / f"dag_id={NAME}"
    text = "\n".join(each.read_text(errors="replace") for each in logs.rglob("*.log"))
    assert text.count("Spark-Submit cmd") == 2  # transform and check
    assert "@example." not in text
