"""Draining: an older topic and the one that took over from it become one clean table, whatever is killed when."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from spark_reading import cluster_of
from workshop import Record, Workshop

from headrace import feed as feeds
from headrace import layout
from headrace.airflow import forgetting
from headrace.errors import TopicError, TopicMissing
from headrace.lake import heads_of
from headrace.stages import extract

Make = Callable[..., Workshop]

OLD_FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "version", "type": "int"},
    {"name": "price", "type": "double"},
    {"name": "mail", "type": ["null", "string"], "default": None, "pii": "email"},
]
NEW_FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": "long"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "email", "type": ["null", "string"], "default": None, "pii": "email"},
]
RENAMES = {"revision": "version", "email": "mail"}


@dataclass(frozen=True)
class Broken:
    """An older feed and the new one that drains its topic."""

    old: Workshop
    new: Workshop


@pytest.fixture
def broken(workshop: Make) -> Broken:
    old = workshop({"key": ["id"], "order": ["version"]}, fields=OLD_FIELDS)
    drains = {"topic": old.feed.topic, "fields": RENAMES}
    new = workshop({"key": ["id"], "order": ["revision"], "topic": {"drains": drains}}, fields=NEW_FIELDS)
    return Broken(old, new)


def older(id_: str, version: int, *, price: float = 1.0, mail: str | None = None, partition: int = 0) -> Record:
    return Record({"id": id_, "version": version, "price": price, "mail": mail}, key=id_, partition=partition)


def newer(id_: str, revision: int, *, price: str = "1.00", email: str | None = None) -> Record:
    return Record({"id": id_, "revision": revision, "price": Decimal(price), "email": email}, key=id_)


def gone(id_: str, partition: int = 0) -> Record:
    return Record(None, key=id_, partition=partition)


def coordinates(shop: Workshop) -> list[tuple[int, int]]:
    rows = shop.lake.find(layout.archive_table(shop.feed.name)).scan().to_arrow().to_pylist()
    return sorted((row["partition"], row["offset"]) for row in rows)


def states(shop: Workshop) -> dict[str, int]:
    return {row["id"]: row["revision"] for row in shop.clean()}


def without_drain(shop: Workshop) -> Workshop:
    schema: dict[str, Any] = {**shop.feed.schema}
    schema["feed"] = {**schema["feed"], "topic": {}}
    return replace(shop, feed=feeds.parse(f"{shop.feed.name}.avsc", json.dumps(schema)))


def delete_topic(shop: Workshop) -> None:
    admin, name = AdminClient(dict(shop.kafka)), shop.feed.topic
    admin.delete_topics([name])[name].result(30)
    while name in admin.list_topics(timeout=30).topics:
        pass


def test_one_archive_holds_both_topics_under_coordinates_of_their_own(broken: Broken) -> None:
    broken.old.publish(older("a", 1), older("a", 2), older("b", 1, partition=2))
    broken.new.publish(newer("a", 3))
    assert broken.new.extract().records == 4
    assert coordinates(broken.new) == [(-3, 0), (-1, 0), (-1, 1), (0, 0)]
    table = broken.new.lake.find(layout.archive_table(broken.new.feed.name))
    keys = [task.file.file_path.split("/archive/")[1].split("/")[:2] for task in table.scan().plan_files()]
    assert sorted(map(tuple, keys)) == sorted(
        [(broken.old.feed.topic, "0"), (broken.old.feed.topic, "2"), (broken.new.feed.topic, "0")]
    )
    head = heads_of(table)
    assert head.own.next == {0: 1, 1: 0, 2: 0}
    assert head.drained.next == {0: 2, 1: 0, 2: 1}
    assert head.drained_id
    assert broken.new.extract().records == 0


def test_lag_tools_see_both_topics(broken: Broken) -> None:
    broken.old.publish(older("a", 1))
    broken.new.publish(newer("a", 2), newer("b", 1))
    broken.new.extract()
    admin = AdminClient(dict(broken.new.kafka))
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(f"headrace.{broken.new.feed.name}")])
    (answer,) = asked.values()
    reached = {(each.topic, each.partition): each.offset for each in answer.result(30).topic_partitions}
    assert (reached[broken.old.feed.topic, 0], reached[broken.new.feed.topic, 0]) == (1, 2)


def test_a_drained_topic_that_is_gone_is_no_matter_and_one_that_never_was_is(broken: Broken, workshop: Make) -> None:
    broken.old.publish(older("a", 1))
    broken.new.extract()
    delete_topic(broken.old)
    broken.new.publish(newer("a", 2))
    assert broken.new.extract().records == 1
    assert coordinates(broken.new) == [(-1, 0), (0, 0)]
    misspelt = workshop({"key": ["id"], "topic": {"drains": {"topic": "no_such_topic"}}}, fields=NEW_FIELDS)
    with pytest.raises(TopicMissing, match=rf"no_such_topic, which feed {misspelt.feed.name} drains"):
        misspelt.extract()


def test_a_file_that_no_longer_names_what_it_drained_stops_the_feed(broken: Broken) -> None:
    broken.old.publish(older("a", 1))
    broken.new.extract()
    with pytest.raises(TopicError, match=r"Put topic\.drains back"):
        without_drain(broken.new).extract()


def test_both_topics_become_one_table(broken: Broken) -> None:
    broken.old.publish(
        older("old only", 1, price=10.25, mail="a@example.com"),
        older("updated", 1),
        older("updated", 2),
        older("deleted", 1),
        gone("deleted"),
        older("came back", 1),
        gone("came back"),
        older("other partition", 4, price=0.1, partition=2),
    )
    broken.new.publish(newer("updated", 3, price="3.33"), newer("new only", 1), newer("came back", 2))
    accounts = broken.new.run()
    assert (accounts["read"], accounts["quarantined"]) == (11, 0)
    assert states(broken.new) == {"old only": 1, "updated": 3, "came back": 2, "other partition": 4, "new only": 1}
    rows = {row["id"]: row for row in broken.new.clean()}
    assert (rows["old only"]["price"], rows["old only"]["email"]) == (Decimal("10.25"), "a@example.com")
    assert rows["other partition"]["price"] == Decimal("0.10")
    assert rows["updated"]["price"] == Decimal("3.33")


def test_late_records_of_the_older_topic_count_and_lose_to_newer_versions(broken: Broken) -> None:
    broken.old.publish(older("a", 1), older("gone", 1))
    broken.new.run()
    broken.new.publish(newer("a", 3), gone("gone"))
    broken.new.run()
    broken.old.publish(older("a", 2), older("late", 1), gone("a"))
    broken.new.run()
    assert states(broken.new) == {"a": 3, "late": 1}
    broken.old.publish(older("a", 4), older("gone", 1))
    broken.new.run()
    assert states(broken.new) == {"a": 4, "late": 1}


@pytest.mark.parametrize("merged", ["after each extract", "once, at the end"])
def test_a_tombstone_deletes_what_the_older_topic_said_before_it_was_archived_and_nothing_later(
    broken: Broken, merged: str
) -> None:
    batches: list[tuple[list[Record], list[Record]]] = [
        ([older("gone", 5), older("back", 5), older("again", 5)], []),
        ([older("gone", 6)], [gone("gone"), gone("back"), gone("again"), gone("never")]),
        ([older("gone", 4), older("back", 7), older("never", 1)], [newer("again", 6)]),
    ]
    for old_records, new_records in batches:
        broken.old.publish(*old_records)
        broken.new.publish(*new_records)
        broken.new.run() if merged == "after each extract" else broken.new.extract()
    broken.new.run()
    assert states(broken.new) == {"back": 7, "again": 6, "never": 1}


@pytest.mark.parametrize("way", ["in the task", "by Spark"])
def test_an_archive_notes_with_a_tombstone_how_far_the_older_topic_was(broken: Broken, way: str) -> None:
    broken.old.publish(older("a", 1), gone("a"))
    broken.new.publish(gone("a"), newer("b", 1))
    shop, cluster = broken.new, cluster_of(broken.new) if way == "by Spark" else None
    limits = extract.Limits(1000, 1 << 20)
    done = extract.extract(shop.feed, lake=shop.lake, kafka=shop.kafka, limits=limits, cluster=cluster)
    assert done.records == 4
    paths = {task.file.file_path for task in shop.lake.find(layout.archive_table(shop.feed.name)).scan().plan_files()}
    assert {path.split("/archive/")[1].split("/")[0] for path in paths} == {shop.feed.topic, broken.old.feed.topic}
    rows = broken.new.lake.find(layout.archive_table(broken.new.feed.name)).scan().to_arrow().to_pylist()
    noted = {(row["partition"], row["offset"]): row["after"] and dict(row["after"]) for row in rows}
    assert noted == {(-1, 0): None, (-1, 1): None, (0, 0): {-1: 2, -2: 0, -3: 0}, (0, 1): None}


def test_a_feed_that_begins_to_drain_later_keeps_its_archive(workshop: Make) -> None:
    old = workshop({"key": ["id"], "order": ["version"]}, fields=OLD_FIELDS)
    new = workshop({"key": ["id"], "order": ["revision"]}, fields=NEW_FIELDS)
    old.publish(older("a", 1), older("b", 1))
    new.publish(newer("a", 2))
    new.run()
    drains = {"topic": old.feed.topic, "fields": RENAMES}
    declared = {**new.feed.schema["feed"], "topic": {"drains": drains}}
    text = json.dumps({**new.feed.schema, "feed": declared})
    draining = replace(new, feed=feeds.parse(f"{new.feed.name}.avsc", text))
    draining.run()
    assert states(draining) == {"a": 2, "b": 1}


def test_without_order_fields_the_own_topic_decides_whenever_the_older_one_is_read(workshop: Make) -> None:
    old = workshop({"key": ["id"]}, fields=OLD_FIELDS)
    drains = {"topic": old.feed.topic, "fields": RENAMES}
    new = workshop({"key": ["id"], "topic": {"drains": drains}}, fields=NEW_FIELDS)
    new.publish(newer("a", 1), newer("deleted", 1), gone("deleted"))
    old.publish(older("a", 8), older("b", 1))
    new.run()
    old.publish(older("a", 9), older("deleted", 9), older("b", 2))
    new.run()
    assert states(new) == {"a": 1, "b": 2}


def test_what_a_drained_topic_cannot_say_is_quarantined_under_its_mirrored_number(broken: Broken) -> None:
    good = broken.new.encoded(newer("x", 1).value)
    assert good is not None
    broken.old.publish(older("a", 1), Record(b"bad", key="b"), Record(good, key="x"))
    broken.new.run()
    assert states(broken.new) == {"a": 1}
    assert broken.new.quarantine() == {(-1, 1): "unframed", (-1, 2): "unknown_id"}


def test_a_run_killed_between_write_and_commit_and_run_again_changes_nothing(broken: Broken) -> None:
    broken.old.publish(older("a", 1), older("b", 1))
    broken.new.publish(newer("a", 2))
    killed_before_commit(broken.new)
    broken.new.run()
    once = (coordinates(broken.new), broken.new.clean())
    broken.new.transform("killed before it was published")
    assert broken.new.run() is None
    assert (coordinates(broken.new), broken.new.clean()) == once
    assert coordinates(broken.new) == [(-1, 0), (-1, 1), (0, 0)]
    assert states(broken.new) == {"a": 2, "b": 1}


def killed_before_commit(shop: Workshop) -> None:
    """Everything that an extract does but its last step."""
    from headrace.archive import Archive, archive_of
    from headrace.kafka import plan, topic

    table, drains = archive_of(shop.feed, shop.lake), shop.feed.declaration.topic.drains
    assert drains is not None
    found, old = topic.describe(shop.kafka, shop.feed.topic), topic.describe(shop.kafka, drains.topic)
    planned = plan.plan(heads_of(table), found, name="killed", drained=old)
    archive = Archive(shop.lake, table, shop.feed.topic, drains.topic)
    limits = extract.Limits(1000, 1 << 20)
    batches = extract.PlanReading(shop.kafka, planned, shop.feed.topic, drains.topic)
    assert archive.file(batches, plan=planned.name, limits=limits)


COMPOUND: Mapping[str, Any] = {"key": ["shop", "number"], "order": ["revision"]}


def test_a_tombstone_of_the_older_topic_names_a_renamed_key_by_its_old_name(workshop: Make) -> None:
    old_fields = [
        {"name": "shop", "type": "string"},
        {"name": "no", "type": "int"},
        {"name": "revision", "type": "int"},
    ]
    new_fields = [
        {"name": "shop", "type": "string"},
        {"name": "number", "type": "long"},
        {"name": "revision", "type": "long"},
    ]
    old = workshop({**COMPOUND, "key": ["shop", "no"]}, fields=old_fields)
    drains = {"topic": old.feed.topic, "fields": {"number": "no"}}
    new = workshop({**COMPOUND, "topic": {"drains": drains}}, fields=new_fields)
    key = json.dumps({"shop": "s", "no": 1})
    old.publish(Record({"shop": "s", "no": 1, "revision": 1}, key=key), Record(None, key=key))
    old.publish(Record({"shop": "s", "no": 2, "revision": 1}, key="any"))
    new.run()
    assert [(row["shop"], row["number"]) for row in new.clean()] == [("s", 2)]
    assert new.quarantine() == {}


def test_a_warehouse_follows_both_topics(workshop: Make) -> None:
    old = workshop({"key": ["id"], "order": ["version"]}, fields=OLD_FIELDS)
    declared = {"key": ["id"], "order": ["revision"], "warehouses": {"finance": {"keep": ["email"]}}}
    drains = {"topic": old.feed.topic, "fields": RENAMES}
    new = workshop({**declared, "topic": {"drains": drains}}, fields=NEW_FIELDS)
    old.publish(older("a", 1), older("b", 1), older("c", 1))
    new.publish(newer("a", 2))
    new.run()
    assert new.load().whole
    old.publish(older("b", 2), older("late", 1))
    new.publish(gone("c"))
    new.run()
    again = new.load()
    assert (again.whole, again.staged) == (False, 3)
    assert new.reconcile().figures.rows == 3


def test_json_feeds_drain_too(workshop: Make) -> None:
    texts = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "n": {"type": "string"}}}
    numbers = {
        "type": "object",
        "required": ["id"],
        "properties": {"id": {"type": "string"}, "count": {"type": "integer"}},
    }
    old = workshop({"key": ["id"]}, json_schema=texts)
    drains = {"topic": old.feed.topic, "fields": {"count": "n"}}
    new = workshop({"key": ["id"], "topic": {"drains": drains}}, json_schema=numbers)
    old.publish(*(Record({"id": id_, "n": n}, key=id_) for id_, n in (("a", "1"), ("b", "2"), ("bad", "many"))))
    new.publish(Record({"id": "a", "count": 7}, key="a"), gone("b"))
    new.run()
    assert {row["id"]: row["count"] for row in new.clean()} == {"a": 7}
    assert new.quarantine() == {(-1, 2): "undecodable"}


def test_forget_tells_what_either_topic_has_that_the_archive_has_not(broken: Broken) -> None:
    broken.old.publish(older("a", 1, mail="ada@example.org"), older("c", 1))
    broken.new.merge(newer("b", 1))
    broken.old.publish(older("a", 2))
    broken.new.publish(newer("b", 2), newer("b", 3))
    done = forgetting.forget(broken.new.feed, ["a"], by="test")
    assert done
    assert (len(done.done.located.archive), done.later) == (1, 3)
    assert {each.topic: each.records for each in done.topics} == {broken.old.feed.topic: 1, broken.new.feed.topic: 0}
