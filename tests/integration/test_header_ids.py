"""Confluent's own serializers with the schema's guid in a header, through our registry into a clean table."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from workshop import Record, Workshop

FIELDS = [{"name": "id", "type": "string"}, {"name": "n", "type": "long", "default": 0}]
TEXT = {"title": "Row", "type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}}
SETTINGS = {
    "auto.register.schemas": False,
    "use.latest.version": True,
    "schema.id.serializer": header_schema_id_serializer,
}


@pytest.fixture
def client(stack: Any) -> Iterator[SchemaRegistryClient]:
    """Confluent's client of the stack's own registry, on a server that asks nobody who they are."""
    from headrace.airflow import connections
    from headrace.registry.api import application
    from headrace.registry.registry import Registry

    app = application(Registry(connections.registry()))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.02)
    yield SchemaRegistryClient({"url": f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"})
    server.should_exit = True
    thread.join(20)


@pytest.mark.parametrize("language", ["AVRO", "JSON"])
def test_records_that_name_their_schema_in_a_header_are_merged_beside_framed_ones(
    workshop: Callable[..., Workshop], client: SchemaRegistryClient, language: str
) -> None:
    declared = {"key": ["id"], "topic": {"partitions": 1}}
    shop = workshop(declared, fields=FIELDS) if language == "AVRO" else workshop(declared, json_schema=TEXT)
    text = json.dumps(shop.feed.schema)
    make: Any = AvroSerializer(client, text, conf=SETTINGS) if language == "AVRO" else None
    serialize = make or JSONSerializer(text, client, conf=SETTINGS)
    producer = Producer(dict(shop.kafka))
    for number, id_ in enumerate(["a", "b"]):
        headers: list[Any] = []
        context = SerializationContext(shop.feed.topic, MessageField.VALUE, headers)
        value = serialize({"id": id_, "n": number}, context)
        assert headers[0][0] == "__value_schema_id"
        assert len(headers[0][1]) == 17
        producer.produce(shop.feed.topic, key=id_.encode(), value=value, headers=headers, partition=0)
    assert producer.flush(30) == 0
    unknown = [("__value_schema_id", b"\1" + b"\xff" * 16)]
    shop.merge(Record({"id": "c", "n": 2}), Record(b"x", key="d", headers=unknown))
    assert [tuple(row.values()) for row in shop.clean()] == [("a", 0), ("b", 1), ("c", 2)]
    assert shop.quarantine() == {(0, 3): "unknown_id"}


def test_plain_json_is_merged_by_the_version_that_the_feed_declares(workshop: Callable[..., Workshop]) -> None:
    shop = workshop({"key": ["id"], "unframed": "latest", "topic": {"partitions": 1}}, json_schema=TEXT)
    plain = [Record(text, key="a") for text in (b'{"id": "a", "n": 1}', b'{"id": "a", "n": 2}', b'{"n": 3}', b"{")]
    shop.merge(*plain, Record({"id": "b", "n": 4}))
    assert [tuple(row.values()) for row in shop.clean()] == [("a", 2), ("b", 4)]
    assert shop.quarantine() == {(0, 2): "keyless", (0, 3): "undecodable"}


def test_a_declared_version_that_is_not_there_is_told_before_anything_is_read(
    workshop: Callable[..., Workshop],
) -> None:
    from headrace.errors import RegistryError

    shop = workshop({"key": ["id"], "unframed": 7}, fields=FIELDS)
    shop.publish(Record({"id": "a", "n": 1}))
    shop.extract()
    with pytest.raises(RegistryError, match=r"by version 7, which is not among its versions \(1\)"):
        shop.transform("run")
