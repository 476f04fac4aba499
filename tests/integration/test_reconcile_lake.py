"""Reconcile within the lake: archive with topic, clean with archive; whatever is wrong is found, and named."""

import json
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import planting
import pytest
from keeping import kept
from listeners import webhook
from planting import archive_table, plant, plant_clean
from typer.testing import CliRunner
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace import layout
from headrace.airflow import reconciling
from headrace.cli import app
from headrace.errors import ReconcileError, SettingsError
from headrace.stages import carrying, release
from headrace.stages.release import Choice

Make = Callable[..., Workshop]
SUMMED = {**ORDER, "correctness": {"sum": ["price"]}, "partition": {"field": "created_at"}}
CHEAP = {"column": "price", "between": [0, 10], "severity": "quarantine"}
NOON = 1_790_000_400_000
HOUR = 3_600_000


def order(id_: str, revision: int = 1, price: str = "1.00", *, day: int = 0, hour: int = 0) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal(price), "created_at": NOON + day * 24 * HOUR}
    return Record({"status": "placed", "email": "a@b.c", **row}, key=id_, timestamp=NOON + hour * HOUR + 1)


def test_a_run_compares_the_records_that_came_since_another_did(workshop: Make) -> None:
    shop = workshop({"key": ["id"]})
    shop.publish(*(Record(b"%d" % n) for n in range(5)))
    shop.extract()
    assert (shop.prove("archive", full=False, run="1").found_rows, "the first") == (5, "the first")
    shop.publish(*(Record(b"%d" % n, partition=n % 2) for n in range(4)))
    shop.extract()
    table = archive_table(shop)
    planting.replace(table, without=[planting.files(table, 0)[1]])
    for _ in range(2):  # A try that comes again finds it again.
        done = shop.prove("archive", full=False, run="2")
        assert (done.scope, done.expected_rows, done.found_rows) == ("changes", 4, 2)
        assert done.differences["keys"]["gap"] == {"count": 2, "keys": ["partition 0 offset 5–6"]}
    assert shop.prove("archive", full=False, run="3") is None, "nothing came since"
    shop.publish(Record(b"next"))
    shop.extract()
    assert shop.prove("archive", full=False, run="4").agrees, "the next run has its own to answer for"
    assert shop.prove("archive", full=False, run="2").differences["keys"]["gap"]["count"] == 2, (
        "cleared, it fails again"
    )
    assert shop.prove("archive", full=False, run="5") is None, "and takes nothing from the others"
    assert not shop.prove("archive").agrees, "every night tells it"


