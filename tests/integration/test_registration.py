"""Registering feeds at a real registry and a real broker."""

import json
import socket
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from headrace import feed as feeds
from headrace.errors import RegistryError
from headrace.feed import Feed

ID = {"name": "id", "type": "string"}
COUNT = {"name": "count", "type": "long"}


def avro(name: str, *fields: dict[str, Any], **declared: Any) -> Feed:
    schema = {"type": "record", "name": "Row", "feed": {"key": ["id"], **declared}, "fields": [ID, *fields]}
    return feeds.parse(f"{name}.avsc", json.dumps(schema))


@pytest.fixture
def name() -> str:
    return f"t_{uuid.uuid4().hex[:10]}"


@pytest.fixture
def store(stack: Any) -> Any:
    from headrace.airflow import connections

    found = connections.registry()
    found.prepare()
    return found


@pytest.fixture
def register(store: Any) -> Callable[..., Any]:
    from headrace.airflow import connections, registration

    return lambda *wanted: registration.register(wanted, store=store, kafka=connections.kafka())


def test_a_new_feed_has_a_version_and_its_topic(register: Callable[..., Any], name: str) -> None:
    from headrace.airflow import connections
    from headrace.kafka import topic

    (done,) = register(avro(name, topic={"partitions": 2}))
    assert (done.is_good, done.is_new, done.version, done.drifts) == (True, True, 1, ())
    assert len(topic.describe(connections.kafka(), name).partitions) == 2
    (again,) = register(avro(name, topic={"partitions": 2}))
    assert (again.is_new, again.version, again.id) == (False, 1, done.id)


def test_a_refused_feed_tells_every_reason_and_keeps_no_other_back(
    register: Callable[..., Any], store: Any, name: str
) -> None:
    register(avro(name, COUNT))
    fields = {"name": "count", "type": "string"}, {"name": "more", "type": "string"}
    wrong = avro(name, *fields, kinesis={"stream": name})
    refused, other = register(wrong, avro(f"{name}_b"))
    assert other.is_good
    assert [reason.split(" ")[1] for reason in refused.reasons] == ["feed.kinesis", "fields.1.type", "fields.2"]
    assert all(reason.startswith(f"{name}.avsc: ") for reason in refused.reasons)
    assert len(store.writers(f"{name}-value")) == 1


def test_a_broker_that_differs_is_told(register: Callable[..., Any], name: str) -> None:
    register(avro(name, topic={"partitions": 1}))
    (done,) = register(avro(name, topic={"partitions": 3}))
    assert done.is_good
    (drift,) = done.drifts
    assert (drift.attribute, drift.declared, drift.actual) == ("partitions", "3", "1")


def test_a_topic_that_the_broker_refuses_is_a_reason_and_nothing_is_registered(
    register: Callable[..., Any], store: Any, name: str
) -> None:
    (done,) = register(avro(name, topic={"replication": 9}))
    assert "topic.replication" in done.reasons[0]
    assert store.writers(f"{name}-value") == {}


def test_comparing_changes_nothing(register: Callable[..., Any], store: Any, name: str) -> None:
    from headrace.airflow import registration

    mark = store.mark()
    (done,) = registration.compare([avro(name)], store=store)
    assert (done.is_good, done.is_new, done.version) == (True, True, None)
    assert store.mark() == mark


def test_the_registry_offers_what_others_registered_and_knows_what_came_from_files(
    register: Callable[..., Any], store: Any, name: str
) -> None:
    from headrace.airflow.registration import Registrar, schema

    registrar = Registrar(store, dict, registers=False, opens=False)

    def from_file(subject: str) -> bool:
        return {each.subject: each.from_file for each in registrar.headings()}[subject]

    # A feed that is not named like its topic is offered under its own name.
    filed = avro(name, topic={"name": f"{name}.topic"})
    register(filed)
    assert from_file(filed.subject)
    assert [offer.name for offer in registrar.offers([filed.subject])] == [name]
    # What somebody else registers is not a file's, and neither is what they register after one.
    rest = avro(f"{name}_rest")
    store.register(rest.subject, "AVRO", text=schema(rest).text)
    assert not from_file(rest.subject)
    register(rest)
    assert from_file(rest.subject)
    store.register(rest.subject, "AVRO", text=schema(avro(rest.name, description="Later.")).text)
    assert not from_file(rest.subject)
    with store.writing() as tables:  # before the stack makes a DAG of it
        tables.delete_versions(rest.subject, [1, 2])
    store.register(f"{name}_plain-value", "AVRO", text='"string"')
    assert registrar.offers([f"{name}_plain-value"]) == []


def test_a_registry_that_gives_no_answer_is_told_as_such(store: Any, name: str) -> None:
    from headrace.airflow import registration
    from headrace.registry.store import Store

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = Store(replace(store.database, port=closed.getsockname()[1]))
        with pytest.raises(RegistryError, match="gives no answer") as raised:
            registration.compare([avro(name)], store=nowhere)
    assert raised.value.retry
    assert store.database.password not in str(raised.value)
