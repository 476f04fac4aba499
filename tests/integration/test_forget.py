"""Forget against real stores: a person's records leave them all, stay away, and what is left is read byte by byte."""

import json
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from forget_run import ForgetRun
from nursery import Nursery, errand
from psycopg import sql
from row_feed import row_feed
from typer.testing import CliRunner
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace import layout, objects, outcome, reconciliation, results
from headrace.airflow import connections, forgetting
from headrace.cli import app
from headrace.errors import BranchMoved, SettingsError
from headrace.lease import Leases
from headrace.stages import absence, forget, publish, verify
from headrace.warehouses.redshift_folder import Folder

Make = Callable[..., Workshop]
PERSON = "person-0815"
MAIL = "ada.lovelace@example.org"
CHEAP = {"column": "price", "between": [0, 10], "severity": "quarantine"}


def order(id_: str, revision: int, *, price: str = "1.00", email: str | None = None) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal(price), "created_at": 1_790_000_000_000, "email": email}
    return Record({"status": "placed", **row}, key=id_)


def forgotten(shop: Workshop, *keys: str, **more: Any) -> forgetting.Report:
    done = forgetting.forget(shop.feed, keys or (PERSON,), by="test", **more)
    assert done is not None
    return done


def records(done: forgetting.Report) -> dict[str, int]:
    """What was changed, by the kind of store."""
    return {each.store.partition(".")[0]: each.records for each in done.done.stores if each.records}


def rebuilt(shop: Workshop) -> None:
    from headrace.airflow import rebuild

    rebuild.rebuild(shop.feed, run=f"rebuild_{uuid.uuid4().hex}", publish=True)


def ids(shop: Workshop, warehouse: str = "finance") -> set[str]:
    query = sql.SQL("select id from {}").format(sql.Identifier(shop.feed.name))
    with psycopg.connect(connections.warehouse(warehouse).database.url()) as connection:
        return {id_ for (id_,) in connection.execute(query).fetchall()}


def bodies(shop: Workshop) -> Iterator[tuple[str, bytes]]:
    """Every object of the lake whose key names the feed."""
    bucket, prefix = objects.place(shop.lake.location)
    for each in objects.listed(shop.lake.s3, bucket, f"{prefix}/" if prefix else ""):
        if shop.feed.name in each.key:
            yield each.key, shop.lake.s3.get_object(Bucket=bucket, Key=each.key)["Body"].read()


def holding(shop: Workshop, *values: str) -> set[str]:
    needles = [form for value in values for form in absence.forms(value)]
    return {key for key, body in bodies(shop) if any(True for _ in absence.search(key, body, needles))}


def test_a_person_leaves_every_store_and_nothing_brings_them_back(workshop: Make) -> None:
    shop = workshop({**ORDER, "checks": [CHEAP]})
    shop.merge(order(PERSON, 1, email=MAIL), order("other", 1, email="shared@example.org"), order("third", 1))
    shop.merge(order(PERSON, 2, email="shared@example.org"), order(PERSON, 3, price="99.00", email=MAIL))
    shop.merge(Record(b"\x07 no frame", key=PERSON), Record(f"x {PERSON} x".encode()), Record(None, key="third"))
    shop.load("finance")
    shop.load("engineering")
    assert len(shop.quarantine()) == 3
    listed(shop, "other", PERSON)
    seen = absence.prove(shop.feed, [PERSON, MAIL], lake=shop.lake).found
    assert {"column key", "column value"} <= {each.where for each in seen if each.object.startswith("archive/")}

    tried = forgotten(shop, dry_run=True)
    assert records(tried) == {"archive": 5, "clean": 1, "quarantine": 3}
    assert len(shop.quarantine()) == 3

    done = forgotten(shop)
    assert done.is_whole, forgetting.told(done)
    assert records(done) == {"archive": 5, "clean": 1, "quarantine": 3, "checks": 1}
    assert done.done.undecoded == 2
    assert done.absence
    assert done.absence.objects > 10
    assert (done.topics[0].records, done.done.located.shared) == (5, 1)
    assert PERSON not in json.dumps(forgetting.told(done))
    assert holding(shop, PERSON, MAIL) == set()
    assert ids(shop) == ids(shop, "engineering") == {"other"}
    assert shop.quarantine() == {}
    assert results.latest(shop.feed.name, lake=shop.lake, count=1)[0].outcomes[0].keys == ("other",)
    for table in ("archive", "clean", "quarantine"):
        assert len(shop.lake.find((table, shop.feed.name)).metadata.snapshots) <= 2

    verified = verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka)
    assert verified.is_equal
    assert (verified.accounts[0].equal, verified.accounts[0].counts["forgotten"]) == (3, 5)
    assert shop.prove("archive").agrees
    assert shop.prove("clean").agrees

    seen = shop.clean()
    rebuilt(shop)
    assert shop.clean() == seen
    assert [row["id"] for row in seen] == ["other"]
    accounts = shop.again(window=(0, 2**62))
    assert (accounts["read"], accounts["forgotten"]) == (8, 5)
    again = forgotten(shop)
    assert again.is_whole
    assert records(again) == {}

    shop.merge(order(PERSON, 1, email="new@example.org"))
    shop.load()
    assert {row["id"]: row["email"] for row in shop.clean()}[PERSON] == "new@example.org"
    assert ids(shop) == {"other", PERSON}
    shop.reconcile()
    for store in ("archive", "clean"):
        assert shop.prove(store, full=False).agrees
        assert shop.prove(store).agrees


