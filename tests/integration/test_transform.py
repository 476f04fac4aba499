"""Transform, check and publish on real Spark and Iceberg: each record once, latest state; readers see old or new."""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from workshop import ORDER, Record, Workshop

from headrace import layout
from headrace.errors import BranchMoved, CheckError

Make = Callable[..., Workshop]


def order(id_: str, revision: int, *, price: str = "1.00", **others: Any) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal(price), "created_at": 1_790_000_000_000, **others}
    return Record({"status": "placed", "email": None, **row}, key=id_)


def gone(id_: str) -> Record:
    return Record(None, key=id_)


def states(shop: Workshop) -> dict[str, int]:
    return {row["id"]: row["revision"] for row in shop.clean()}


STORY = [
    order("twice", 1), order("twice", 1),
    order("late", 3), order("late", 2),
    order("tie", 1, price="1.00"), order("tie", 1, price="2.00"),
    order("deleted", 2), gone("deleted"), order("deleted", 1),
    order("revived", 1), gone("revived"), order("revived", 2),
    gone("unknown"),
    order("deleted twice", 4), gone("deleted twice"), order("deleted twice", 3), gone("deleted twice"),
    order("plain", 1), order("plain", 2), order("plain", 3),
]  # fmt: skip
OUTCOME = {"twice": 1, "late": 3, "tie": 1, "revived": 2, "plain": 3}


@pytest.mark.parametrize("sizes", [[20], [7, 6, 7]], ids=str)
def test_the_split_into_batches_does_not_change_the_table(workshop: Make, sizes: Sequence[int]) -> None:
    shop, story = workshop(), iter(STORY)
    for size in sizes:
        shop.merge(*(next(story) for _ in range(size)))
    assert states(shop) == OUTCOME
    assert {row["id"]: row["price"] for row in shop.clean()}["tie"] == Decimal("2.00")
    assert shop.quarantine() == {}


RECENT, OLD = 1_790_000_000_000, 1_780_000_000_000
BY_DAY = {"field": "created_at", "by": "day"}


@pytest.mark.parametrize(
    ("declared", "old", "recent"),
    [
        # Keys in no order: only the partitions of the batch's own values are looked at.
        ({"partition": {**BY_DAY, "immutable": True}}, ["b", "y"], [order("a", 2), order("z", 1)]),
        # Keys that grow: the files' lowest and highest keys tell where they may lie.
        ({"partition": BY_DAY}, ["k1", "k2"], [order("m1", 2), order("m3", 1), gone("m2")]),
        ({}, ["k1", "k2"], [order("m1", 2), order("m3", 1), gone("m2")]),
    ],
    ids=["an immutable partition field", "keys located in partitions", "keys located in a table without partitions"],
)
def test_a_merge_of_recent_keys_reads_no_file_of_older_ones(
    workshop: Make, declared: dict[str, Any], old: list[str], recent: list[Record]
) -> None:
    shop = workshop({**ORDER, **declared})
    shop.merge(*(order(each, 1, created_at=OLD) for each in old))
    shop.merge(order(recent[0].key or "", 1), order(recent[-1].key or "", 1, price="3.00"))
    table, newer = shop.lake.find(layout.clean_table(shop.feed.name)), "created_at > '2026-08-01T00:00:00+00:00'"
    everything, some = ({each.file.file_path for each in table.scan(*where).plan_files()} for where in ((), (newer,)))
    assert (len(everything), len(some)) == (2, 1)
    for path in everything - some:
        table.io.delete(path)
    # What is not there any more cannot have been read.
    accounts = shop.merge(*recent)
    assert accounts["updated"] >= 1
    found = table.refresh().scan(newer).to_arrow().to_pylist()
    assert {row["id"]: row["revision"] for row in found if not row["_hidden"]} == {
        each.value["id"]: each.value["revision"] for each in recent if isinstance(each.value, dict)
    }


def test_what_does_not_decode_goes_to_quarantine_and_the_rest_goes_on(workshop: Make) -> None:
    shop = workshop()
    good = shop.encoded(order("a", 1).value)
    assert good is not None
    bad = [b"", b"\x01text", b"\0\0\0\xff\xff" + good[5:], good[:7]]
    accounts = shop.merge(order("a", 1), *(Record(value, key="b") for value in bad), gone("a"), Record(None))
    assert shop.quarantine() == {
        (0, 1): "unframed", (0, 2): "unframed", (0, 3): "unknown_id", (0, 4): "undecodable", (0, 6): "keyless",
    }  # fmt: skip
    assert accounts == {
        "read": 7, "decoded": 2, "quarantined": 5, "duplicates": 0, "superseded": 1, "inserted": 0, "updated": 0,
        "deleted": 1,
    }  # fmt: skip
    assert states(shop) == {}


