"""A feed of a Kinesis stream, as its file declares it."""

import json
from pathlib import Path
from typing import Any

import pytest

from headrace import advice, feed, fixed, lint
from headrace.airflow import registration
from headrace.airflow.factory import documentation
from headrace.errors import FeedError
from headrace.settings import Settings

FIELDS = [{"name": "id", "type": "string"}, {"name": "revision", "type": "long"}]


def declared(name: str = "orders", **attributes: Any) -> feed.Feed:
    return feed.parse(f"{name}.avsc", text(**attributes))


def text(**attributes: Any) -> str:
    declaration = {"key": ["id"], "order": ["revision"], **attributes}
    return json.dumps({"type": "record", "name": "Order", "doc": "An order.", "fields": FIELDS, "feed": declaration})


def test_a_stream_is_called_like_its_feed_unless_it_is_named() -> None:
    assert declared(kinesis={}).topic == "orders"
    named = declared(kinesis={"stream": "Shop.Orders-v1"})
    assert (named.topic, named.subject) == ("Shop.Orders-v1", "Shop.Orders-v1-value")


@pytest.mark.parametrize("topic", [{"name": "orders"}, {"partitions": 3}, {"drains": {"topic": "old"}}])
def test_a_feed_has_a_stream_or_a_topic(topic: dict[str, Any]) -> None:
    with pytest.raises(FeedError, match=r"feed.topic does not go with kinesis.* Leave topic out"):
        declared(kinesis={}, topic=topic)


def test_a_stream_is_not_read_by_spark() -> None:
    with pytest.raises(FeedError, match=r"feed.extract.spark_from does not go with kinesis"):
        declared(kinesis={}, extract={"spark_from": 0})


def test_where_all_feeds_have_streams_kafka_is_not_asked_for() -> None:
    asked = {"bootstrap.servers": "broker:9092"}
    assert registration.brokers([declared(kinesis={})], lambda: asked) == {}
    assert registration.brokers([declared(kinesis={}), declared("calls")], lambda: asked) == asked


def test_a_stream_has_a_name_that_aws_takes() -> None:
    with pytest.raises(FeedError, match=r'feed.kinesis.stream is "my orders"; a stream has letters'):
        declared(kinesis={"stream": "my orders"})


def test_a_first_start_is_one_of_two() -> None:
    with pytest.raises(FeedError, match=r"feed.kinesis.start"):
        declared(kinesis={"start": "AT_TIMESTAMP"})


def test_what_needs_a_topic_is_refused() -> None:
    feed.refuse_stream(declared(), "replay")
    with pytest.raises(
        FeedError, match=r"feed orders: it reads from the Kinesis stream shop, and replay needs a topic"
    ):
        feed.refuse_stream(declared(kinesis={"stream": "shop"}), "replay")


def test_a_feed_stays_with_its_stream() -> None:
    topic, stream, other = declared(), declared(kinesis={}), declared(kinesis={"stream": "other"})
    assert [fault.path for fault in fixed.changes(stream, topic, origin="git")] == ["feed.kinesis"]
    assert [fault.path for fault in fixed.changes(other, stream, origin="git")] == ["feed.kinesis.stream"]
    assert not list(fixed.changes(declared(kinesis={"start": "LATEST"}), stream, origin="git"))


def test_without_order_fields_the_advice_is_about_partition_keys() -> None:
    told = [str(fault) for fault in advice.advice(declared(kinesis={}, order=[]))]
    assert any("only under one partition key" in each for each in told)


def test_two_feeds_of_one_stream_are_told_where_each_names_it(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.avsc").write_text(text(kinesis={"stream": "shop"}), encoding="utf-8")
    clashes = list(lint.clashes(sorted(tmp_path.iterdir())))
    assert [fault.path for _, fault in clashes] == ["feed.kinesis.stream"] * 2


def test_the_dag_says_which_stream_it_reads() -> None:
    told = documentation(declared(kinesis={"stream": "shop"}, order=[]))
    assert "| stream | shop |" in told
    assert "| order | shard and sequence number |" in told
    assert "| topic |" not in told


def test_the_example_of_the_page_is_a_feed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "kinesis.md").read_text(encoding="utf-8")
    example = json.loads("{" + page.partition("```json\n")[2].partition("```")[0] + "}")
    fields = [{"name": name, "type": "string"} for name in ("order_id", "revision")]
    made = feed.parse("orders.avsc", json.dumps({"type": "record", "name": "Order", "fields": fields, **example}))
    assert made.declaration.kinesis
    assert f"HEADRACE_{'kinesis_records'.upper()}" in page
    assert Settings().kinesis_records == 10_000_000