def test_what_others_rows_hold_and_short_numbers_raise_no_alarm(workshop: Make) -> None:
    more = [{"name": "referred_by", "type": ["null", "string"], "default": None},
            {"name": "pin", "type": ["null", "int"], "default": None, "pii": "other"}]  # fmt: skip
    shop = workshop({**ORDER, "warehouses": {}}, fields=[*ORDER_FIELDS, *more])
    pin = int(str(time.time_ns())[:4])  # as every moment in the tables' metadata begins
    mine, friends = order(PERSON, 1, email=MAIL).value, order("friend", 1).value
    assert isinstance(mine, dict)
    assert isinstance(friends, dict)
    shop.merge(Record({**mine, "pin": pin}), Record({**friends, "referred_by": PERSON}))
    done = forgotten(shop)
    assert done.is_whole, forgetting.told(done)
    assert done.done.located.shared == 1
    assert holding(shop, PERSON), "as the other row says it"
    assert holding(shop, MAIL) == set()


VISIT = {
    "type": "object",
    "properties": {
        "site": {"type": "string"},
        "visitor": {"type": "integer"},
        "name": {"type": "string", "pii": "name"},
        "city": {"type": "string"},
    },
    "required": ["site", "visitor"],
}


def visit(visitor: int, **others: Any) -> Record:
    key = json.dumps({"site": "shop", "visitor": visitor})
    return Record({"site": "shop", "visitor": visitor, **others}, key=key)


def test_two_at_once_beside_an_extract_and_copies_in_the_topic_stay_out(workshop: Make) -> None:
    shop = workshop({"key": ["site", "visitor"], "merge": "patch"}, json_schema=VISIT)
    names = {4711: "Grace Hopper", 4712: "Edsger Dijkstra", 4713: "Barbara Liskov"}
    shop.merge(*(visit(number, name=name) for number, name in names.items()))
    shop.merge(visit(4711, city="Arlington"), Record(None, key=visit(4712).key))
    shop.merge(Record(b"no frame", key=visit(4711).key), Record(b"shop: 4712"), Record(b"no frame either"))
    assert shop.replay().records == 8
    keys = [json.dumps({"visitor": number, "site": "shop"}) for number in (4711, 4712)]
    with ThreadPoolExecutor(3) as pool:
        tried = [pool.submit(forgotten, shop, key) for key in keys]
        beside = pool.submit(shop.extract)
        one, other = (each.result() for each in tried)
        assert beside.result().records == 8
    assert (one.rows_left, other.rows_left) == (0, 0)
    # Whether the copies were archived before or after is a matter of luck: held out they are in any case.
    shop.extract()
    accounts = shop.again()
    assert accounts["forgotten"] == 6, "the copies of what the two said, whether blanked or held out"
    assert [row["visitor"] for row in shop.clean()] == [4713]
    assert list(shop.quarantine()) == [(0, 7)], "nobody's"
    done = forgotten(shop, *keys)
    assert done.is_whole
    assert holding(shop, names[4711], names[4712]) == set()
    assert holding(shop, names[4713])
    assert shop.replay(again=1).forgotten == 12
    shop.run()
    assert list(shop.quarantine()) == [(0, 7)]
    assert [row["visitor"] for row in shop.clean()] == [4713]
    assert verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka).is_equal


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    modules = ["forget_run", "headrace.airflow.forgetting", "headrace.stages.absence", "headrace.stages.forget"]
    with Nursery([*modules, "spark_jobs.forget", "pyspark.sql.connect.session"]) as opened:
        yield opened


