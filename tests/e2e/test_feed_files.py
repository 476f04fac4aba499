"""A feed file's life in a running stack, as Airflow's API shows it; no other DAG notices any of it.

How many seconds each takes is measured by bench/feeds.py; here it only has to come true.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

SECONDS = 60
BETWEEN_QUESTIONS = 0.2
EXAMPLES = {"calls", "customers", "orders"}


def schema(*, description: str = "A feed of a test.", id_type: str = "string", **declared: Any) -> str:
    feed = {"key": ["id"], "owner": "test-team", "description": description, "schedule": "0 0 1 1 *", **declared}
    fields = [{"name": "id", "type": id_type, "doc": "Names the row."}]
    return json.dumps({"type": "record", "name": "Row", "feed": feed, "fields": fields})


@dataclass(frozen=True)
class Airflow:
    """What Airflow's API tells of DAGs and import errors."""

    client: httpx.Client

    def has(self, feed: str) -> bool:
        return bool(self._dag(feed))

    def description(self, feed: str) -> str | None:
        return self._dag(feed).get("description")

    def _dag(self, feed: str) -> dict[str, Any]:
        """As the list of DAGs shows it; empty when it does not."""
        listed = self.client.get("/api/v2/dags", params={"dag_id_pattern": feed})
        listed.raise_for_status()
        return {each["dag_id"]: each for each in listed.json()["dags"]}.get(feed, {})

    def errors(self, feed: str) -> list[str]:
        listed = self.client.get("/api/v2/importErrors", params={"limit": 100})
        listed.raise_for_status()
        return [each["stack_trace"] for each in listed.json()["import_errors"] if each["filename"].startswith(feed)]

    def details(self, feed: str) -> dict[str, Any]:
        told = self.client.get(f"/api/v2/dags/{feed}/details")
        told.raise_for_status()
        details: dict[str, Any] = told.json()
        return details

    def versions(self) -> dict[str, int]:
        """The example DAGs and their newest versions: what must not change."""
        known = {}
        for dag in EXAMPLES:
            assert self.has(dag)
            listed = self.client.get(f"/api/v2/dags/{dag}/dagVersions", params={"limit": 1})
            listed.raise_for_status()
            known[dag] = listed.json()["total_entries"]
        return known


def until(is_so: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"not so after {SECONDS} s: {what}"
        time.sleep(BETWEEN_QUESTIONS)


@pytest.fixture
def watched(airflow: httpx.Client) -> Iterator[Airflow]:
    """Airflow, whose other DAGs must be afterwards what they were before."""
    found = Airflow(airflow)
    until(lambda: all(map(found.has, EXAMPLES)), "the examples are DAGs")
    before = found.versions()
    yield found
    assert found.versions() == before
    assert not any(found.errors(example) for example in EXAMPLES)


@pytest.fixture
def file() -> Iterator[Path]:
    """A feed file that is not there yet."""
    path = Path(os.environ["HEADRACE_SCHEMAS"]) / f"t_{uuid.uuid4().hex[:8]}.avsc"
    yield path
    path.unlink(missing_ok=True)


def test_a_file_is_dropped_changed_broken_mended_and_deleted(watched: Airflow, file: Path) -> None:
    feed = file.stem

    file.write_text(schema(warehouses={"finance": {}}, runs={"retries": 4}))
    until(lambda: watched.has(feed), "a new file is a DAG")
    details = watched.details(feed)
    assert {tag["name"] for tag in details["tags"]} == {"feed", "owner:test-team", "to:finance"}
    assert details["owners"] == ["test-team"]
    assert "Names the row." in details["doc_md"]
    assert details["timetable_summary"] == "0 0 1 1 *"

    file.write_text(schema(description="Changed."))
    until(lambda: watched.description(feed) == "Changed.", "a changed file is a changed DAG")

    file.write_text(schema(description="Broken.", key=["idd"]))
    until(lambda: watched.errors(feed), "a broken file is an import error")
    (error,) = watched.errors(feed)
    assert f'{file.name}: feed.key names "idd", which is not a field.' in error
    assert 'Did you mean "id"?' in error
    assert watched.description(feed) == "Changed."

    file.write_text(schema(description="Mended."))
    until(lambda: not watched.errors(feed), "a mended file is no import error")
    until(lambda: watched.description(feed) == "Mended.", "a mended file is a DAG again")

    file.unlink()
    until(lambda: not watched.has(feed), "a deleted file is no DAG")
    assert not watched.errors(feed)


def test_an_incompatible_version_is_an_import_error_and_the_feed_goes_on_with_its_last_good_one(
    watched: Airflow, file: Path, airflow: httpx.Client
) -> None:
    feed = file.stem
    file.write_text(schema())
    until(lambda: watched.has(feed), "a new file is a DAG")
    until(lambda: airflow.get(f"/registry/subjects/{feed}-value/versions").json() == [1], "it was registered by itself")

    file.write_text(schema(description="Incompatible.", id_type="long"))
    until(lambda: watched.errors(feed), "an incompatible version is an import error")
    (error,) = watched.errors(feed)
    assert f"{file.name}: fields.0.type does not fit the registry" in error
    assert watched.description(feed) == "A feed of a test."
    assert airflow.get(f"/registry/subjects/{feed}-value/versions").json() == [1]

    file.write_text(schema(description="Compatible."))
    until(lambda: watched.description(feed) == "Compatible.", "a compatible version is taken")
    until(lambda: not watched.errors(feed), "and its error is gone")
    assert airflow.get(f"/registry/subjects/{feed}-value/versions").json() == [1, 2]


def test_a_file_that_was_never_good_is_an_import_error_and_no_dag(watched: Airflow, file: Path) -> None:
    file.write_text("{")
    until(lambda: watched.errors(file.stem), "a bad file is an import error")
    assert not watched.has(file.stem)
    file.unlink()
    until(lambda: not watched.errors(file.stem), "a deleted file is no import error")


def test_a_subject_registered_as_a_feed_is_a_dag_until_it_is_deleted(watched: Airflow, airflow: httpx.Client) -> None:
    from headrace.airflow import connections
    from headrace.kafka import topic

    feed = f"t_{uuid.uuid4().hex[:8]}"
    subject = f"/registry/subjects/{feed}-value"
    body = {"schemaType": "AVRO", "schema": schema(description="Registered over REST.", topic={"partitions": 2})}
    airflow.post(f"{subject}/versions", json=body).raise_for_status()
    until(lambda: watched.description(feed) == "Registered over REST.", "a registered feed is a DAG")
    assert len(topic.describe(connections.kafka(), feed).partitions) == 2
    body["schema"] = schema(description="Changed over REST.", topic={"partitions": 2})
    airflow.post(f"{subject}/versions", json=body).raise_for_status()
    until(lambda: watched.description(feed) == "Changed over REST.", "its next version is a changed DAG")
    airflow.delete(subject).raise_for_status()
    until(lambda: not watched.has(feed), "a deleted subject is no DAG")
