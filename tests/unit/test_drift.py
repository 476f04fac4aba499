"""Drift: only what a feed declares is compared, and each difference says what to do."""

import json
from typing import Any

import pytest

from headrace import feed as feeds
from headrace.feed import Feed
from headrace.kafka.drift import Found, drifts, settings

DAY_MS = 24 * 3600 * 1000


def declared(topic: dict[str, Any], **feed: Any) -> Feed:
    fields = [{"name": "id", "type": "string"}, {"name": "revision", "type": "long"}]
    feed = {"key": ["id"], "order": ["revision"], "topic": topic, **feed}
    return feeds.parse("orders.avsc", json.dumps({"type": "record", "name": "Row", "fields": fields, "feed": feed}))


@pytest.mark.parametrize(
    ("topic", "asked"),
    [
        ({}, {}),
        ({"partitions": 7, "replication": 3}, {}),
        ({"retention": "7d"}, {"retention.ms": str(7 * DAY_MS), "cleanup.policy": "delete"}),
        ({"retention": "forever"}, {"retention.ms": "-1", "cleanup.policy": "delete"}),
        ({"compaction": True}, {"cleanup.policy": "compact"}),
        ({"compaction": False}, {"cleanup.policy": "delete"}),
        ({"compaction": True, "retention": "1d"}, {"retention.ms": str(DAY_MS), "cleanup.policy": "compact,delete"}),
        ({"compaction": True, "retention": "forever"}, {"retention.ms": "-1", "cleanup.policy": "compact"}),
        ({"largest_message": "16 MiB"}, {"max.message.bytes": "16777216"}),
    ],
    ids=str,
)
def test_a_topic_asks_for_the_settings_that_its_feed_declares(topic: dict[str, Any], asked: dict[str, str]) -> None:
    assert settings(declared(topic).declaration.topic) == asked


BROKER = {"retention.ms": str(7 * DAY_MS), "cleanup.policy": "delete,compact", "max.message.bytes": "1048588"}


@pytest.mark.parametrize(
    ("topic", "told"),
    [
        ({}, []),
        ({"partitions": 6, "replication": 3}, []),
        ({"retention": "7d", "compaction": True}, []),
        ({"partitions": 9}, [("partitions", "9", "6", "--topic orders --partitions 9")]),
        ({"partitions": 3}, [("partitions", "3", "6", "cannot be taken away: declare 6")]),
        ({"replication": 1}, [("replication", "1", "3", "kafka-reassign-partitions.sh")]),
        (
            {"retention": "36h", "compaction": True},
            [("retention", "36h", "7d", f"--add-config retention.ms={36 * 3600 * 1000}")],
        ),
        ({"compaction": False}, [("compaction", "cleanup.policy delete", "cleanup.policy delete,compact", "=delete")]),
        ({"largest_message": "2 MiB"}, [("largest_message", "2097152 bytes", "1048588 bytes", "=2097152")]),
    ],
    ids=str,
)
def test_a_difference_is_told_with_what_to_do(topic: dict[str, Any], told: list[tuple[str, str, str, str]]) -> None:
    found = list(drifts(declared(topic), Found(6, 3, BROKER), broker="broker:9092"))
    assert [(drift.attribute, drift.declared, drift.actual) for drift in found] == [each[:3] for each in told]
    for drift, (*_, fix) in zip(found, told, strict=True):
        assert fix in drift.fix


@pytest.mark.parametrize(("milliseconds", "told"), [(1500, "1500 ms"), (90_000, "90s"), (-1, "forever"), (0, "0 ms")])
def test_a_retention_is_told_as_a_feed_file_would_say_it(milliseconds: int, told: str) -> None:
    found = Found(6, 3, {**BROKER, "retention.ms": str(milliseconds), "cleanup.policy": "delete"})
    (drift,) = drifts(declared({"retention": "1d"}), found, broker="broker:9092")
    assert drift.actual == told


def test_a_feed_without_order_fields_is_not_told_to_grow_its_topic() -> None:
    (drift,) = drifts(declared({"partitions": 9}, order=[]), Found(6, 3, BROKER), broker="broker:9092")
    assert "without order fields older versions could win" in drift.fix
    assert "kafka-topics" not in drift.fix