def test_text_that_no_warehouse_can_hold_and_lengths_without_end_go_to_quarantine(workshop: Make) -> None:
    shop = workshop()
    good = shop.encoded(order("abc", 1).value)
    assert good is not None
    huge = good[:5] + b"\xfe\xff\xff\xff\x0b" + b"abcd"
    shop.merge(
        order("fine", 1),
        Record(good.replace(b"abc", b"a\x00c"), key="x"),
        Record(good.replace(b"abc", b"a\xffc"), key="x"),
        Record(huge, key="x"),
        Record(None, key="\0\0\0009"),
    )
    assert states(shop) == {"fine": 1}
    assert shop.quarantine() == {**dict.fromkeys([(0, 1), (0, 2), (0, 3)], "undecodable"), (0, 4): "keyless"}


def test_clearing_a_run_whose_records_were_published_by_another_does_nothing(workshop: Make) -> None:
    shop = workshop()
    shop.publish(order("a", 1))
    shop.extract()
    shop.transform("failed")
    shop.transform("next")
    shop.publish_run("next")
    assert shop.transform("failed") is None
    assert shop.publish_run("failed") is None
    assert states(shop) == {"a": 1}


def test_a_transform_that_runs_again_quarantines_nothing_twice(workshop: Make) -> None:
    shop = workshop()
    shop.publish(order("a", 1), Record(b"bad", key="b"))
    shop.extract()
    shop.transform("first")  # and died before it was published
    shop.transform("second")
    shop.publish_run("second")
    assert shop.quarantine() == {(0, 1): "unframed"}
    assert states(shop) == {"a": 1}


def test_readers_see_nothing_of_a_run_before_it_is_published(workshop: Make) -> None:
    shop = workshop()
    shop.merge(order("a", 1))
    shop.publish(order("a", 2), order("b", 1))
    shop.extract()
    shop.transform("run")
    assert states(shop) == {"a": 1}
    shop.publish_run("run")
    assert states(shop) == {"a": 2, "b": 1}


def test_publishing_drops_the_branch_and_publishing_again_does_nothing(workshop: Make) -> None:
    shop = workshop()
    shop.publish(order("a", 1))
    shop.extract()
    shop.transform("run")
    assert shop.publish_run("run") is not None
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    assert set(table.metadata.refs) == {"main"}
    assert shop.publish_run("run") is None


def test_a_run_whose_base_has_moved_is_not_published(workshop: Make) -> None:
    shop = workshop()
    shop.publish(order("a", 1))
    shop.extract()
    shop.transform("slow")
    shop.transform("quick")
    shop.publish_run("quick")
    with pytest.raises(BranchMoved, match="Clear this run's transform task"):
        shop.publish_run("slow")
    assert states(shop) == {"a": 1}


def test_nothing_new_makes_no_branch_and_starts_no_spark_work(workshop: Make) -> None:
    shop = workshop()
    assert shop.transform("too early") is None
    shop.merge(order("a", 1))
    assert shop.transform("idle") is None


def test_a_failed_check_keeps_the_rows_from_readers_and_names_itself(workshop: Make) -> None:
    shop = workshop({**ORDER, "checks": [{"column": "price", "between": [0, 100]}]})
    shop.merge(order("a", 1))
    shop.publish(order("a", 2, price="101.00"), order("b", 1))
    shop.extract()
    shop.transform("run")
    with pytest.raises(CheckError, match=r"1 of \d+ checks failed: price: 0 to 100 \(\w+: 1 of 2 rows; key a\)"):
        shop.check("run")
    assert states(shop) == {"a": 1}


def test_checks_look_only_at_what_the_run_changed(workshop: Make) -> None:
    shop = workshop({**ORDER, "checks": [{"column": "price", "between": [0, 100]}]})
    shop.merge(order("old", 1, price="500.00"))  # published before the check was declared, so to speak
    shop.publish(order("new", 1))
    shop.extract()
    shop.transform("run")
    assert shop.check("run") == []


