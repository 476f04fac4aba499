"""Confluent's own client, serializers and deserializers, with nothing changed but the URL."""

import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from fastapi import FastAPI
from registry_desk import Desk

ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"string"}]}'
ORDER_2 = ORDER.replace("]}", ',{"name":"price","type":"double","default":0}]}')
CLICK = """{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Click", "type": "object",
"properties": {"id": {"type": "string"}}, "required": ["id"]}"""


@pytest.fixture
def url(desk: Desk) -> Iterator[str]:
    """The registry under a path of a real server, as Airflow mounts it."""
    outer = FastAPI()
    outer.mount("/registry", desk.client.app)
    server = uvicorn.Server(uvicorn.Config(outer, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/registry"
    server.should_exit = True
    thread.join(20)


@pytest.fixture
def client(url: str) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": url})


def refusal(call: Any, *args: Any) -> int:
    with pytest.raises(SchemaRegistryError) as caught:
        call(*args)
    return int(caught.value.error_code)


def test_the_client_registers_looks_up_and_deletes(client: SchemaRegistryClient) -> None:
    subject = "shop/orders-value"
    id_ = client.register_schema(subject, Schema(ORDER, "AVRO"))
    assert client.register_schema(subject, Schema(ORDER_2, "AVRO")) == id_ + 1
    assert client.get_schema(id_).schema_str == ORDER
    assert client.get_subjects() == [subject]
    assert client.get_versions(subject) == [1, 2]
    assert client.get_version(subject, 1).schema.schema_str == ORDER
    latest = client.get_latest_version(subject)
    assert (latest.version, latest.schema_id, latest.schema.schema_str) == (2, id_ + 1, ORDER_2)
    assert client.lookup_schema(subject, Schema(ORDER, "AVRO")).version == 1
    assert client.get_schema_by_guid(latest.guid).schema_str == ORDER_2
    assert client.get_schema_types() == ["JSON", "AVRO"]
    assert client.get_subjects_by_schema_id(id_) == [subject]
    assert client.delete_version(subject, 1) == 1
    assert client.delete_subject(subject) == [2]
    assert client.delete_subject(subject, permanent=True) == [1, 2]
    assert refusal(client.get_versions, subject) == 40401


def test_the_client_is_told_why_a_schema_does_not_fit(client: SchemaRegistryClient) -> None:
    client.register_schema("s", Schema(ORDER, "AVRO"))
    worse = Schema(ORDER.replace("string", "int"), "AVRO")
    assert not client.test_compatibility("s", worse)
    assert not client.test_compatibility_all_versions("s", worse)
    assert client.test_compatibility("s", Schema(ORDER_2, "AVRO"), 1)
    assert refusal(client.register_schema, "s", worse) == 40901


def test_the_client_sets_configs_and_modes(client: SchemaRegistryClient) -> None:
    assert client.get_compatibility() == "BACKWARD"
    client.set_compatibility(level="FULL")
    assert client.get_compatibility() == "FULL"
    client.set_config("s", ServerConfig(compatibility=ConfigCompatibilityLevel.NONE, compatibility_group="app"))
    assert client.get_config("s").compatibility_group == "app"
    assert client.delete_config("s").compatibility_level == "NONE"
    assert client.update_mode("s", "READONLY") == "READONLY"
    assert client.get_mode("s") == "READONLY"
    assert refusal(client.register_schema, "s", Schema(ORDER, "AVRO")) == 42205
    assert client.delete_mode("s") == "READONLY"
    assert client.get_global_mode() == "READWRITE"
    assert client.get_contexts() == ["."]


def test_avro_goes_through_the_serializers_with_references(client: SchemaRegistryClient) -> None:
    client.register_schema("customer", Schema('{"type":"record","name":"Customer","fields":[]}', "AVRO"))
    text = ORDER.replace("]}", ',{"name":"by","type":"shop.Customer"}]}').replace("shop.Customer", "Customer")
    text = text.replace(',"namespace":"shop"', "")
    schema = Schema(text, "AVRO", [SchemaReference("Customer", "customer", 1)])
    field = SerializationContext(f"orders-{uuid.uuid4()}", MessageField.VALUE)
    sent = AvroSerializer(client, schema)({"id": "1", "by": {}}, field)
    assert AvroDeserializer(client)(sent, field) == {"id": "1", "by": {}}
    assert client.get_latest_version(f"{field.topic}-value").schema.references[0].subject == "customer"


def test_json_goes_through_the_serializers(client: SchemaRegistryClient) -> None:
    field = SerializationContext(f"clicks-{uuid.uuid4()}", MessageField.VALUE)
    sent = JSONSerializer(CLICK, client)({"id": "1"}, field)
    assert JSONDeserializer(CLICK, schema_registry_client=client)(sent, field) == {"id": "1"}


def test_a_client_of_one_context_sees_that_one(url: str) -> None:
    everywhere, staging = SchemaRegistryClient({"url": url}), SchemaRegistryClient({"url": f"{url}/contexts/.staging"})
    assert staging.register_schema("s", Schema(ORDER, "AVRO")) == 1
    assert everywhere.register_schema("t", Schema(ORDER_2, "AVRO")) == 1
    assert staging.get_subjects() == [":.staging:s"]
    assert staging.get_schema(1).schema_str == ORDER
    assert everywhere.get_schema(1).schema_str == ORDER_2