POINTS = [
    ("forget.hold", 0, "after"),
    ("forget.quarantine", 0, "after"),
    ("forget.switch", 0, "after"),
    ("forget.mend", 0, "after"),
    ("forget.replace", 0, "before"),
    ("forget.replace", 0, "after"),
    ("forget.delete", 4, "after"),  # the data files of the clean table's history; its manifests are still there
    ("forget.load", 0, "before"),
    ("forget.prove", 0, "before"),
]


def listed(shop: Workshop, *keys: str) -> None:
    """Keep a check's result that lists keys."""
    told = outcome.Outcome(expectation=outcome.Expectation(name="x", arguments={}), success=False, keys=keys)
    result = results.Result(
        feed=shop.feed.name, run="r", branch="b", snapshot="1", at="2026-11-18T00:00:00Z", outcomes=[told]
    )
    results.write(result, lake=shop.lake)


def test_killed_anywhere_a_second_forget_completes_it(workshop: Make, nursery: Nursery) -> None:
    shop = workshop({**ORDER, "warehouses": {"finance": {"keep": ["email"]}}})
    shop.merge(order(PERSON, 1, email=MAIL), order("other", 1), Record(b"\x07 no frame", key=PERSON))
    shop.merge(order(PERSON, 2, email=MAIL))
    shop.load()
    listed(shop, "other", PERSON)
    work = ForgetRun((shop.feed.file, json.dumps(shop.feed.schema)), (PERSON,))
    leases = Leases(shop.lake.database)
    turns = [layout.lease(table(shop.feed.name)) for table in (layout.clean_table, layout.archive_table)]
    for point in POINTS:
        killed = nursery.run(errand(shop, work=work, point=point))
        assert killed.signal, (point, killed)
        for each in turns:
            # They would run out by themselves; nobody needs to wait for that here.
            if found := leases.holder(each):
                leases.release(each, holder=found.holder)
    accounts = shop.again(window=(0, 2**62))
    assert accounts["forgotten"] == 3
    whole = nursery.run(errand(shop, work=work))
    assert (whole.error, whole.records) == ("", 1)
    assert holding(shop, PERSON, MAIL) == set()
    assert shop.quarantine() == {}
    assert [row["id"] for row in shop.clean()] == ["other"]
    assert ids(shop) == {"other"}
    assert verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka).is_equal


def test_a_run_and_a_load_beside_it_bring_nobody_back(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order(PERSON, 1, email=MAIL), order("other", 1), Record(f"x {PERSON} x".encode()))
    shop.publish(order(PERSON, 2, email=MAIL))
    shop.extract()
    shop.transform("r")
    assert shop.replay().records == 4
    tip = shop.lake.find(layout.clean_table(shop.feed.name)).metadata.refs[layout.branch("r")].snapshot_id
    leases, turn = Leases(shop.lake.database), layout.lease(layout.clean_table(shop.feed.name))
    assert leases.take(turn, holder="the run", doing="transform")
    with ThreadPoolExecutor(2) as pool:
        waiting, beside = pool.submit(forgotten, shop), pool.submit(shop.load)
        assert beside.result().counts.inserted == 2
        assert not waiting.done()
        assert len(shop.clean()) == 2, "while a run has the turn, nothing is forgotten"
        leases.release(turn, holder="the run")
        done = waiting.result()
    assert done.is_whole, forgetting.told(done)
    with pytest.raises(BranchMoved):
        publish.publish(shop.feed, lake=shop.lake, run="r", checked=tip)
    accounts = shop.run()
    # One was blank already, three were copies.
    assert (accounts["forgotten"], accounts["unblanked"], shop.quarantine()) == (4, 3, {})
    assert holding(shop, PERSON, MAIL), "the copies lie in the archive"
    assert records(forgotten(shop)) == {"archive": 3}
    assert ids(shop) == ids(shop, "engineering") == {"other"}
    assert holding(shop, PERSON, MAIL) == set()


