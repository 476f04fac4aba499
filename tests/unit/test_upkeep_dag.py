"""The upkeep DAG: one task per feed, which are listed when it runs; parsed without anything heavy."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.airflow import upkeep

FILE = Path(__file__).parents[2] / "dags" / "upkeep.py"
HEAVY = ("pyspark", "pyarrow", "pyiceberg", "confluent_kafka", "psycopg", "adbc_driver_manager", "great_expectations")


@pytest.fixture(scope="module")
def dag() -> Any:
    return runpy.run_path(str(FILE))["upkeep"]()


def test_it_runs_nightly_and_one_task_per_feed(dag: Any) -> None:
    assert dag.task_dict["keep"].is_mapped
    assert dag.task_dict["keep"].upstream_task_ids == {"feeds"}
    assert dag.timetable.expression == "30 2 * * *"


def test_what_waits_for_a_server_is_ended_some_time(dag: Any) -> None:
    assert dag.task_dict["keep"].execution_timeout
    assert dag.task_dict["warehouses"].execution_timeout


def test_feeds_are_listed_when_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    (tmp_path / "orders.avsc").write_text("{}")
    (tmp_path / "broken.json").write_text("not JSON: its own task tells")
    assert upkeep.every_feed() == ["broken", "orders"]


def test_parsing_it_imports_nothing_heavy_and_reads_no_feed() -> None:
    code = f"import runpy, sys; runpy.run_path({str(FILE)!r}); print([name for name in {HEAVY} if name in sys.modules])"
    environment = {"HEADRACE_SCHEMAS": "/nowhere", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"