CALL = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "seconds": {"type": "integer", "minimum": 0},
        "note": {"type": ["string", "null"]},
        "at": {"type": "string", "format": "date-time"},
    },
    "required": ["id", "seconds", "at"],
}
AT = "2026-11-16T04:00:00.5Z"


def call(id_: str, seconds: Any, **others: Any) -> Record:
    return Record({"id": id_, "seconds": seconds, "at": AT, **others}, key=id_)


@pytest.mark.parametrize("split", [False, True])
def test_append_keeps_the_first_drops_redeliveries_and_quarantines_other_content(workshop: Make, split: bool) -> None:
    shop = workshop({"key": ["id"], "merge": "append"}, json_schema=CALL)
    first = [call("a", 1), call("a", 1), call("b", 2)]
    second = [call("a", 1, note=None), call("a", 9), call("c", 3)]
    if split:
        shop.merge(*first)
        shop.merge(*second)
    else:
        shop.merge(*first, *second)
    assert {row["id"]: row["seconds"] for row in shop.clean()} == {"a": 1, "b": 2, "c": 3}
    assert shop.quarantine() == {(0, 4): "conflict"}


def test_an_append_that_gets_an_earlier_record_late_accounts_for_what_came_of_each(workshop: Make) -> None:
    shop = workshop({"key": ["id"], "merge": "append", "topic": {"partitions": 2}}, json_schema=CALL)
    stood, earlier = replace(call("a", 1), partition=1), call("a", 2)
    shop.merge(stood)
    accounts = shop.merge(earlier, earlier, stood)
    assert {row["id"]: row["seconds"] for row in shop.clean()} == {"a": 2}
    assert shop.quarantine() == {(1, 0): "conflict", (1, 1): "conflict"}
    assert accounts == {
        "read": 3, "decoded": 2, "quarantined": 1, "duplicates": 1, "superseded": 0, "inserted": 0, "updated": 1,
        "deleted": 0,
    }  # fmt: skip


def test_a_tombstone_deletes_nothing_in_an_append_feed(workshop: Make) -> None:
    shop = workshop({"key": ["id"], "merge": "append"}, json_schema=CALL)
    shop.merge(gone("a"), call("a", 1), gone("a"))
    assert [row["id"] for row in shop.clean()] == ["a"]
    assert shop.quarantine() == {(0, 0): "tombstone", (0, 2): "tombstone"}


def test_json_that_breaks_its_schema_is_invalid_and_what_is_no_json_undecodable(workshop: Make) -> None:
    shop = workshop({"key": ["id"], "merge": "append"}, json_schema=CALL)
    good = shop.encoded(call("good", 1).value)
    assert good is not None
    deep = b"[" * 5000
    half = b'{"\\ud800": 1}'
    texts = [deep, half, b"{", b"", b"[1]", b'{"id": "x", "seconds": NaN, "at": "' + AT.encode() + b'"}']
    # Of numbers and brackets without measure there is more in tests/unit/test_json_rows.py.
    texts += [good[5:-1] + b', "more": ' + more + b"}" for more in (b"1e9999999999999999999999", b"[" * 5000)]
    texts.append(b'{"id": "x", "seconds": 1e1000000, "at": "' + AT.encode() + b'"}')
    shop.merge(
        call("good", 1),
        call("wrong type", "1"),
        call("too small", -1),
        Record({"id": "missing", "seconds": 1}, key="missing"),
        Record({"id": "no time", "seconds": 1, "at": "yesterday"}, key="no time"),
        *(Record(good[:5] + text, key="x") for text in texts),
    )
    assert [row["id"] for row in shop.clean()] == ["good"]
    assert shop.quarantine() == {
        **dict.fromkeys([(0, 1), (0, 2), (0, 3), (0, 4), (0, 6), (0, 9), (0, 13)], "invalid"),
        **dict.fromkeys([(0, 5), (0, 7), (0, 8), (0, 10), (0, 11), (0, 12)], "undecodable"),
    }