def test_a_warehouse_that_is_down_is_told_and_caught_up_with(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop({**ORDER, "warehouses": {"finance": {"keep": ["email"]}}})
    shop.merge(order(PERSON, 1, email=MAIL), order("other", 1))
    shop.load()
    with monkeypatch.context() as patched:
        patched.setenv("AIRFLOW_CONN_HEADRACE_WAREHOUSE_FINANCE", "postgres://nobody:x@127.0.0.1:1/none")
        left = forgotten(shop)
    assert [(each.name, bool(each.fault)) for each in left.warehouses] == [("finance", True)]
    assert (left.is_whole, left.rows_left, ids(shop)) == (False, 0, {PERSON, "other"})
    (tmp_path / shop.feed.file).write_text(json.dumps(shop.feed.schema))
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    done = CliRunner().invoke(app, ["forget", shop.feed.name, PERSON, "--yes"])
    assert done.exit_code == 0, done.output
    assert f"feed {shop.feed.name}: 1 key forgotten" in done.output
    assert f"topic {shop.feed.topic} may still hold some: " in done.output
    assert PERSON not in done.output
    assert ids(shop) == {"other"}


def avro(name: str, type_: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": {"type": type_, "logicalType": logical}, **more}


READING = {
    "key": ["token", "device", "at", "night"],
    "warehouses": {"finance": {}},
    "checks": [{"column": "grade", "between": [0, 10], "severity": "warn"}],
}
READING_FIELDS = [
    {"name": "token", "type": "bytes"}, avro("device", "string", "uuid"), avro("at", "long", "timestamp-millis"),
    {"name": "night", "type": "boolean"}, {"name": "grade", "type": "int"},
    {"name": "seal", "type": ["null", "bytes"], "default": None, "pii": "other"},
]  # fmt: skip
DEVICE, OTHER = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
TOKEN, SEAL = bytes.fromhex("00ff80fe01"), bytes.fromhex("80818283fffe")


def reading(device: str) -> Record:
    row = {"token": TOKEN, "device": device, "at": 1_790_000_000_001, "night": True, "grade": 99}
    return Record({**row, "seal": SEAL if device == DEVICE else None}, key=device)


def test_keys_of_bytes_uuids_and_moments_leave_every_store(workshop: Make) -> None:
    shop = workshop(READING, fields=READING_FIELDS)
    broken = Record(b"true 2026-09-21 14:13:20.001 " + TOKEN + DEVICE.encode())
    shop.publish(reading(DEVICE), reading(DEVICE.upper()), reading(OTHER), broken)
    shop.extract()
    shop.transform("r")
    outcomes = shop.checked("r")
    assert {key for each in outcomes for key in each.keys} == {
        f"hex:00ff80fe01/{device}/2026-09-21 14:13:20.001/true" for device in (DEVICE, OTHER)
    }
    result = results.Result(
        feed=shop.feed.name, run="r", branch="b", snapshot="1", at="2026-11-18T00:00:00Z", outcomes=outcomes
    )
    results.write(result, lake=shop.lake)
    shop.publish_run("r")
    shop.load()

    key = {"token": "hex:00FF80FE01", "device": DEVICE, "at": "2026-09-21 14:13:20.001", "night": True}
    done = forgotten(shop, json.dumps(key))
    assert done.is_whole, forgetting.told(done)
    assert records(done) == {"archive": 3, "clean": 1, "quarantine": 1, "checks": 1}
    assert done.warehouses[0].deleted == 1
    assert holding(shop, DEVICE, f"hex:{SEAL.hex()}") == set()
    assert len(shop.clean()) == 1
    assert holding(shop, OTHER)


ACCOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 0}
SHIFT_FIELDS = [
    avro("begin", "int", "time-millis"), {"name": "account", "type": ACCOUNT},
    avro("seen", "long", "timestamp-micros"), avro("day", "int", "date"), {"name": "grade", "type": "int"},
]  # fmt: skip
MISTYPED = [
    {"begin": "25:00:00"}, {"begin": "8"}, {"account": "4710.6"}, {"seen": "2026"}, {"seen": "2026-09-21"},
    {"seen": "2026-09-21 14:13:20.0010009"}, {"day": "2026-09"},
]  # fmt: skip


def shift(account: int) -> Record:
    row = {"begin": 28_800_500, "account": Decimal(account), "seen": 1_790_000_000_001_000, "day": 20_717}
    return Record({**row, "grade": 1})


def test_a_key_of_a_time_is_forgotten_as_listed_and_one_that_would_be_rounded_is_refused(workshop: Make) -> None:
    names = ["begin", "account", "seen", "day"]
    shop = workshop({"key": names, "warehouses": {"finance": {}}}, fields=SHIFT_FIELDS)
    shop.merge(shift(4711), shift(4712))
    shop.load()
    listed = ["08:00:00.500000", "4711", "2026-09-21 14:13:20.001", "2026-09-21"]
    reconciliation.keep(shop.feed.name, [compared("/".join(listed))], lake=shop.lake)
    key = dict(zip(names, listed, strict=True))
    for mistyped in MISTYPED:
        with pytest.raises(SettingsError, match="key number 1 is not of its type"):
            forgotten(shop, json.dumps({**key, **mistyped}), dry_run=True)
    done = forgotten(shop, json.dumps({**key, "begin": "08:00:00.5"}))
    assert done.is_whole, forgetting.told(done)
    assert records(done) == {"archive": 1, "clean": 1, "reconciled": 1}
    assert [(each.deleted, each.left) for each in done.warehouses] == [(1, 0)]
    assert [row["account"] for row in shop.clean()] == [Decimal(4712)]
    kept = reconciliation.latest(shop.feed.name, lake=shop.lake, count=9, now=datetime.now(UTC))
    assert [each.differences["keys"]["lost"]["keys"] for each in kept] == [[]]


def test_what_killed_loads_left_is_found_and_a_silent_warehouse_is_told(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop({**ORDER, "warehouses": {}})
    shop.merge(order(PERSON, 1, email=MAIL), order("other", 1))
    bucket = objects.place(shop.lake.location)[0]
    elsewhere = f"s3://{bucket}/elsewhere-{uuid.uuid4().hex}"
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "redshift", "staging": elsewhere}))
    monkeypatch.setenv("HEADRACE_WAREHOUSES", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_WAREHOUSE_CLUSTER", "redshift://nobody:x@127.0.0.1:1/none")
    rows = pa.RecordBatch.from_pylist([{"id": PERSON, "email": MAIL}])
    for location in (shop.lake.location, elsewhere):
        left = layout.staging_location(location, shop.feed.name, "cluster")
        Folder(shop.lake.s3, f"{left}/{uuid.uuid4().hex}").write("rows", iter([rows]), schema=rows.schema)

    young = forgotten(shop)
    assert not young.is_whole
    assert young.absence
    assert {each.object.rpartition("/")[0].rpartition("/")[2] for each in young.absence.found} == {"rows"}
    assert len({each.object for each in young.absence.found}) == 2
    assert [each.name for each in young.warehouses] == ["cluster"]
    assert "is not known" in young.warehouses[0].fault

    with monkeypatch.context() as later:
        now = forget.s3_time
        later.setattr(forget, "s3_time", lambda lake: now(lake) + timedelta(days=2))
        done = forgotten(shop)
    assert done.absence
    assert done.absence.found == ()
    assert records(done) == {"staged for warehouses": 4}, "the files and their manifests"
    assert not done.is_whole


def compared(*keys: str) -> reconciliation.Reconciliation:
    """Two stores that differ in some rows."""
    counts = dict.fromkeys(("expected_rows", "found_rows", "expected_unique", "found_unique"), 1)
    return reconciliation.Reconciliation(
        at=datetime.now(UTC),
        run="r",
        expected="archive",
        found="clean",
        scope="whole",
        snapshot=1,
        agrees=False,
        differences={"keys": {"lost": {"count": len(keys), "keys": list(keys)}}},
        seconds=0,
        **counts,
    )


def test_keys_leave_what_was_reconciled_though_more_is_kept_meanwhile(
    workshop: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop({**ORDER, "warehouses": {}})
    shop.merge(order(PERSON, 1), order("other", 1))
    reconciliation.keep(shop.feed.name, [compared("other", PERSON)], lake=shop.lake)
    scrubber, kept = forget.scrubber, []

    def interrupted(keys: Collection[str]) -> Callable[[str], str]:
        """Takes keys out, while somebody else keeps a comparison."""
        scrubbed = scrubber(keys)

        def mended(text: str) -> str:
            if not kept:
                kept.append(text)
                reconciliation.keep(shop.feed.name, [compared(PERSON)], lake=shop.lake)
            return scrubbed(text)

        return mended

    monkeypatch.setattr(forget, "scrubber", interrupted)
    done = forgotten(shop)
    assert done.is_whole, forgetting.told(done)
    assert kept
    left = reconciliation.latest(shop.feed.name, lake=shop.lake, count=9, now=datetime.now(UTC))
    assert [each.differences["keys"]["lost"]["keys"] for each in left] == [[], ["other"]]


def test_the_command_asks_first_and_tells_no_key(tmp_path: Path) -> None:
    with row_feed({"warehouses": {}}) as made:
        keys = tmp_path / "keys.txt"
        keys.write_text("secret-1\nsecret-2\n")
        nothing = CliRunner().invoke(app, ["forget", made.name])
        refused = CliRunner().invoke(app, ["forget", made.name, "--file", str(keys)], input="n\n")
    assert nothing.exit_code == 2
    assert refused.exit_code == 1
    assert f"Forget 2 keys of feed {made.name}" in refused.output
    assert "secret" not in refused.output
