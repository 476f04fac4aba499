"""Reconcile between clean and a warehouse: what a run touched, everything, and what is kept of it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import keeping
import psycopg
import pytest
from airflow.sdk.exceptions import AirflowSkipException
from listeners import Listener, collector, webhook
from planting import plant_clean
from psycopg import sql
from run_context import run_context
from typer.testing import CliRunner
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace import layout, objects, reconciliation
from headrace.airflow import connections, forgetting, reconciling
from headrace.cli import app
from headrace.errors import ReconcileError, ServiceAway
from headrace.pages import reconciliations

Make = Callable[..., Workshop]
SUMMED = {**ORDER, "correctness": {"sum": ["price"]}, "partition": {"field": "created_at"}}


def order(id_: str, revision: int = 1, price: str = "1.00", day: int = 0) -> Record:
    made = 1_790_000_000_000 + day * 86_400_000
    row = {"id": id_, "revision": revision, "price": Decimal(price), "created_at": made, "email": None}
    return Record({"status": "placed", **row}, key=id_)


def change(shop: Workshop, statement: str) -> None:
    with psycopg.connect(connections.warehouse("finance").database.url()) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(shop.feed.name)))  # type: ignore[arg-type]


def test_a_run_compares_what_changed_since_the_two_last_agreed(workshop: Make) -> None:
    shop = workshop(SUMMED)
    shop.merge(order("a"), order("b"), order("c"))
    shop.load()
    assert shop.reconcile(full=False).scope == "whole", "they were never compared before"
    shop.merge(order("a", 2, "5.00"), Record(None, key="b"), order("d"))
    shop.load()
    shop.merge(order("e"))
    shop.load()
    done = shop.reconcile(full=False)
    assert (done.scope, done.figures.rows) == ("changes", 3), "of two loads: a, d and e; b must be gone"
    assert done.figures.sums == {"price": Decimal("7.00")}
    assert shop.reconcile(full=False).figures.rows == 0, "nothing has changed since"
    change(shop, "update {} set price = 9 where id = 'c'")
    shop.reconcile(full=False)
    with pytest.raises(ReconcileError, match=r"altered 1: c; in columns price"):
        shop.reconcile()


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        (
            "insert into {} select 'b', revision, status, price, email, created_at from {} where id = 'a'",
            "surplus 1: b",
        ),
        ("delete from {} where id = 'd'", r"1 rows of 2.*lost 1: d"),
        ("update {} set status = 'paid' where id = 'a'", r"altered 1: a; in columns status"),
    ],
)
def test_what_a_run_touched_is_compared_row_by_row(workshop: Make, fault: str, named: str) -> None:
    shop = workshop(SUMMED)
    shop.merge(order("a"), order("b"))
    shop.load()
    shop.reconcile(full=False)
    shop.merge(order("a", 2), Record(None, key="b"), order("d"))
    shop.load()
    with psycopg.connect(connections.warehouse("finance").database.url()) as connection:
        names = [sql.Identifier(shop.feed.name)] * fault.count("{}")
        connection.execute(sql.SQL(fault).format(*names))  # type: ignore[arg-type]
    for _ in range(2):  # and it is not taken for agreed by having been looked at
        with pytest.raises(ReconcileError, match=named):
            shop.reconcile(full=False)


def test_the_days_that_differ_are_named(workshop: Make) -> None:
    shop = workshop(SUMMED)
    shop.merge(*(order(f"{day}{number}", day=day) for day in range(3) for number in range(2)))
    shop.load()
    change(shop, "update {} set revision = 9 where id = '11'")
    with pytest.raises(ReconcileError, match=r"6 rows of 6; .*; in 2026-09-22; altered 1: 11; in columns revision"):
        shop.reconcile()


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Workshop], Workshop]:
    """Lets the command line find a feed by its name."""
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    monkeypatch.setenv("HEADRACE_WAREHOUSES", os.environ["HEADRACE_WAREHOUSES"])

    def write(shop: Workshop) -> Workshop:
        (tmp_path / shop.feed.file).write_text(json.dumps(dict(shop.feed.schema)))
        return shop

    return write


def test_every_result_is_kept_and_the_command_tells_it(workshop: Make, named: Callable[[Workshop], Workshop]) -> None:
    shop = workshop({**SUMMED, "warehouses": {"finance": {"keep": ["email"]}}})
    feed = named(shop).feed.name
    shop.merge(order("a", price="2.50"), order("b"))
    shop.load(mask_key=connections.mask_key())
    reconciling.warehouse(shop.feed, "finance", run="scheduled")
    change(shop, "delete from {} where id = 'b'")
    done = CliRunner().invoke(app, ["reconcile", feed, "--full", "--store", "finance"])
    assert done.exit_code == 1
    assert "clean–finance: lost 1: b" in done.stdout
    kept = reconciliation.latest(feed, lake=shop.lake, count=10, now=datetime.now(UTC))
    assert [(each.run, each.scope, each.agrees, each.found_rows) for each in kept] == [
        ("command", "whole", False, 1),
        ("scheduled", "whole", True, 2),
    ]
    assert kept[0].sums == {"price": ("3.50", "2.50")}
    assert kept[0].differences["keys"] == {"lost": {"count": 1, "keys": ["b"]}}
    shown = json.loads(CliRunner().invoke(app, ["reconcile", feed, "--full", "--json", "--store", "finance"]).stdout)
    assert [each["agrees"] for each in shown] == [False]
    assert 'has no store financ to reconcile. Did you mean "finance"' in str(
        CliRunner().invoke(app, ["reconcile", feed, "--store", "financ"]).exception
    )


def test_personal_keys_are_neither_told_nor_kept(workshop: Make) -> None:
    personal = [{**field, "pii": "account"} if field["name"] == "id" else field for field in ORDER_FIELDS]
    shop = workshop({**SUMMED, "warehouses": {"finance": {"keep": ["id", "email"]}}}, fields=personal)
    shop.merge(order("jane-doe"))
    shop.load(mask_key=connections.mask_key())
    change(shop, "delete from {}")
    kept = reconciling.warehouse(shop.feed, "finance", run="scheduled")
    assert kept.agrees is False
    assert "jane-doe" not in str(kept)
    with pytest.raises(ReconcileError, match=r"lost 1\.") as caught:
        reconciling.judge(shop.feed, kept)
    assert "jane-doe" not in str(caught.value)


def test_neither_sums_nor_partitions_tell_a_personal_value(workshop: Make) -> None:
    personal = [{**field, "pii": "birth"} if field["name"] in ("price", "created_at") else field
                for field in ORDER_FIELDS]  # fmt: skip
    shop = workshop({**SUMMED, "warehouses": {"finance": {"keep": ["price", "created_at"]}}}, fields=personal)
    shop.merge(order("a", price="81920.17"), order("b"))
    shop.load(mask_key=connections.mask_key())
    change(shop, "update {} set price = 0 where id = 'a'")
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    warehouse = reconciling.warehouse(shop.feed, "finance", run="scheduled")
    plant_clean(shop, [row for row in table.scan().to_arrow().to_pylist() if row["id"] == "b"])
    clean = shop.prove()
    assert warehouse.differences["columns"] == {"price": 1}, "the checksum finds it"
    assert clean.differences["keys"] == {"lost": {"count": 1, "keys": ["a"]}}
    for done in (warehouse, clean):
        assert not done.agrees
        assert (done.sums, done.differences["partitions"]) == ({}, [])
        with pytest.raises(ReconcileError) as caught:
            reconciling.judge(shop.feed, done)
        for text in (str(done), str(caught.value)):
            assert "81920" not in text
            assert "81921" not in text
            assert "2026-09-" not in text


def another_key(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    rotated = {"conn_type": "generic", "password": "rotated"}
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_MASKS", json.dumps(rotated))
    return shop


def forgotten(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Somebody is forgotten while the warehouse is down, so that it keeps a state that the lake may not."""
    with monkeypatch.context() as patched:
        patched.setenv("AIRFLOW_CONN_HEADRACE_WAREHOUSE_FINANCE", "postgres://nobody:x@127.0.0.1:1/none")
        assert forgetting.forget(shop.feed, ["a"], by="test") is not None
    return shop


