"""headrace.read on the real lake: every form agrees, files are pruned, time goes back, and personal data stays back."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyiceberg.expressions import EqualTo
from shelf import branched, published
from workshop import ORDER_FIELDS, Record, Workshop

import headrace
from headrace import layout, personal
from headrace.airflow import connections
from headrace.errors import PersonalRefused, ReadError

Make = Callable[..., Workshop]

DECLARED = {
    "key": ["id"],
    "order": ["revision"],
    "partition": {"field": "created_at", "by": "day", "immutable": True},
    "warehouses": {
        "finance": {"keep": ["email"], "mask": {"phone": "last4"}},
        "engineering": {"mask": {"email": "hash"}, "drop": ["price"]},
        "open": {},
    },
}
FIELDS = [
    *ORDER_FIELDS,
    {"name": "phone", "type": ["null", "string"], "default": None, "pii": "phone"},
    {"name": "due", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None, "doc": "When to pay."},
]
PLAIN = ["id", "revision", "status", "price", "created_at", "due"]
EVERY = ["id", "revision", "status", "price", "email", "created_at", "phone", "due"]


def order(id_: str, day: int, status: str = "placed", price: str = "1.00", **more: Any) -> dict[str, Any]:
    at = datetime(2026, 1, day, 8, tzinfo=UTC)
    row = {
        "id": id_,
        "revision": 1,
        "status": status,
        "price": Decimal(price),
        "created_at": at,
        "due": date(2026, 2, 1),
    }
    return {**row, "email": f"{id_}@example.com", "phone": "0123456789", **more}


@pytest.fixture
def shop(workshop: Make) -> Workshop:
    return workshop(DECLARED, fields=FIELDS)


@pytest.fixture(scope="module")
def spark(stack: Any) -> Any:
    from spark_jobs.session import session

    with session(connections.spark_remote(), properties={}) as made:
        yield made


@pytest.fixture
def may_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda kinds: monkeypatch.setenv("HEADRACE_PERSONAL", kinds)


def ids(rows: Any) -> list[str]:
    return sorted(rows.arrow().column("id").to_pylist())


def test_every_form_has_the_same_rows_without_deleted_ones_and_personal_columns(shop: Workshop, spark: Any) -> None:
    published(shop, order("a", 1), order("b", 2, "paid", "2.50"), order("c", 3, _hidden=True))
    rows = headrace.read(shop.feed)
    table = rows.arrow()
    assert table.column_names == PLAIN
    assert table.schema == rows.schema
    expected = sorted(table.to_pylist(), key=lambda row: row["id"])
    assert [row["id"] for row in expected] == ["a", "b"]
    assert rows.count() == len(rows.pandas()) == 2
    assert sorted(rows.batches().read_all().to_pylist(), key=lambda row: row["id"]) == expected
    frame = rows.spark(spark).orderBy("id")
    assert frame.columns == PLAIN
    assert [row["price"] for row in frame.collect()] == [row["price"] for row in expected]
    relation = rows.duckdb()
    assert relation.aggregate("sum(price)").fetchall() == relation.aggregate("sum(price)").fetchall() == [(3.5,)]


def test_feeds_are_joined_in_one_duckdb_connection_by_their_names(shop: Workshop) -> None:
    published(shop, order("a", 1), order("b", 2, "paid"))
    with duckdb.connect() as engine:
        headrace.read(shop.feed, columns=["id", "status"]).duckdb(engine)
        headrace.read(shop.feed, where="status = 'paid'", columns=["id"]).duckdb(engine, name="paid")
        query = f'select status from "{shop.feed.name}" join paid using (id)'
        assert engine.sql(query).fetchall() == [("paid",)]


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("created_at >= '2026-01-02' and created_at < '2026-01-03'", ["b"]),
        ("created_at >= '2026-01-02T09:00+01:00'", ["b", "c"]),
        ([("created_at", ">=", datetime(2026, 1, 2, tzinfo=UTC)), ("status", "in", ["paid"])], ["b"]),
        ([("due", "=", date(2026, 2, 1)), ("created_at", "<", date(2026, 1, 2))], ["a"]),
        ("price > 1.5 and revision = 1", ["b", "c"]),
        ("not (status = 'paid' or price < 1.00)", ["a"]),
        ("status not in ('placed')", ["b"]),
        ("status is null", ["c"]),
        ([("status", "!=", None)], ["a", "b"]),
        ("id like 'b%'", ["b"]),
        (EqualTo("id", "c"), ["c"]),
        ("false", []),
    ],
)
def test_predicates_mean_the_same_in_arrow_and_in_spark(
    conditions: tuple[Workshop, Any], where: Any, left: list[str]
) -> None:
    shop, spark = conditions
    rows = headrace.read(shop.feed, where=where)
    assert ids(rows) == left
    assert rows.count() == len(left)
    assert sorted(row["id"] for row in rows.spark(spark).collect()) == left


@pytest.fixture(scope="module")
def _kept() -> dict[str, Any]:
    return {}


@pytest.fixture
def conditions(_kept: dict[str, Any], workshop: Make, spark: Any) -> tuple[Workshop, Any]:
    """One table for all predicates: a null among its rows, a day to each."""
    if "shop" not in _kept:
        _kept["shop"] = made = workshop(DECLARED, fields=FIELDS)
        published(made, order("a", 1), order("b", 2, "paid", "2.50"), order("c", 3, price="3.00", status=None))
    return _kept["shop"], spark


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("local = '2026-01-31T08:00'", ["a"]),
        ("local > '2026-01-31T08:00'", ["b"]),
        ([("local", "in", ["2026-01-31T08:00", "2026-01-31T08:00:00.5"])], ["a", "b"]),
        ([("local", "not in", ["2026-01-31T08:00", "2026-01-31T03:00"])], ["b"]),
        ("share = 0.1", ["a"]),
        ("share <= 0.1", ["a"]),
        ("share in (0.1, 0.7)", ["a", "b"]),
        ([("share", "<", 1e300)], ["a", "b"]),
    ],
)
def test_local_times_and_floats_mean_the_same_in_spark_wherever_it_is_asked(
    uneven: tuple[Workshop, Any], monkeypatch: pytest.MonkeyPatch, where: Any, left: list[str], zone: str, strict: str
) -> None:
    shop, spark = uneven
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        spark.conf.set("spark.sql.ansi.enabled", strict)
        rows = headrace.read(shop.feed, where=where)
        assert ids(rows) == left
        assert sorted(row["id"] for row in rows.spark(spark).collect()) == left
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
        monkeypatch.undo()
        time.tzset()


@pytest.fixture
def uneven(_kept: dict[str, Any], workshop: Make, spark: Any) -> tuple[Workshop, Any]:
    """One table of what Spark and Python do not hold alike."""
    if "uneven" not in _kept:
        fields = [
            {"name": "id", "type": "string"},
            {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
            {"name": "share", "type": "float"},
        ]
        _kept["uneven"] = made = workshop({"key": ["id"]}, fields=fields)
        at = datetime(2026, 1, 31, 8)  # noqa: DTZ001
        later = at + timedelta(milliseconds=500)
        published(made, {"id": "a", "local": at, "share": 0.1}, {"id": "b", "local": later, "share": 0.7})
    return _kept["uneven"], spark


def test_a_predicate_on_the_partition_field_leaves_the_other_files_unread(shop: Workshop, spark: Any) -> None:
    published(shop, *(order(f"k{day}", day) for day in range(1, 11)))
    everything = headrace.read(shop.feed)
    some = headrace.read(shop.feed, where="created_at >= '2026-01-09'")
    assert (len(everything.files()), len(some.files())) == (10, 2)
    assert len(headrace.read(shop.feed, where=[("created_at", "<", date(2026, 1, 2))]).files()) == 1
    for path in set(everything.files()) - set(some.files()):
        everything.table.io.delete(path)
    # What is not there any more cannot have been read.
    assert ids(some) == ["k10", "k9"]
    assert some.count() == some.spark(spark).count() == 2
    with pytest.raises(ReadError, match=r"a file of snapshot \d+ is gone"):
        everything.arrow()


def test_readers_go_back_to_what_was_published_at_a_time_or_a_snapshot(shop: Workshop) -> None:
    first = published(shop, order("a", 1))
    second = published(shop, order("a", 1), order("b", 1))
    third = published(shop, order("b", 1))
    rows = headrace.read(shop.feed)
    assert [each.snapshot for each in rows.history()][:3] == [third, second, first]
    times = {each.snapshot: each.at for each in rows.history()}
    for snapshot, seen in ((first, ["a"]), (second, ["a", "b"]), (third, ["b"])):
        assert ids(headrace.read(shop.feed, snapshot=snapshot)) == seen
        assert ids(headrace.read(shop.feed, as_of=times[snapshot])) == seen
        assert ids(headrace.read(shop.feed, as_of=times[snapshot].isoformat())) == seen
    assert ids(headrace.read(shop.feed, as_of=times[third] - timedelta(milliseconds=1))) == ["a", "b"]
    assert rows.snapshots()["read"].tolist()[:3] == [1, 2, 1]


def test_rows_that_wait_on_a_branch_are_seen_by_nobody_though_they_are_older(shop: Workshop) -> None:
    published(shop, order("a", 1))
    waiting = branched(shop, [order("x", 1)], run="waits")
    before = datetime.now(UTC)
    from headrace.stages import publish

    with pytest.raises(ReadError, match=f"snapshot {waiting} was never published"):
        headrace.read(shop.feed, snapshot=waiting)
    assert publish.publish(shop.feed, lake=shop.lake, run="waits", checked=waiting)
    # The snapshot was made before this moment, and published after it.
    assert ids(headrace.read(shop.feed, as_of=before)) == ["a"]
    assert ids(headrace.read(shop.feed)) == ["x"]


def test_what_has_expired_is_told_with_the_oldest_that_is_there(shop: Workshop) -> None:
    gone = published(shop, order("a", 1))
    when = headrace.read(shop.feed).at.at
    oldest = published(shop, order("b", 1))
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    known = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id != oldest]
    table.maintenance.expire_snapshots().by_ids(known).commit()
    with pytest.raises(ReadError, match=rf"snapshot {gone} is not there: it has expired.*oldest.*snapshot {oldest}"):
        headrace.read(shop.feed, snapshot=gone)
    with pytest.raises(ReadError, match=rf"has expired, or nothing was published.*snapshot {oldest}"):
        headrace.read(shop.feed, as_of=when)


def test_a_time_between_a_snapshot_that_a_tag_keeps_and_the_next_has_expired(shop: Workshop) -> None:
    kept, gone, now = (published(shop, order(id_, 1)) for id_ in "abc")
    times = {each.snapshot: each.at for each in headrace.read(shop.feed).history()}
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    table.manage_snapshots().create_tag(kept, "month_end").commit()
    spared = (kept, now)
    old = [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id not in spared]
    table.maintenance.expire_snapshots().by_ids(old).commit()
    assert gone in old
    with pytest.raises(ReadError, match=rf"has expired.*before and after: snapshot {kept}, .*; snapshot {now}, "):
        headrace.read(shop.feed, as_of=times[gone])
    assert ids(headrace.read(shop.feed, as_of=times[kept])) == ["a"]
    assert ids(headrace.read(shop.feed, as_of=times[now])) == ["c"]


def test_a_time_before_a_roll_back_is_told_from_what_was_published_then(shop: Workshop) -> None:
    good, bad = (published(shop, order(id_, 1)) for id_ in "ab")
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    table.manage_snapshots().rollback_to_snapshot(good).commit()
    published(shop, order("c", 1))
    first, again = (each.at for each in reversed(headrace.read(shop.feed).history()) if each.snapshot == good)
    (meanwhile,) = (each.at for each in headrace.read(shop.feed).history() if each.snapshot == bad)
    assert first < meanwhile < again
    assert [ids(headrace.read(shop.feed, as_of=at)) for at in (first, meanwhile, again)] == [["a"], ["b"], ["a"]]


def test_a_read_that_is_under_way_does_not_see_what_is_published_meanwhile(shop: Workshop) -> None:
    published(shop, order("a", 1))
    rows = headrace.read(shop.feed)
    published(shop, order("b", 1), order("c", 1))
    assert ids(rows) == ["a"]
    assert rows.count() == rows.duckdb().count("*").fetchall()[0][0] == 1


def test_personal_columns_are_shown_only_where_their_kind_may_be_read(
    shop: Workshop, may_read: Callable[[str], None]
) -> None:
    published(shop, order("a", 1))
    for asked in ({"personal": ["email"]}, {"columns": ["id", "email"]}, {"personal": "*"}):
        with pytest.raises(PersonalRefused, match=r"email \(email\).*HEADRACE_PERSONAL lets you read here: none"):
            headrace.read(shop.feed, **asked)
    may_read("email")
    assert headrace.read(shop.feed).names == PLAIN
    assert headrace.read(shop.feed, personal=["email"]).arrow().column("email").to_pylist() == ["a@example.com"]
    with pytest.raises(PersonalRefused, match=r"personal columns: phone \(phone\)\."):
        headrace.read(shop.feed, personal="*")
    may_read("*")
    assert headrace.read(shop.feed, personal="*").names == EVERY


def test_a_filter_does_not_tell_what_may_not_be_shown(shop: Workshop, may_read: Callable[[str], None]) -> None:
    published(shop, order("a", 1))
    with pytest.raises(PersonalRefused) as refused:
        headrace.read(shop.feed, where="email = 'a@example.com'")
    assert "example.com" not in str(refused.value)
    may_read("email")
    assert ids(headrace.read(shop.feed, where="email = 'a@example.com'")) == ["a"]
    with pytest.raises(ReadError, match="phone is masked for finance"):
        headrace.read(shop.feed, as_warehouse="finance", where="phone like '0123%'")


def test_a_reader_sees_exactly_what_a_warehouse_holds(
    shop: Workshop, spark: Any, may_read: Callable[[str], None]
) -> None:
    published(shop, order("a", 1), order("b", 2, "paid", "2.50"), order("c", 3, _hidden=True))
    shop.load("engineering", mask_key=connections.mask_key())
    rows = headrace.read(shop.feed, as_warehouse="engineering")
    assert rows.names == ["id", "revision", "status", "email", "created_at", "due"]
    from headrace import share

    shared = share.share(shop.feed, "engineering")
    with connections.warehouse("engineering").reading(shop.feed.name) as session:
        held = [
            dict(zip(shared.names, row, strict=True))
            for batch in session.rows(shared)
            for row in zip(*[column.to_pylist() for column in batch.columns], strict=True)
        ]
    seen = rows.arrow().to_pylist()
    assert sorted(seen, key=lambda row: row["id"]) == sorted(held, key=lambda row: row["id"])
    assert all(len(row["email"]) == 64 for row in seen)
    assert rows.spark(spark).count() == rows.count() == 2
    assert headrace.read(
        shop.feed, as_warehouse="engineering", where="status = 'paid'", columns=["id"]
    ).arrow().to_pylist() == [{"id": "b"}]
    with pytest.raises(PersonalRefused, match=r"email \(email\)"):
        headrace.read(shop.feed, as_warehouse="finance")
    may_read("email")
    finance = headrace.read(shop.feed, as_warehouse="finance", columns=["phone", "email"])
    assert finance.arrow().to_pylist()[0] == {"phone": "6789", "email": "a@example.com"}
    with pytest.raises(ReadError, match="there is no column 'price'"):
        headrace.read(shop.feed, as_warehouse="engineering", columns=["price"])


def test_without_a_feed_file_the_table_itself_tells_what_is_personal(shop: Workshop) -> None:
    published(shop, order("a", 1))
    rows = headrace.read(shop.feed.name)
    assert rows.names == PLAIN
    told = rows.describe().set_index("column")
    assert told.loc["due", "meaning"] == "When to pay."
    assert told.loc["email", "personal"] == "email"
    assert not told.loc["email", "shown"]
    with pytest.raises(ReadError, match="stands in its feed file"):
        headrace.read(shop.feed.name, as_warehouse="finance")


def test_a_column_that_nothing_is_known_of_is_kept_back(shop: Workshop, may_read: Callable[[str], None]) -> None:
    published(shop, order("a", 1))
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    with table.transaction() as transaction:
        transaction.remove_properties(personal.PROPERTY)
    with pytest.raises(PersonalRefused, match=r"id \(unknown\).*point HEADRACE_SCHEMAS at"):
        headrace.read(shop.feed.name)
    may_read("unknown")
    assert headrace.read(shop.feed.name, columns=["id"]).arrow().to_pylist() == [{"id": "a"}]


def test_unknown_names_are_told_with_the_nearest(shop: Workshop) -> None:
    with pytest.raises(ReadError, match=f"clean.{shop.feed.name}: there is no such table yet"):
        headrace.read(shop.feed)
    published(shop, order("a", 1))
    with pytest.raises(ReadError, match=f'Did you mean "{shop.feed.name}"'):
        headrace.read(shop.feed.name + "x")
    for asked in ({"columns": ["statsu"]}, {"where": "statsu = 'paid'"}):
        with pytest.raises(ReadError, match='Did you mean "status"'):
            headrace.read(shop.feed, **asked)
    for hidden in ({"columns": ["_hidden"]}, {"where": "_hidden = true"}):
        with pytest.raises(ReadError, match="there is no column '_hidden'"):
            headrace.read(shop.feed, **hidden)
    with pytest.raises(ReadError, match="has no warehouse 'finanze'"):
        headrace.read(shop.feed, as_warehouse="finanze")


def test_rows_that_a_run_made_are_read_with_what_it_did(shop: Workshop) -> None:
    accounts = shop.merge(Record(order("a", 1)), Record(order("b", 2)), Record(None, key="b"))
    rows = headrace.read(shop.feed)
    assert ids(rows) == ["a"]
    assert rows.at.accounts == accounts
    assert json.dumps(rows.at.accounts)


def test_a_machine_with_two_connections_and_no_airflow_reads_too(shop: Workshop, tmp_path: Path) -> None:
    published(shop, order("a", 1), order("b", 2))
    needed = (
        "AIRFLOW_CONN_HEADRACE_S3",
        "AIRFLOW_CONN_HEADRACE_CATALOG",
        "HEADRACE_LAKE",
        "PATH",
        "NO_PROXY",
        "no_proxy",
    )
    environment = {name: os.environ[name] for name in needed} | {"HOME": str(tmp_path), "AIRFLOW_HOME": str(tmp_path)}
    script = f"import headrace; print(headrace.read('{shop.feed.name}').count())"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "2\n", done.stderr


def test_nested_values_uuids_bytes_and_local_times_are_read_in_every_form(workshop: Make, spark: Any) -> None:
    address = {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]}
    fields = [
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "address", "type": address},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "raw", "type": "bytes"},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    ]
    shop = workshop({"key": ["id"], "warehouses": {"open": {}}}, fields=fields)
    id_, local = uuid.UUID("12345678123456781234567812345678"), datetime(2026, 1, 31, 8)  # noqa: DTZ001
    row = {
        "id": id_.bytes,
        "address": {"city": "Metz"},
        "tags": ["a"],
        "counts": [("n", 1)],
        "raw": b"\0",
        "local": local,
    }
    published(shop, row)
    rows = headrace.read(shop.feed, where="address.city = 'Metz' and local >= '2026-01-31'")
    assert rows.count() == len(rows.pandas()) == len(rows.duckdb().fetchall()) == 1
    assert rows.arrow().to_pylist()[0] == {**row, "id": id_}
    (seen,) = rows.spark(spark).collect()
    assert (seen["id"], seen["address"]["city"], seen["counts"]) == (str(id_), "Metz", {"n": 1})
    shared = headrace.read(shop.feed, as_warehouse="open").arrow().to_pylist()[0]
    assert (shared["id"], shared["address"], shared["tags"]) == (str(id_), '{"city": "Metz"}', '["a"]')
