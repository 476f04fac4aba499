"""The factory: a feed file in, its DAG out, and nothing else touched on the way."""

import json
import subprocess
import sys
import textwrap
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
import pytest

from headrace.airflow.factory import build_dag, documentation, tags
from headrace.airflow.stubs import Stubs
from headrace.feed import Feed, parse

REPOSITORY = Path(__file__).parents[2]
HEAVY = ("pyspark", "pyarrow", "pyiceberg", "confluent_kafka", "psycopg", "adbc_driver_manager", "great_expectations")


def text(**declared: Any) -> str:
    fields = [
        {"name": "id", "type": "string", "doc": "Names the row;\nnever a|b."},
        {"name": "email", "type": "string", "pii": "email"},
    ]
    feed = {"key": ["id"], "owner": "shop-team", **declared}
    return json.dumps({"type": "record", "name": "Row", "doc": "One row.", "feed": feed, "fields": fields})


def feed(**declared: Any) -> Feed:
    return parse("orders.avsc", text(**declared))


def dag(folder: Path, **declared: Any) -> Any:
    path = folder / "orders.avsc"
    path.write_text(text(**declared))
    return build_dag(path)


def test_a_feed_runs_its_stages_and_loads_each_warehouse_on_its_own(tmp_path: Path) -> None:
    made = dag(tmp_path, warehouses={"finance": {}, "engineering": {}})
    assert set(made.task_dict) == {
        "extract", "transform", "check", "approve", "publish",
        "load_finance", "reconcile_finance", "load_engineering", "reconcile_engineering",
        "reconcile_archive", "reconcile_clean",
    }  # fmt: skip
    assert made.get_task("publish").downstream_task_ids == {"load_finance", "load_engineering", "reconcile_clean"}
    assert made.get_task("load_finance").downstream_task_ids == {"reconcile_finance"}


def test_a_feed_that_a_job_makes_computes_first_and_runs_when_an_input_is_published(tmp_path: Path) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    made = dag(tmp_path, job={"file": "sums.py", "inputs": {"orders": {}, "calls": {}}})
    assert made.get_task("compute").downstream_task_ids == {"extract"}
    assert {each.name for each in made.get_task("compute").inlets} == {"clean.orders", "clean.calls"}
    stored = DagSerialization.from_dict(DagSerialization.to_dict(made)).timetable
    assert {key.name for key, _ in stored.asset_condition.iter_assets()} == {"clean.orders", "clean.calls"}
    interval = stored.timetable.infer_manual_data_interval(run_after=pendulum.datetime(2026, 3, 1, 12, 7))
    assert interval.end - interval.start == timedelta(minutes=5), "windows, so that it can be backfilled"


def test_the_tasks_keep_the_retries_and_the_time_limit_that_the_feed_declares(tmp_path: Path) -> None:
    made = dag(tmp_path, runs={"retries": 5, "retry_delay": "30s", "time_limit": "2h"})
    for each in made.tasks:
        assert each.retries == 5
        assert each.retry_delay == timedelta(seconds=30)
        assert each.execution_timeout == timedelta(hours=2)
        assert each.owner == "shop-team"


def test_a_run_has_a_real_data_interval(tmp_path: Path) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    made = DagSerialization.from_dict(DagSerialization.to_dict(dag(tmp_path, schedule="*/5 * * * *")))
    interval = made.timetable.infer_manual_data_interval(run_after=pendulum.datetime(2026, 3, 1, 12, 7))
    assert interval.end - interval.start == timedelta(minutes=5)


def test_publish_and_load_emit_an_asset_each(tmp_path: Path) -> None:
    made = dag(tmp_path, warehouses={"finance": {}})
    outlets = {task.task_id: [(each.name, each.uri) for each in task.outlets] for task in made.tasks if task.outlets}
    assert outlets == {
        "publish": [("clean.orders", "x-headrace://clean/orders")],
        "load_finance": [("finance.orders", "x-headrace://finance/orders")],
    }


def test_a_warehouse_is_loaded_and_reconciled_though_nothing_new_was_published(tmp_path: Path) -> None:
    made = dag(tmp_path, warehouses={"finance": {}})
    rules = {task.task_id: task.trigger_rule for task in made.tasks}
    assert rules["load_finance"] == rules["reconcile_finance"] == "none_failed"