LATER: dict[str, Callable[[Workshop, pytest.MonkeyPatch], Workshop]] = {
    "another mask's key": another_key,
    "another mask": lambda shop, _: shop.redeclared(warehouses={"finance": {"mask": {"email": "last4"}}}),
    "a column more": lambda shop, _: shop.changed(
        *ORDER_FIELDS, {"name": "note", "type": ["null", "string"], "default": None}
    ),
    "a column less": lambda shop, _: shop.redeclared(
        warehouses={"finance": {"mask": {"email": "hash"}, "drop": ["status"]}}
    ),
    "a forget while it was down": forgotten,
}


@pytest.mark.parametrize("later", LATER)
def test_a_warehouse_is_behind_and_not_wrong_until_it_is_loaded(
    workshop: Make, monkeypatch: pytest.MonkeyPatch, later: str
) -> None:
    shop = workshop({**SUMMED, "warehouses": {"finance": {"mask": {"email": "hash"}}}})
    shop.merge(order("a"), order("b"))
    shop.load(mask_key=connections.mask_key())
    assert reconciling.warehouse(shop.feed, "finance", run="before").agrees
    now = LATER[later](shop, monkeypatch)
    for full in (False, True):
        with pytest.raises(AirflowSkipException, match=rf"is behind: .*headrace load {shop.feed.name} finance"):
            reconciling.prove(now.feed, "finance", run="night", full=full)
    kept = reconciliation.latest(shop.feed.name, lake=shop.lake, count=10, now=datetime.now(UTC))
    assert [(each.run, each.agrees) for each in kept] == [("night", None), ("night", None), ("before", True)]
    assert "– behind" in reconciliations.history(shop.feed.name, kept, base_url="")
    now.load(mask_key=connections.mask_key())
    done = reconciling.prove(now.feed, "finance", run="next", full=True)
    assert done is not None
    assert done.agrees