def test_a_tombstones_key_with_a_number_without_measure_is_none(workshop: Make) -> None:
    shop = workshop({"key": ["id", "price"], "order": ["revision"]})
    numbers = ['"1e100000000"', "1e100000000", "1e-100000000", "-1e999999999999999999999"]
    keys = [f'{{"id": "a", "price": {number}}}' for number in ('"1.00"', "2.0", *numbers)]
    rows = [order("a", 1, price=price) for price in ("1.00", "2.00", "3.00")]
    shop.merge(*rows, *(Record(None, key=key) for key in keys))
    assert [row["price"] for row in shop.clean()] == [Decimal("3.00")]
    assert shop.quarantine() == dict.fromkeys([(0, 5), (0, 6), (0, 7), (0, 8)], "keyless")

    lone = workshop({"key": ["price"], "order": ["revision"]})
    numbers = ["1.00", "1e-999999999", "1e2147483647", "1e99999999999999"]
    lone.merge(order("a", 1, price="1.00"), *(Record(None, key=number) for number in numbers))
    assert lone.clean() == []
    assert lone.quarantine() == dict.fromkeys([(0, 2), (0, 3), (0, 4)], "keyless")


FIRSTS = {"key": ["id"], "order": ["revision"], "merge": "first"}


@pytest.mark.parametrize("sizes", [[10], [4, 6]], ids=str)
def test_first_keeps_the_lowest_version_and_a_delete_is_final(workshop: Make, sizes: Sequence[int]) -> None:
    shop = workshop(FIRSTS)
    story = iter([
        order("late", 3), order("late", 2), order("late", 4),
        order("tie", 1, price="1.00"), order("tie", 1, price="2.00"),
        order("deleted", 2), gone("deleted"), order("deleted", 1), order("deleted", 3),
        gone("unknown"),
    ])  # fmt: skip
    for size in sizes:
        shop.merge(*(next(story) for _ in range(size)))
    assert states(shop) == {"late": 2, "tie": 1}
    assert {row["id"]: row["price"] for row in shop.clean()}["tie"] == Decimal("1.00")


def paid(id_: str, revision: int) -> Record:
    """In the feeds below, a version that deletes its row."""
    return order(id_, revision, status="paid", email="a@example.org")


DELETED_WHEN_PAID = {"delete": {"field": "status", "one_of": ["paid"]}}


@pytest.mark.parametrize("sizes", [[13], [6, 7]], ids=str)
def test_a_version_that_deletes_ranks_by_its_own_order(workshop: Make, sizes: Sequence[int]) -> None:
    shop = workshop({**ORDER, **DELETED_WHEN_PAID})
    story = iter([
        order("deleted", 1), paid("deleted", 2), order("deleted", 1),
        paid("too old", 1), order("too old", 2),
        order("late delete", 3), paid("late delete", 2),
        order("revived", 1), paid("revived", 2), order("revived", 3),
        paid("twice", 2), gone("twice"), order("twice", 1),
    ])  # fmt: skip
    for size in sizes:
        shop.merge(*(next(story) for _ in range(size)))
    assert states(shop) == {"too old": 2, "late delete": 3, "revived": 3}
    table = shop.lake.find(layout.clean_table(shop.feed.name)).scan(row_filter="_hidden = true").to_arrow()
    assert sorted(table.column("id").to_pylist()) == ["deleted", "twice"]
    assert not any(table.column("email").to_pylist()), "a hidden row keeps nothing but what identifies and ranks it"


def test_in_a_first_feed_a_version_that_deletes_is_final_too(workshop: Make) -> None:
    shop = workshop({**FIRSTS, **DELETED_WHEN_PAID})
    shop.merge(order("a", 1), order("b", 1), paid("a", 5))
    shop.merge(order("a", 0), order("a", 9), order("b", 2))
    assert states(shop) == {"b": 1}


def test_an_append_feed_compares_what_is_nested_too(workshop: Make) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "tags", "type": {"type": "map", "values": "string"}}]
    shop = workshop({"key": ["id"], "merge": "append"}, fields=fields)
    shop.merge(Record({"id": "a", "tags": {"x": "1", "y": "2"}}))
    shop.merge(Record({"id": "a", "tags": {"y": "2", "x": "1"}}), Record({"id": "a", "tags": {"x": "1"}}))
    assert shop.quarantine() == {(0, 2): "conflict"}


OLD_FIELDS = [
    {"name": "number", "type": "int"},
    {"name": "price", "type": "string"},
    {"name": "geo", "type": {"type": "record", "name": "Geo", "fields": [{"name": "lat", "type": "double"}]}},
    {"name": "sizes", "type": {"type": "array", "items": "long"}},
    {"name": "gone", "type": "string"},
]
NEW_GEO = [{"name": "lon", "type": ["null", "double"]}, {"name": "lat", "type": "float"}]
NEW_FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "geo", "type": ["null", {"type": "record", "name": "Geo", "fields": NEW_GEO}]},
    {"name": "sizes", "type": {"type": "array", "items": "int"}},
    {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["new", "old"]}, "default": "old"},
    {"name": "parts", "type": {"type": "map", "values": "State"}, "default": {"a": "new"}},
]


