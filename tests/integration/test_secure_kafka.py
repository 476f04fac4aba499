"""A broker that speaks SASL_SSL and nothing else, reached through an Airflow connection: it works, or says why."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker import LIMITED, PASSWORD, Broker
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from spark_reading import cluster_of
from workshop import Workshop

from headrace import layout
from headrace.airflow import connections
from headrace.errors import ServiceRefused, TopicError
from headrace.kafka import topic
from headrace.stages import extract

Make = Callable[..., Workshop]
Connect = Callable[..., Workshop]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp("broker"), secure=True)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def connect(workshop: Make, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """A feed whose Kafka is what an Airflow connection with these settings gives."""
    shop = workshop()

    def made(**changed: Any) -> Workshop:
        # One setting more, which nothing of ours knows: it must reach the client all the same.
        extra = {**broker.config, "client.id": "a-client-of-this-test", **changed}
        monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_KAFKA", json.dumps({"conn_type": "kafka", "extra": extra}))
        return replace(shop, kafka=connections.kafka())

    return made


def test_a_feed_is_registered_extracted_and_watched_over_sasl_and_tls(connect: Connect) -> None:
    shop = connect()
    assert shop.kafka["client.id"] == "a-client-of-this-test"
    assert topic.ensure(shop.kafka, shop.feed) == []
    producer = Producer(dict(shop.kafka))
    for number in range(5):
        producer.produce(shop.feed.topic, value=b"%d" % number, partition=0)
    assert producer.flush(30) == 0
    assert shop.extract().records == 5
    table = shop.lake.find(layout.archive_table(shop.feed.name))
    assert table.scan().to_arrow().num_rows == 5
    group, admin = f"headrace.{shop.feed.name}", AdminClient(dict(shop.kafka))
    (answer,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    assert {each.partition: each.offset for each in answer.result(30).topic_partitions}[0] == 5


def test_spark_reads_over_sasl_and_tls_as_well(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    shop = connect()
    topic.ensure(shop.kafka, shop.feed)
    producer = Producer(dict(shop.kafka))
    for number in range(5):
        producer.produce(shop.feed.topic, value=b"%d" % number, partition=0)
    assert producer.flush(30) == 0
    limits = extract.Limits(1000, 1 << 20)
    done = extract.extract(shop.feed, lake=shop.lake, kafka=shop.kafka, limits=limits, cluster=cluster_of(shop))
    assert done.records == 5
    assert "read in the task" not in caplog.text, "Spark could not, and the task has done it"


def allow(broker: Broker, resource: ResourceType, name: str, *operations: AclOperation) -> None:
    """Let the limited user do these on whatever begins with a name."""
    grants = [
        AclBinding(resource, name, ResourcePatternType.PREFIXED, f"User:{LIMITED}", "*", each, AclPermissionType.ALLOW)
        for each in operations
    ]
    admin = AdminClient(broker.config)
    for answer in admin.create_acls(grants).values():
        answer.result(30)


def test_what_the_page_says_we_need_is_enough_and_less_is_told(connect: Connect, broker: Broker) -> None:
    shop = connect(**{"sasl.username": LIMITED})
    topic.ensure(broker.config, shop.feed)
    with pytest.raises(ServiceRefused, match="Topic authorization failed"):
        shop.extract()
    shop = connect(**{"sasl.username": LIMITED})
    name, operations = shop.feed.topic, AclOperation
    allow(broker, ResourceType.TOPIC, name, operations.READ, operations.DESCRIBE, operations.DESCRIBE_CONFIGS)
    allow(broker, ResourceType.GROUP, "headrace.", operations.READ)
    producer = Producer(broker.config)
    producer.produce(name, value=b"one", partition=0)
    assert producer.flush(30) == 0
    while topic.describe(shop.kafka, name).end(0) < 1:
        pass
    assert shop.extract().records == 1
    topic.show_progress(shop.kafka, {name: {0: 1}}, group=f"headrace.{shop.feed.name}")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sasl.password": "wrong-and-secret"}, "invalid credentials with SASL mechanism SCRAM-SHA-256"),
        ({"sasl.mechanism": "PLAIN"}, "broker's supported mechanisms: SCRAM-SHA-256"),
        ({"ssl.ca.location": None}, "certificate could not be verified, verify that ssl.ca.location"),
        ({"sasl.pasword": "wrong-and-secret"}, 'No such configuration property: "sasl.pasword"'),
    ],
    ids=["password", "mechanism", "certificate", "misspelt"],
)
def test_what_the_broker_refuses_is_told_at_once_and_without_a_secret(
    connect: Connect, changed: dict[str, Any], told: str, tmp_path: Path
) -> None:
    if "ssl.ca.location" in changed:
        stranger = Broker(tmp_path, secure=True)
        stranger._security()  # writes a CA that never signed this broker's certificate
        changed = {"ssl.ca.location": stranger.config["ssl.ca.location"]}
    shop, began = connect(**changed), time.monotonic()
    with pytest.raises(ServiceRefused, match=told) as raised:
        shop.extract()
    assert time.monotonic() - began < topic.TIMEOUT_S / 2, "nobody waits for a wrong password to become right"
    assert not raised.value.retry
    assert layout.KAFKA_CONNECTION in str(raised.value)
    for secret in ("wrong-and-secret", PASSWORD):
        assert secret not in str(raised.value)
    if "sasl.password" in changed:
        with pytest.raises(TopicError, match=r"refused it: .* Check mechanism, user and password"):
            topic.ensure(shop.kafka, shop.feed)