def test_what_was_never_loaded_is_behind_and_one_store_keeps_no_other_from_being_told(
    workshop: Make, named: Callable[[Workshop], Workshop], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = named(workshop({**SUMMED, "warehouses": {"engineering": {}, "finance": {}}}))
    shop.merge(order("a"))
    shop.load(mask_key=connections.mask_key())
    command = ["reconcile", shop.feed.name, "--store", "engineering", "--store", "finance"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 3, "it is no proof, and nothing is wrong"
    assert f"clean–engineering: engineering.{shop.feed.name} is behind: nothing was loaded yet" in done.stdout
    assert [each["agrees"] for each in json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)] == [None, True]
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_WAREHOUSE_ENGINEERING", "postgres://nobody:x@127.0.0.1:1/none")
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert "headrace: engineering: The warehouse engineering at 127.0.0.1:1/none does not answer" in done.stderr
    assert "clean–finance" in done.stdout


def without_a_clean_file(shop: Workshop) -> None:
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    for task in table.scan().plan_files():
        bucket, key = objects.place(task.file.file_path)
        shop.lake.s3.delete_object(Bucket=bucket, Key=key)


GONE: dict[str, Callable[[Workshop], None]] = {
    "a column": lambda shop: change(shop, "alter table {} drop column price cascade"),
    "a table": lambda shop: change(shop, "drop table {} cascade"),
    "a file of clean": without_a_clean_file,
}


def alerts_to(heard: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = {"conn_type": "http", "host": "127.0.0.1", "port": heard.port}
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_ALERTS", json.dumps(connection))


@pytest.mark.parametrize("gone", GONE)
def test_what_cannot_be_compared_any_more_is_kept_shown_and_told(
    workshop: Make, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    shop = workshop(SUMMED)
    shop.merge(order("a"), order("b"))
    shop.load(mask_key=connections.mask_key())
    reconciling.prove(shop.feed, "finance", run="before", full=True)
    GONE[gone](shop)
    with webhook() as heard:
        alerts_to(heard, monkeypatch)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever each of them raises
            reconciling.prove(shop.feed, "finance", run="night", full=True)
    kept = reconciliation.latest(shop.feed.name, lake=shop.lake, count=9, now=datetime.now(UTC))
    assert [(each.run, each.agrees, bool(each.failed)) for each in kept] == [
        ("night", None, True), ("before", True, False)
    ]  # fmt: skip
    assert kept[0].failed in (str(caught.value), f"{caught.type.__name__}; the task's log says more.")
    assert "✗ not compared" in reconciliations.history(shop.feed.name, kept, base_url="")
    (told,) = heard.told
    assert told["text"].startswith(f"{shop.feed.name}: clean–finance could not be compared\n{kept[0].failed}")


def test_only_the_last_try_tells_and_what_passes_by_itself_is_told_by_night(
    workshop: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop(SUMMED)
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_WAREHOUSE_FINANCE", "postgres://nobody:x@127.0.0.1:1/none")

    def prove(run: str, *, tries: tuple[int, int], full: bool) -> int:
        """How much was told."""
        with webhook() as heard, run_context(shop.feed.name, run, tries=tries):
            alerts_to(heard, monkeypatch)
            with pytest.raises(ServiceAway):
                reconciling.prove(shop.feed, "finance", run=run, full=full)
        return len(heard.told)

    assert prove("first try", tries=(1, 1), full=True) == 0
    assert prove("last try", tries=(2, 1), full=False) == 0
    assert prove("night", tries=(2, 1), full=True) == 1
    kept = reconciliation.latest(shop.feed.name, lake=shop.lake, count=9, now=datetime.now(UTC))
    assert [each.run for each in kept] == ["night", "last try"]


PROVE = """
import sys
from pathlib import Path
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils
from headrace import feed
from headrace.airflow import reconciling

# As Airflow's task runner does, before it runs a task.
stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=True)
made = feed.load(Path(sys.argv[1]))
for store in sys.argv[2:]:
    try:
        reconciling.prove(made, store, run="night", full=True)
    except Exception as error:
        print(type(error).__name__)
"""


def test_a_comparison_emits_its_figures(workshop: Make, tmp_path: Path) -> None:
    shop = workshop({**SUMMED, "warehouses": {"engineering": {}, "finance": {"keep": ["email"]}}})
    path = tmp_path / shop.feed.file
    path.write_text(json.dumps(dict(shop.feed.schema)))
    shop.merge(order("a"), order("b"), order("a", 2))
    for warehouse in ("engineering", "finance"):
        shop.load(warehouse, mask_key=connections.mask_key())
    change(shop, "delete from {} where id = 'b'")
    with psycopg.connect(connections.warehouse("engineering").database.url()) as connection:
        connection.execute(sql.SQL("drop table {} cascade").format(sql.Identifier(shop.feed.name)))
    with collector() as heard:
        environment = {
            **os.environ,
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{heard.port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }
        command = [sys.executable, "-c", PROVE, str(path), "archive", "finance", "engineering"]
        done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    raised = [line for line in done.stdout.splitlines() if line.endswith("Error") and line.isalpha()]
    assert raised == ["ReconcileError", "WarehouseError"], "and not what is logged besides"
    found = {
        (tags["found"], name.removeprefix("airflow.headrace.reconcile.")): value
        for name, tags, value in heard.told
        if name.startswith("airflow.headrace.reconcile.") and tags["feed"] == shop.feed.name
    }
    durations = {store for store, name in found if name == "duration"}
    assert durations == {"archive", "finance", "engineering"}
    assert {each: value for each, value in found.items() if each[1] != "duration"} == {
        ("archive", "rows"): 3, ("archive", "disagrees"): 0, ("archive", "behind"): 0, ("archive", "failed"): 0,
        ("finance", "rows"): 1, ("finance", "disagrees"): 1, ("finance", "behind"): 0, ("finance", "failed"): 0,
        ("engineering", "disagrees"): 0, ("engineering", "behind"): 0, ("engineering", "failed"): 1,
    }  # fmt: skip


def test_the_last_ones_are_found_and_old_ones_go_with_upkeep(workshop: Make) -> None:
    shop = workshop(SUMMED)
    now = datetime.now(UTC)
    ages = [0, 2, 3, 20, 60, 80, 100]
    told = {"expected": "clean", "found": "finance", "scope": "whole", "snapshot": 1, "agrees": True, "seconds": 1.0}
    rows = dict.fromkeys(("expected_rows", "found_rows", "expected_unique", "found_unique"), 1)
    done = [
        reconciliation.Reconciliation(at=now - timedelta(days=age), run=str(age), **told, **rows)  # type: ignore[arg-type]
        for age in ages
    ]
    for each in done:
        reconciliation.keep(shop.feed.name, [each], lake=shop.lake)

    def latest(count: int) -> list[str]:
        return [each.run for each in reconciliation.latest(shop.feed.name, lake=shop.lake, count=count, now=now)]

    assert (latest(1), latest(3), latest(4)) == (["0"], ["0", "2", "3"], ["0", "2", "3", "20"])
    assert latest(9) == ["0", "2", "3", "20", "60", "80"]
    keeping.kept(shop)
    table = shop.lake.find(layout.reconciled_table(shop.feed.name))
    assert sorted(table.scan().to_arrow()["run"].to_pylist()) == sorted(str(age) for age in ages if age < 90)
