"""Reconcile within the lake: archive with topic, clean with archive; whatever is wrong is found, and named."""

import json
import os
import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import planting
import pytest
from keeping import kept
from listeners import webhook
from planting import altered, archive_table, plant, plant_clean
from typer.testing import CliRunner
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace import layout
from headrace.airflow import planning, reconciling
from headrace.airflow.spark import Spark
from headrace.clean import HIDDEN_ROW
from headrace.cli import app
from headrace.errors import ReconcileError
from headrace.reckoning import Verdict
from headrace.stages import derivation, release
from headrace.stages.release import Choice

Make = Callable[..., Workshop]
Rows = list[dict[str, Any]]
SUMMED = {**ORDER, "correctness": {"sum": ["price"]}, "partition": {"field": "created_at"}}
CHEAP = {"column": "price", "between": [0, 10], "severity": "quarantine"}
NOON = 1_790_000_400_000
HOUR = 3_600_000


def order(id_: str, revision: int = 1, price: str = "1.00", *, day: int = 0, hour: int = 0) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal(price), "created_at": NOON + day * 24 * HOUR}
    return Record({"status": "placed", "email": "a@b.c", **row}, key=id_, timestamp=NOON + hour * HOUR + 1)


ARCHIVED: dict[str, tuple[planting.Change, str, dict[str, bool]]] = {
    "lost": (lambda rows: rows.filter([n != 3 for n in range(len(rows))]), "gap", {"count": False, "checksum": False}),
    "doubled": (lambda rows: rows.take([*range(len(rows)), 3]), "double", {"count": False, "checksum": False}),
    "altered": (lambda rows: altered(rows, "value", at=3, value=b"x"), "altered", {"count": True, "checksum": False}),
    "a millisecond": (
        lambda rows: altered(rows, "timestamp", at=3, value=rows["timestamp"][3].as_py() + 1),
        "altered",
        {"count": True, "checksum": False},
    ),
}


@pytest.mark.parametrize("fault", ARCHIVED)
def test_what_is_wrong_with_one_archived_record_is_found_and_named(workshop: Make, fault: str) -> None:
    shop = workshop({"key": ["id"]})
    shop.publish(*(Record(b"v%d" % n, key=f"k{n}", timestamp=NOON + n) for n in range(10)))
    shop.extract()
    before = shop.prove("archive", full=True)
    assert (before.agrees, before.pair, before.found_rows) == (True, "topic–archive", 10)
    change, kind, depths = ARCHIVED[fault]
    plant(shop, change)
    done = shop.prove("archive")
    assert (done.agrees, done.depths) == (False, depths)
    assert done.differences["keys"][kind] == {"count": 1, "keys": ["partition 0 offset 3"]}
    assert done.checksums[0] == before.checksums[0], "what should be there is as it was"
    with pytest.raises(ReconcileError, match=rf"does not agree with topic.*in partition 0; {kind} 1: partition 0"):
        reconciling.judge(shop.feed, done)


def test_two_records_that_swapped_their_values_are_found(workshop: Make) -> None:
    shop = workshop({"key": ["id"]})
    shop.publish(*(Record(b"v%d" % n, timestamp=NOON) for n in range(3)))
    shop.extract()
    plant(shop, lambda rows: altered(altered(rows, "value", at=0, value=b"v1"), "value", at=1, value=b"v0"))
    done = shop.prove("archive")
    assert done.depths == {"count": True, "checksum": False}
    assert done.differences["keys"]["altered"]["count"] == 2


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
    assert not shop.prove("archive").agrees, "every night tells it"


def hidden(rows: Rows) -> Rows:
    return [{**row, HIDDEN_ROW: True} if row["id"] == "a" else row for row in rows]


