"""The reconcile DAG: one task for each store of each feed, listed when it runs; parsed without anything heavy."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.airflow import reconciling

FILE = Path(__file__).parents[2] / "dags" / "reconcile.py"
HEAVY = ("pyspark", "pyarrow", "pyiceberg", "confluent_kafka", "psycopg", "adbc_driver_manager", "great_expectations")
SCHEMA = {
    "type": "record",
    "name": "Row",
    "feed": {"key": ["id"], "warehouses": {"finance": {}}},
    "fields": [{"name": "id", "type": "string"}],
}


def test_it_runs_nightly_and_one_task_per_store() -> None:
    dag: Any = runpy.run_path(str(FILE))["reconcile"]()
    assert dag.task_dict["compare"].is_mapped
    assert dag.task_dict["compare"].upstream_task_ids == {"pairs"}
    assert dag.timetable.expression == "30 3 * * *"
    assert dag.params["feed"] is None


def test_stores_are_listed_when_it_runs_and_a_file_at_fault_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    monkeypatch.setenv("HEADRACE_WAREHOUSES", str(tmp_path / "none"))
    (tmp_path / "orders.avsc").write_text(json.dumps(SCHEMA))
    (tmp_path / "broken.json").write_text("not JSON: its own task tells")
    orders = [{"feed": "orders", "store": store} for store in ("archive", "clean", "finance")]
    assert reconciling.every_pair(None) == [{"feed": "broken", "store": "archive"}, *orders]
    assert reconciling.every_pair("orders") == orders


def test_parsing_it_imports_nothing_heavy_and_reads_no_feed() -> None:
    code = f"import runpy, sys; runpy.run_path({str(FILE)!r}); print([name for name in {HEAVY} if name in sys.modules])"
    environment = {"HEADRACE_SCHEMAS": "/nowhere", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"
