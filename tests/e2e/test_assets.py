"""A feed's tables as assets: who waits for them hears of new rows, and of nothing else."""

import io
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import httpx
import pytest
from airflow_runs import awaited, triggered
from confluent_kafka import Producer

SCHEMA = {
    "type": "record",
    "name": "Row",
    "feed": {"key": ["id"], "schedule": "0 0 1 1 *", "topic": {"partitions": 1}, "warehouses": {"finance": {}}},
    "fields": [{"name": "id", "type": "string"}],
}


@pytest.fixture
def feed(stack: Any) -> Iterator[str]:
    """A feed of the test's own, from a file."""
    path = Path(os.environ["HEADRACE_SCHEMAS"]) / f"t_{uuid.uuid4().hex[:8]}.avsc"
    path.write_text(json.dumps(SCHEMA))
    yield path.stem
    path.unlink()


def publish(feed: str, *ids: str) -> None:
    from headrace.airflow import connections

    (schema_id,) = connections.registry().writers(f"{feed}-value")
    producer = Producer(connections.kafka())
    for id_ in ids:
        body = io.BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(SCHEMA), {"id": id_})
        producer.produce(feed, key=id_, value=b"\0" + schema_id.to_bytes(4, "big") + body.getvalue())
    assert producer.flush(30) == 0


def events(airflow: httpx.Client, feed: str) -> list[tuple[str, str]]:
    """Which asset was told of, and by which task."""
    found = airflow.get("/api/v2/assets/events", params={"source_dag_id": feed, "limit": 100})
    found.raise_for_status()
    return sorted((each["name"], each["source_task_id"]) for each in found.json()["asset_events"])


def test_new_rows_are_told_of_once_and_an_idle_run_is_not(airflow: httpx.Client, feed: str) -> None:
    awaited(airflow, feed)
    publish(feed, "a", "b")
    triggered(airflow, feed)
    told = [(f"clean.{feed}", "publish"), (f"finance.{feed}", "load_finance")]
    assert events(airflow, feed) == told
    triggered(airflow, feed)
    assert events(airflow, feed) == told