def test_nothing_waits_for_the_lakes_own_proofs(tmp_path: Path) -> None:
    made = dag(tmp_path, warehouses={"finance": {}})
    for store, after in {"archive": "extract", "clean": "publish"}.items():
        proof = made.get_task(f"reconcile_{store}")
        assert (proof.upstream_task_ids, proof.downstream_task_ids) == ({after}, set())


def test_what_is_published_was_checked_or_approved(tmp_path: Path) -> None:
    made = dag(tmp_path, runs={"approval": "3h"})
    assert made.get_task("publish").upstream_task_ids == {"check", "approve"}
    rules = {task.task_id: task.trigger_rule for task in made.tasks}
    assert (rules["approve"], rules["publish"]) == ("one_failed", "one_success")
    assert made.get_task("approve").response_timeout == timedelta(hours=3)


def test_a_run_that_waits_for_approval_lets_the_next_one_archive(tmp_path: Path) -> None:
    assert dag(tmp_path).max_active_runs > 1


def test_a_backfill_skips_extract_and_nothing_else(tmp_path: Path) -> None:
    assert dag(tmp_path).get_task("transform").trigger_rule == "none_failed"


def test_the_tags_tell_owner_warehouses_and_personal_data() -> None:
    assert tags(feed(warehouses={"finance": {}})) == ["feed", "owner:shop-team", "to:finance", "pii"]


def test_an_owner_of_many_words_makes_a_tag_that_airflow_takes(tmp_path: Path) -> None:
    made = dag(tmp_path, owner="o" * 300)
    assert max(len(tag) for tag in made.tags) == 100


def test_the_docs_hold_description_owner_and_every_field() -> None:
    docs = documentation(feed(warehouses={"finance": {}}))
    assert docs.startswith("One row.")
    assert "| owner | shop-team |" in docs
    assert "| asset | clean.orders, finance.orders |" in docs
    assert r"| `id` | string |  | Names the row; never a\|b. |" in docs
    assert "| `email` | string | email |  |" in docs


def test_the_docs_say_what_the_feed_says_of_itself() -> None:
    assert documentation(feed(description="Told by the team.")).startswith("Told by the team.")


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    stubs = Stubs(tmp_path / "bundle")
    stubs.prepare()
    stubs.accept("orders", suffix=".avsc", text=text(warehouses={"finance": {}}))
    return stubs.path / "orders_feed.py"


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip().splitlines()[-1]


ALONE = """
    import json, runpy, socket, sys
    import airflow.sdk

    def refuse(*arguments, **options):
        raise AssertionError(f"a parse asked for {arguments}")

    socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
    sys.addaudithook(lambda event, values: refuse(event, values) if event.startswith("sqlite3.connect") else None)
    made = runpy.run_path(sys.argv[1])
    print(json.dumps([name for name in sys.argv[2:] if name in sys.modules]))
"""


@pytest.mark.parametrize("which", ["stub", "example"])
def test_parsing_asks_no_network_and_no_database_and_imports_nothing_heavy(stub: Path, which: str) -> None:
    path = stub if which == "stub" else REPOSITORY / "dags" / "example_orders_report.py"
    assert json.loads(run(ALONE, str(path), *HEAVY)) == []


def test_parsing_is_quick_once_airflow_is_imported(stub: Path) -> None:
    code = """
        import sys, runpy, time
        import airflow.sdk, headrace.airflow.factory
        runpy.run_path(sys.argv[1])
        began = time.process_time()
        runpy.run_path(sys.argv[1])
        print(time.process_time() - began)
    """
    assert float(run(code, str(stub))) < 0.1


def test_the_example_runs_when_finances_orders_change_and_reads_the_feeds_variable(stub: Path) -> None:
    import runpy

    feeds_dag = runpy.run_path(str(stub))["dag"]
    module = runpy.run_path(str(REPOSITORY / "dags" / "example_orders_report.py"))
    example = module["example_orders_report"]()
    waits_for = {asset.name for asset in example.timetable.asset_condition.objects}
    emits = {asset.name for task in feeds_dag.tasks for asset in task.outlets}
    assert waits_for == {"finance.orders"} <= emits
    arguments = example.get_task("count").op_kwargs
    assert arguments["table"] == "{{ var.json.feed_orders.warehouses.finance.table }}"
    assert arguments["connection"] == "{{ var.json.feed_orders.warehouses.finance.connection }}"
