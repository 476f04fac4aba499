"""The DAG `import` in a running stack: its form, a run that imports files, and one that rejects a row."""

import json
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from airflow_runs import awaited

SECONDS = 300
BETWEEN_QUESTIONS = 0.3


@pytest.fixture
def feed(airflow: httpx.Client) -> Iterator[str]:
    """A feed whose file was put into the folder; no run of it is ever due."""
    name = f"t_{uuid.uuid4().hex[:10]}"
    declared = {"key": ["id"], "schedule": "0 0 1 1 *"}
    fields = [{"name": "id", "type": "long"}, {"name": "word", "type": "string"}]
    path = Path(os.environ["HEADRACE_SCHEMAS"]) / f"{name}.avsc"
    path.write_text(json.dumps({"type": "record", "name": "Row", "feed": declared, "fields": fields}))
    awaited(airflow, name)
    yield name
    path.unlink()


def run(airflow: httpx.Client, form: dict[str, Any]) -> tuple[str, str]:
    """Fill in the form and wait: how the run ended, and what its log says."""
    made = airflow.post("/api/v2/dags/import/dagRuns", json={"logical_date": None, "conf": form})
    made.raise_for_status()
    path = f"/api/v2/dags/import/dagRuns/{made.json()['dag_run_id']}"
    deadline = time.monotonic() + SECONDS
    while (state := airflow.get(path).json()["state"]) not in ("success", "failed"):
        assert time.monotonic() < deadline, f"import is still {state}"
        time.sleep(BETWEEN_QUESTIONS)
    log = airflow.get(f"{path}/taskInstances/import/logs/1", headers={"Accept": "application/json"})
    return state, log.text


def ends(feed: str) -> int:
    from headrace.airflow import connections
    from headrace.kafka import span, topic
    from headrace.kafka.span import Span

    kafka = connections.kafka()
    found = topic.describe(kafka, feed).partitions
    spans = {number: Span(reach.start, reach.end) for number, reach in found.items() if reach.end}
    return sum(batch.num_rows for batch in span.read(kafka, feed, spans=spans))


def test_the_form_imports_files_once_and_tells_rejected_rows(airflow: httpx.Client, feed: str, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text("".join(f'{{"id": {n}, "word": "w"}}\n' for n in range(100)))
    # Lists that are left empty come from the browser as null.
    form = {"feed": feed, "source": str(tmp_path / "good.jsonl"), "nulls": None, "header": None}
    state, log = run(airflow, form)
    assert state == "success", log
    assert ends(feed) == 100
    assert run(airflow, form)[0] == "success"
    assert ends(feed) == 100
    (tmp_path / "bad.jsonl").write_text('{"id": 1, "word": "w"}\n{"id": 2, "word": 1.5}\n')
    state, log = run(airflow, {**form, "source": str(tmp_path / "bad.jsonl")})
    assert state == "failed"
    assert "some were rejected: unfit 1" in log
    assert ends(feed) == 101


def test_a_form_without_a_feed_or_with_a_wrong_rate_is_refused_at_once(airflow: httpx.Client) -> None:
    for wrong in ({"source": "a.csv"}, {"feed": "orders", "source": "a.csv", "source_rate": -1}):
        answer = airflow.post("/api/v2/dags/import/dagRuns", json={"logical_date": None, "conf": wrong})
        assert answer.status_code == httpx.codes.BAD_REQUEST


def test_the_form_looks_without_importing_and_gives_up_what_was_begun(
    airflow: httpx.Client, feed: str, tmp_path: Path
) -> None:
    (tmp_path / "some.jsonl").write_text('{"id": 1, "word": "w"}\n{"id": 2, "word": 1.5}\n')
    form = {"feed": feed, "source": str(tmp_path / "some.jsonl"), "scratch": str(tmp_path)}
    state, log = run(airflow, {**form, "dry_run": True})
    assert state == "success", log
    assert "no text" in log
    assert ends(feed) == 0
    state, log = run(airflow, {**form, "discard": True})
    assert state == "success", log
    assert ends(feed) == 0
