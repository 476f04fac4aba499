"""Topics on a real broker: made as declared, compared when they are there, refused with a reason."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from headrace import feed as feeds
from headrace.errors import TopicError, TopicSilent
from headrace.feed import Feed
from headrace.kafka import topic

Declare = Callable[..., Feed]


@pytest.fixture
def kafka(stack: Any) -> Mapping[str, Any]:
    from headrace.airflow import connections

    return connections.kafka()


@pytest.fixture
def declare(kafka: Mapping[str, Any]) -> Iterator[Declare]:
    """Makes a feed with a topic of its own, which goes away after the test."""
    made: list[str] = []

    def make(**declared: Any) -> Feed:
        name = f"t_{uuid.uuid4().hex[:10]}"
        feed = {"key": ["id"], "order": ["revision"], "topic": declared}
        fields = [{"name": "id", "type": "string"}, {"name": "revision", "type": "long"}]
        text = json.dumps({"type": "record", "name": "Row", "fields": fields, "feed": feed})
        made.append(declared.get("name", name))
        return feeds.parse(f"{name}.avsc", text)

    yield make
    admin = AdminClient(dict(kafka))
    for answer in admin.delete_topics(made).values() if made else ():
        answer.exception(30)  # what was never made cannot be deleted


def shape(kafka: Mapping[str, Any], feed: Feed) -> dict[str, Any]:
    """What the broker has, as soon as it knows the topic."""
    admin = AdminClient(dict(kafka))
    while feed.topic not in admin.list_topics(timeout=30).topics:
        pass
    found = admin.describe_topics(TopicCollection([feed.topic]))[feed.topic].result(30)
    (asked,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, feed.topic)]).values()
    settings = {name: entry.value for name, entry in asked.result(30).items()}
    return {"partitions": len(found.partitions), **settings}


def test_a_topic_is_made_as_its_feed_declares_it(kafka: Mapping[str, Any], declare: Declare) -> None:
    feed = declare(partitions=5, retention="3d", compaction=True, largest_message="2 MiB")
    assert topic.ensure(kafka, feed) == []
    found = shape(kafka, feed)
    assert found["partitions"] == 5
    assert found["retention.ms"] == str(3 * 24 * 3600 * 1000)
    assert found["cleanup.policy"] == "compact,delete"
    assert found["max.message.bytes"] == str(2 * 1024 * 1024)
    assert topic.ensure(kafka, feed) == []


def test_what_a_feed_does_not_declare_is_the_brokers_own(kafka: Mapping[str, Any], declare: Declare) -> None:
    plain, forever = declare(), declare(retention="forever")
    done = topic.ensure_all(kafka, [plain, forever])
    assert [each.created for each in done.values()] == [True, True]
    assert shape(kafka, plain)["retention.ms"] != "-1"
    assert shape(kafka, forever)["retention.ms"] == "-1"


def declared_again(feed: Feed, **declared: Any) -> Feed:
    """The same feed after its file was changed."""
    changed = {**feed.schema, "feed": {**feed.schema["feed"], "topic": declared}}
    return feeds.parse(f"{feed.name}.avsc", json.dumps(changed))


def test_a_broker_that_differs_is_reported_with_what_to_do(kafka: Mapping[str, Any], declare: Declare) -> None:
    feed = declare(partitions=2)
    topic.ensure(kafka, feed)
    shape(kafka, feed)
    wanted = declared_again(feed, partitions=4, replication=2, retention="1d", compaction=True, largest_message="1 MiB")
    drifts = {drift.attribute: drift for drift in topic.ensure(kafka, wanted)}
    assert {name: (drift.declared, drift.actual) for name, drift in drifts.items()} == {
        "partitions": ("4", "2"),
        "replication": ("2", "1"),
        "retention": ("1d", "7d"),
        "compaction": ("cleanup.policy compact,delete", "cleanup.policy delete"),
        "largest_message": ("1048576 bytes", "17825792 bytes"),
    }
    assert f"--alter --topic {feed.topic} --partitions 4" in drifts["partitions"].fix
    assert f"--entity-name {feed.topic} --add-config cleanup.policy=[compact,delete]" in drifts["compaction"].fix
    assert kafka["bootstrap.servers"] in drifts["retention"].fix
    assert shape(kafka, feed)["partitions"] == 2, "a difference is told, never mended behind somebody's back"


def test_partitions_cannot_be_taken_away(kafka: Mapping[str, Any], declare: Declare) -> None:
    feed = declare(partitions=3)
    topic.ensure(kafka, feed)
    shape(kafka, feed)
    (drift,) = topic.ensure(kafka, declared_again(feed, partitions=1))
    assert f"cannot be taken away: declare 3, or break with it: headrace new --breaks {feed.name}" in drift.fix


def test_a_refusal_says_why_and_what_to_change(kafka: Mapping[str, Any], declare: Declare) -> None:
    with pytest.raises(
        TopicError, match=r"replication factor of 7 cannot be reached.* Lower topic.replication"
    ) as raised:
        topic.ensure(kafka, declare(replication=7))
    assert not raised.value.retry


def test_a_name_that_the_broker_takes_for_anothers_is_refused(kafka: Mapping[str, Any], declare: Declare) -> None:
    name = uuid.uuid4().hex
    topic.ensure(kafka, declare(name=f"t.{name}"))
    with pytest.raises(TopicError, match=r"collides with .* Change topic.name in the feed file"):
        topic.ensure(kafka, declare(name=f"t_{name}"))


def test_a_refused_topic_keeps_no_other_feed_from_its_own(kafka: Mapping[str, Any], declare: Declare) -> None:
    good, bad = declare(), declare(replication=7)
    done = topic.ensure_all(kafka, [bad, good])
    assert done[good.name].created
    assert isinstance(done[bad.name].refusal, TopicError)
    assert not done[bad.name].created


def test_a_broker_that_does_not_answer_may_be_asked_again(declare: Declare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic, "TIMEOUT_S", 1.0)
    with pytest.raises(TopicSilent, match="gave no answer"):
        topic.ensure({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, declare())


def test_two_feeds_of_one_topic_are_each_compared_with_it(kafka: Mapping[str, Any], declare: Declare) -> None:
    name = f"t_shared_{uuid.uuid4().hex[:6]}"
    plain, strict = declare(name=name), declare(name=name, retention="1d")
    topic.ensure(kafka, plain)
    shape(kafka, plain)
    done = topic.ensure_all(kafka, [plain, strict])
    assert done[plain.name].drifts == ()
    assert [drift.attribute for drift in done[strict.name].drifts] == ["retention"]