def test_a_run_that_could_not_compare_does_so_when_it_is_cleared_after_later_ones(
    workshop: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop({"key": ["id"]})
    for number in range(3):
        shop.publish(*(Record(b"%d" % n) for n in range(2)))
        shop.extract()
        if number == 1:
            with monkeypatch.context() as patched:
                patched.setenv("AIRFLOW_CONN_HEADRACE_KAFKA", json.dumps({"conn_type": "kafka", "extra": {}}))
                with pytest.raises(SettingsError):
                    reconciling.prove(shop.feed, "archive", run="1", full=False)
        else:
            done = shop.prove("archive", full=False, run=str(number))
            assert done.found_rows == 2 + number, "of the run before too, where that could not"
    assert shop.prove("archive", full=False, run="1").found_rows == 4, "what came since it began"
    assert shop.prove("archive", full=False, run="3") is None


def test_a_commit_without_records_hides_none_that_came_before_it(workshop: Make) -> None:
    shop = workshop({"key": ["id"]})
    for number in range(2):
        shop.publish(*(Record(b"%d" % n) for n in range(3)))
        shop.extract()
        table = archive_table(shop)
        planting.replace(table, without=planting.files(table, 0))
        for _ in range(2):
            table = archive_table(shop)
            carrying.commit_empty(table, carrying.with_heads(table, done={}))
        table = archive_table(shop)
        older = [each.snapshot_id for each in table.snapshots() if each != table.current_snapshot()]
        table.maintenance.expire_snapshots().by_ids(older).commit()
        done = shop.prove("archive", full=False, run=str(number))
        gap = f"partition 0 offset {3 * number}–{3 * number + 2}"
        assert done.differences["keys"] == {"gap": {"count": 3, "keys": [gap]}}
    assert shop.prove("archive", full=False, run="2") is None


def test_accounts_that_do_not_fit_the_tables_are_found_after_a_run(workshop: Make) -> None:
    shop = workshop(SUMMED)
    accounts = shop.merge(order("a"), order("b"), order("a", 2), Record(b"bad"), Record(None, key="b"))
    assert accounts["read"] == 5
    done = shop.prove(full=False, run="1")
    assert (done.agrees, done.scope, done.pair, done.found_rows) == (True, "changes", "archive–clean", 2)
    assert done.depths == {"count": True}
    assert shop.prove(full=False, run="2") is None, "nothing was published since"
    # A record goes from the archive after it was merged; the same run is asked again.
    plant(shop, lambda rows: rows.slice(1))
    done = shop.prove(full=False, run="1")
    assert done.differences == {"accounts": {"records archived": (4, 5)}}
    with pytest.raises(ReconcileError, match="records archived 5 of 4"):
        reconciling.judge(shop.feed, done)


def test_nothing_is_found_where_nothing_is_wrong(workshop: Make) -> None:
    """Late, doubled, deleted and rejected records, changed checks and versions, windows, replays, upkeep, a rebuild."""
    from headrace.airflow import rebuild

    shop = workshop({**SUMMED, "checks": [CHEAP]})
    shop.merge(order("a", 2), order("a", 1), order("b"), order("b"), order("c", price="99.00"), order("d", hour=1))
    shop.merge(Record(None, key="b"), order("b", 0), order("e", price="8.00"), Record(None, key="never"))
    assert shop.prove(full=False).agrees
    looser = shop.redeclared(checks=[{**CHEAP, "between": [0, 100]}])
    assert looser.prove().agrees, "what was rejected stays so until it is released"
    release.release(looser.feed, lake=looser.lake, choice=Choice())
    looser.again()
    assert looser.prove(full=False).agrees
    tighter = looser.redeclared(checks=[{**CHEAP, "between": [0, 5]}])
    assert tighter.prove().agrees, "what was merged stays so until its window runs again"
    tighter.again(window=(NOON, NOON + HOUR))
    assert tighter.prove().agrees
    assert {row["id"] for row in tighter.clean()} == {"a", "d"}
    channel = {"name": "channel", "type": "string", "default": "web"}
    newer = tighter.changed(*ORDER_FIELDS, channel)
    assert newer.prove().agrees, "no run has met the new version yet"
    told = order("f").value
    newer.merge(Record({**told, "channel": "app"}, key="f", timestamp=NOON))  # type: ignore[dict-item]
    assert newer.prove(full=False).agrees
    newer.replay()
    newer.run()
    assert newer.prove(full=False).agrees
    kept(newer, days=30)
    assert newer.prove("archive").agrees
    assert newer.prove().agrees
    done = rebuild.rebuild(newer.feed, run="rebuild", publish=True)
    assert done is not None
    assert done.published
    assert newer.prove(full=False).agrees
    assert newer.prove().agrees


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Workshop], None]:
    """Lets the command line find a feed by its name."""
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    monkeypatch.setenv("HEADRACE_WAREHOUSES", os.environ["HEADRACE_WAREHOUSES"])

    def write(shop: Workshop) -> None:
        (tmp_path / shop.feed.file).write_text(json.dumps(dict(shop.feed.schema)))

    return write


def test_a_mismatch_is_told_by_the_command_and_to_the_owners_channel(
    workshop: Make, named: Callable[[Workshop], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    personal = [{**field, "pii": "account"} if field["name"] == "id" else field for field in ORDER_FIELDS]
    shop = workshop({"key": ["id"], "order": ["revision"], "owner": "Shop Team"}, fields=personal)
    named(shop)
    shop.merge(order("jane-roe"), order("john-roe"))
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    plant_clean(shop, [row for row in table.scan().to_arrow().to_pylist() if row["id"] == "jane-roe"])
    done = CliRunner().invoke(app, ["reconcile", shop.feed.name, "--full"])
    assert done.exit_code == 1
    assert "archive–clean: lost 1" in done.stdout
    with webhook() as heard:
        connection = {"conn_type": "http", "host": "127.0.0.1", "port": heard.port}
        monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_ALERTS", json.dumps(connection))
        with pytest.raises(ReconcileError, match=r"lost 1\. headrace rebuild") as caught:
            reconciling.prove(shop.feed, "clean", run="night", full=True)
    (told,) = heard.told
    assert told["text"].startswith(f"{shop.feed.name}: archive–clean disagree\n{caught.value}")
    assert f"/reconcile/{shop.feed.name}" in told["text"]
    for text in (told["text"], done.stdout, str(caught.value)):
        assert "-roe" not in text
    assert 'has no store clea to reconcile. Did you mean "clean"' in str(
        CliRunner().invoke(app, ["reconcile", shop.feed.name, "--store", "clea"]).exception
    )