def test_records_of_a_drained_topic_are_projected_by_name_and_none_loses_a_value(workshop: Make) -> None:
    old = workshop({"key": ["number"]}, fields=OLD_FIELDS)
    drains = {"topic": old.feed.topic, "fields": {"id": "number"}}
    new = workshop({"key": ["id"], "topic": {"drains": drains}}, fields=NEW_FIELDS)
    good = {"number": 7, "price": "1.50", "geo": {"lat": 0.5}, "sizes": [1, 2], "gone": "x"}
    bad = [{"price": "much"}, {"geo": {"lat": 0.1}}, {"sizes": [1, 2**40]}]
    old.publish(Record(good), *(Record({**good, "number": 8, **each}) for each in bad))
    mine = {"id": "9", "price": Decimal("2.00"), "geo": None, "sizes": [], "state": "new", "parts": {}}
    new.merge(Record(mine))
    new.merge()
    drained = {"id": "7", "price": Decimal("1.50"), "geo": {"lon": None, "lat": 0.5}, "sizes": [1, 2], "state": "old"}
    assert {row["id"]: row for row in new.clean()} == {
        "7": {**drained, "parts": None},
        "9": {**mine, "parts": []},
    }
    assert new.quarantine() == dict.fromkeys([(-1, 1), (-1, 2), (-1, 3)], "undecodable")


def test_json_records_of_a_drained_topic_are_projected_too(workshop: Make) -> None:
    old = workshop({"key": ["id"], "merge": "append"}, json_schema=CALL)
    seconds = {"type": "object", "properties": {"id": {"type": "string"}, "length": {"type": "string"}}}
    drains = {"topic": old.feed.topic, "fields": {"length": "seconds"}}
    new = workshop({"key": ["id"], "topic": {"drains": drains}}, json_schema=seconds)
    old.publish(call("a", 1), call("b", -1))
    new.merge(Record({"id": "c", "length": "long"}))
    new.merge()
    assert {row["id"]: row["length"] for row in new.clean()} == {"a": "1", "c": "long"}
    assert new.quarantine() == {(-1, 1): "invalid"}


@pytest.mark.parametrize("merge", ["latest", "first", "append"])
def test_no_field_is_taken_for_a_column_of_the_jobs_own(workshop: Make, merge: str) -> None:
    names = ["after", "below", "best", "first", "held", "stands", "row", "reason", "read", "fault", "s", "t", "c"]
    fields = [{"name": name, "type": ["null", "string"], "default": None} for name in names]
    shop = workshop({"key": ["best", "held"], "merge": merge}, fields=fields)
    row = dict.fromkeys(names, "x")
    key = json.dumps({"best": "x", "held": "x"})
    shop.merge(Record(row, key=key), Record({**row, "best": "y"}, key=json.dumps({"best": "y", "held": "x"})))
    assert {each["best"] for each in shop.clean()} == {"x", "y"}
    shop.merge(Record(None, key=key), Record({**row, "best": "z", "after": "later"}))
    left = {"x", "y", "z"} if merge == "append" else {"y", "z"}
    assert {each["best"] for each in shop.clean()} == left


@pytest.mark.parametrize("declared", [{"json_schema": CALL}, {}], ids=["JSON", "Avro"])
def test_a_batch_is_read_and_decoded_once(workshop: Make, declared: dict[str, Any]) -> None:
    from headrace.airflow import connections
    from headrace.lake import spark_properties
    from headrace.stages import transform
    from spark_jobs import envelopes
    from spark_jobs import transform as job
    from spark_jobs.session import session

    shop = workshop({"key": ["id"]}, **declared)
    shop.publish(call("a", 1) if declared else order("a", 1))
    shop.extract()
    writers, key = connections.registry().writers(shop.feed.subject), connections.signing_key()
    plan = transform.plan(shop.feed, lake=shop.lake, writers=writers, drained={}, signing=key, run="r")
    assert plan is not None
    with session(connections.spark_remote(), properties=spark_properties(shop.lake)) as spark, ExitStack() as kept:
        records = job.Transform(spark, plan, kept).judged(envelopes.asked(spark, plan))
        for read in (records, records.where("reason is null").select("row"), records.groupBy("partition").count()):
            assert "InMemoryTableScan" in read._explain_string()