def changed(id_: str, **values: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [{**row, **values} if row["id"] == id_ else row for row in rows]


def swapped(rows: Rows) -> Rows:
    return changed("b", status="paid")(changed("c", status="placed")(rows))


def shifted(rows: Rows) -> Rows:
    return [{**row, "created_at": row["created_at"] + timedelta(microseconds=1)} if row["id"] == "b" else row
            for row in rows]  # fmt: skip


HIDES = ["revision", "status", "price", "email", "created_at", HIDDEN_ROW]
"""What differs in a row that is hidden: of a deleted key nothing else is compared."""

CLEANED: dict[str, tuple[Callable[[Rows], Rows], tuple[bool, bool], dict[str, tuple[int, str]], list[str]]] = {
    "a row is lost": (lambda rows: [row for row in rows if row["id"] != "a"], (False, False), {"lost": (1, "a")}, []),
    "a row is added": (
        lambda rows: [*rows, {**next(row for row in rows if row["id"] == "a"), "id": "x"}],
        (False, False),
        {"surplus": (1, "x")},
        [],
    ),
    "a row is doubled": (
        lambda rows: [*rows, next(row for row in rows if row["id"] == "a")],
        (False, False),
        {"doubled": (1, "a")},
        [],
    ),
    "a price": (changed("a", price=Decimal("9.99")), (True, False), {"altered": (1, "a")}, ["price"]),
    "a null": (changed("a", email=None), (True, True), {"altered": (1, "a")}, ["email"]),
    "a microsecond": (shifted, (True, True), {"altered": (1, "b")}, ["created_at"]),
    "two rows' values": (swapped, (True, True), {"altered": (2, "b")}, ["status"]),
    "a column": (lambda rows: [{**row, "email": "x"} for row in rows], (True, True), {"altered": (7, "a")}, ["email"]),
    "a partition": (
        lambda rows: [row for row in rows if not (row["created_at"] and row["created_at"].day == 22)],
        (False, False),
        {"lost": (2, "d")},
        [],
    ),
    "a row that is hidden": (hidden, (True, False), {"altered": (1, "a")}, HIDES),
    "a deleted key's row is lost": (
        lambda rows: [row for row in rows if row["id"] != "gone"],
        (False, True),
        {"lost": (1, "gone")},
        [],
    ),
}


def test_what_is_wrong_with_the_clean_table_is_found_at_the_depth_that_can_and_named(
    workshop: Make, tmp_path: Path
) -> None:
    shop = workshop(SUMMED)
    shop.merge(
        order("a", price="5.00"), order("b"), order("c"), order("d", day=1), order("e", day=1), order("gone"),
        order("f", day=2), order("g", day=2), Record(None, key="gone", timestamp=NOON), Record(b"bad", timestamp=NOON),
    )  # fmt: skip
    paid = order("c", 2)
    shop.merge(Record({**paid.value, "status": "paid"}, key="c", timestamp=NOON))  # type: ignore[dict-item]
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    content = table.scan().to_arrow().to_pylist()
    made = planning.derivation(shop.feed, lake=shop.lake)
    assert made is not None
    # Spark makes the rows once; what is planted then changes nothing of what they should be.
    run = iter([Spark.of(shop.feed, shop.lake).run])

    def once(plan: str) -> str:
        ask = next(run, None)
        return ask("derivation", plan) if ask else ""

    def compared(base: int) -> Verdict:
        planned = made.model_copy(update={"base": base})
        return derivation.derive(shop.feed, lake=shop.lake, made=planned, run=once, folder=tmp_path).verdict

    verdict = compared(made.base)
    assert (verdict.agrees, verdict.expected.rows) == (True, 8)
    for name, (mutate, (count, sums), keys, columns) in CLEANED.items():
        verdict = compared(plant_clean(shop, mutate(content)))
        assert verdict.depths == {"count": count, "sums": sums, "checksum": False}, name
        found = {kind: (each.count, each.listed[0]) for kind, each in verdict.keys.items()}
        assert (name, found, list(verdict.columns)) == (name, keys, columns)
        assert verdict.partitions, name
    plant_clean(shop, content)
    assert shop.prove().agrees


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
    replayed(newer)
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


def replayed(shop: Workshop) -> None:
    """Everything archived goes to the topic once more."""
    from headrace.airflow import connections
    from headrace.kafka.pace import Rate
    from headrace.slice import Slice
    from headrace.stages import replay

    found = replay.plan(
        shop.feed, lake=shop.lake, kafka=shop.kafka, slice_=Slice(), to=None, same_partitions=False,
        signing=connections.signing_key(),
    )  # fmt: skip
    replay.run(found, lake=shop.lake, kafka=shop.kafka, now=int(time.time() * 1000), rate=Rate(), anyway=True)


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
