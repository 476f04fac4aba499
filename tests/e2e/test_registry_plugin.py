"""The registry in a running Airflow, used by Confluent's own client, by the hook, by a browser and by the Variables."""

import json
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import registry_users
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from playwright.sync_api import Browser, expect

from headrace import layout
from headrace.airflow import connections, variables
from headrace.airflow.bundle import TIDY_S
from headrace.airflow.hooks import RegistryHook
from headrace.airflow.provider import CONNECTION_TYPE, FIELDS, HOOK_NAME
from headrace.errors import RegistryError

ROW = {"id": "a", "price": 2.5}
SECONDS = 30


def avro(*more: dict[str, Any], **declared: Any) -> Schema:
    fields = [{"name": "id", "type": "string"}, {"name": "price", "type": "double"}, *more]
    # Once a year: the feed's own DAG has nothing to do here.
    feed = {"key": ["id"], "schedule": "0 0 1 1 *", **declared}
    return Schema(json.dumps({"type": "record", "name": "Row", "fields": fields, "feed": feed}), "AVRO")


def json_schema() -> Schema:
    properties = {"id": {"type": "string"}, "price": {"type": "number"}}
    feed = {"key": ["id"], "schedule": "0 0 1 1 *"}
    return Schema(
        json.dumps({"type": "object", "title": "Row", "properties": properties, "required": ["id"], "x-feed": feed}),
        "JSON",
    )


@pytest.fixture
def client(stack: Any) -> SchemaRegistryClient:
    return registry_users.client("op")


@pytest.fixture
def name(client: SchemaRegistryClient) -> Iterator[str]:
    """The name of a feed of a test's own; its subject goes away with the test."""
    made = f"p_{uuid.uuid4().hex[:10]}"
    yield made
    subject = layout.subject(made)
    if subject in client.get_subjects():
        client.delete_subject(subject)
    if subject in client.get_subjects(deleted=True):
        client.delete_subject(subject, permanent=True)


@pytest.fixture
def topic(name: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap()})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(SECONDS)
    return name


def bootstrap() -> str:
    return str(json.loads(os.environ["AIRFLOW_CONN_HEADRACE_KAFKA"])["extra"]["bootstrap.servers"])


def variable(airflow: httpx.Client, feed: str) -> dict[str, Any] | None:
    answer = airflow.get(f"/api/v2/variables/{layout.feed_variable(feed)}")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    value: dict[str, Any] = json.loads(answer.raise_for_status().json()["value"])
    return value


def served(feed: str) -> dict[str, Any] | None:
    auth = ("viewer", registry_users.password("viewer"))
    answer = httpx.get(f"{registry_users.url()}/feeds/{feed}", auth=auth)
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


def through_topic(topic: str, value: bytes) -> bytes:
    """A value as it comes out of a real topic."""
    producer = Producer({"bootstrap.servers": bootstrap()})
    producer.produce(topic, value)
    assert producer.flush(SECONDS) == 0
    consumer = Consumer(
        {"bootstrap.servers": bootstrap(), "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        message = consumer.poll(SECONDS)
        assert message is not None, f"{topic}: no record"
        assert message.error() is None
        return bytes(message.value())
    finally:
        consumer.close()


def test_confluents_client_registers_looks_up_compares_and_deletes_and_variables_follow(
    client: SchemaRegistryClient, airflow: httpx.Client, name: str
) -> None:
    subject, first = layout.subject(name), avro(owner="shop")
    second = avro({"name": "note", "type": ["null", "string"], "default": None}, owner="sales")
    other = avro(owner="shop", topic={"name": f"{name}.other"})
    broken = avro({"name": "must", "type": "string"})
    assert variable(airflow, name) is None
    id_ = client.register_schema(subject, first)
    assert client.register_schema(subject, first) == id_
    assert client.lookup_schema(subject, first).schema_id == id_
    told = variable(airflow, name)
    assert told == served(name)
    assert told
    assert (told["version"], told["id"], told["owner"]) == (1, id_, "shop")

    assert client.test_compatibility(subject, second)
    assert not client.test_compatibility(subject, broken)
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema(subject, broken)
    assert refused.value.http_status_code == 409
    with pytest.raises(SchemaRegistryError, match=r"feed\.topic\.name was .* in the version before"):
        client.register_schema(subject, other)
    newer = client.register_schema(subject, second)
    assert client.get_versions(subject) == [1, 2]
    told = variable(airflow, name)
    assert told == served(name)
    assert told
    assert (told["version"], told["id"], told["owner"]) == (2, newer, "sales")

    client.delete_version(subject, 2)
    told = variable(airflow, name)
    assert told == served(name)
    assert told
    assert told["version"] == 1
    client.delete_subject(subject)
    assert variable(airflow, name) is None
    assert served(name) is None


def test_a_viewer_may_look_but_not_touch(stack: Any, client: SchemaRegistryClient, name: str) -> None:
    viewer = registry_users.client("viewer")
    client.register_schema(layout.subject(name), avro())
    assert viewer.lookup_schema(layout.subject(name), avro()).version == 1
    for change in (
        lambda: viewer.register_schema(layout.subject(name), avro(owner="me")),
        lambda: viewer.delete_subject(layout.subject(name)),
        lambda: viewer.set_compatibility(layout.subject(name), "NONE"),
    ):
        with pytest.raises(SchemaRegistryError) as refused:
            change()
        assert (refused.value.http_status_code, refused.value.error_code) == (403, 403)


def test_a_wrong_password_is_refused_as_confluents_clients_expect(stack: Any) -> None:
    stranger = SchemaRegistryClient({"url": registry_users.url(), "basic.auth.user.info": "op:wrong"})
    with pytest.raises(SchemaRegistryError) as refused:
        stranger.get_subjects()
    assert (refused.value.http_status_code, refused.value.error_message) == (401, "Unauthorized")
    assert httpx.get(f"{registry_users.url()}/subjects").headers["www-authenticate"].startswith("Basic")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://elsewhere.example.com"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({}, 200),
    ],
)
def test_the_uis_cookie_changes_nothing_for_pages_of_other_sites(
    airflow: httpx.Client, name: str, headers: dict[str, str], expected: int
) -> None:
    token = airflow.headers["Authorization"].removeprefix("Bearer ")
    with httpx.Client(base_url=registry_users.url(), cookies={"_token": token}) as browser:
        body = {"schema": avro().schema_str}
        made = browser.post(f"/subjects/{layout.subject(name)}/versions", json=body, headers=headers)
        assert made.status_code == expected
        assert browser.get("/subjects", headers=headers).status_code == 200


def test_a_service_token_reads_and_writes(airflow: httpx.Client, name: str) -> None:
    token = airflow.headers["Authorization"]
    with httpx.Client(base_url=registry_users.url(), headers={"Authorization": token}) as service:
        body = {"schema": avro().schema_str}
        made = service.post(f"/subjects/{layout.subject(name)}/versions", json=body)
        assert made.status_code == 200
        assert layout.subject(name) in service.get("/subjects").json()


def test_avro_goes_through_a_real_topic(client: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic, MessageField.VALUE)
    value = through_topic(topic, AvroSerializer(client, avro())(ROW, context))
    assert AvroDeserializer(registry_users.client("viewer"))(value, context) == ROW


def test_json_goes_through_a_real_topic(client: SchemaRegistryClient, topic: str) -> None:
    context = SerializationContext(topic, MessageField.VALUE)
    value = through_topic(topic, JSONSerializer(json_schema(), client)(ROW, context))
    assert JSONDeserializer(None, schema_registry_client=registry_users.client("viewer"))(value, context) == ROW


@pytest.mark.parametrize("schema", [avro(), json_schema()], ids=["avro", "json"])
def test_the_hook_gives_schemas_feeds_and_serializers(client: SchemaRegistryClient, topic: str, schema: Schema) -> None:
    client.register_schema(layout.subject(topic), schema)
    hook, context = RegistryHook(), SerializationContext(topic, MessageField.VALUE)
    feed = hook.feed(topic)
    assert (feed.topic, feed.type, feed.version, feed.key) == (topic, schema.schema_type, 1, ["id"])
    assert feed in hook.feeds()
    assert hook.schema(feed.subject).schema_id == hook.schema(feed.subject, 1).schema_id == feed.id
    value = through_topic(topic, hook.serializer(topic)(ROW, context))
    assert int.from_bytes(value[1:5], "big") == feed.id
    assert hook.deserializer(topic)(value, context) == ROW


def test_the_hook_reads_feeds_of_an_outside_registry_from_their_schemas(
    client: SchemaRegistryClient, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.register_schema(layout.subject(name), avro(owner="outside"))
    with outside_registry() as address:
        given = {"conn_type": CONNECTION_TYPE, "host": address, "login": "viewer"}
        password = registry_users.password("viewer")
        monkeypatch.setenv("AIRFLOW_CONN_OUTSIDE", json.dumps({**given, "password": password}))
        outside, ours = RegistryHook("outside"), RegistryHook()
        assert outside.feed(name) == ours.feed(name)
        # Other tests may register meanwhile.
        stable = {name, "orders", "customers", "calls"}
        listed = [{each.name: each for each in hook.feeds() if each.name in stable} for hook in (outside, ours)]
        assert listed[0] == listed[1]
        assert listed[0].keys() == stable
        with pytest.raises(RegistryError, match="there is no feed 'nothing'"):
            outside.feed("nothing")


@contextmanager
def outside_registry() -> Iterator[str]:
    """The registry without what only ours has: `/feeds` is as unknown there as with Confluent."""

    class Forward(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {"Authorization": self.headers["Authorization"]}
            unknown = httpx.Response(404, json={"error_code": 404, "message": "HTTP 404 Not Found"})
            path = "/nothing" if self.path.startswith("/feeds") else self.path
            answer = unknown if path == "/nothing" else httpx.get(registry_users.url() + path, headers=headers)
            self.send_response(answer.status_code)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: Any) -> None:
            """Nothing to say."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Forward)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("change", "expected", "message"),
    [
        ({}, True, "subjects; types"),
        ({"password": "wrong"}, False, "Unauthorized"),
        ({"host": "http://127.0.0.1:1/registry"}, False, "Is the URL right"),
        ({"host": os.environ["AIRFLOW__API__BASE_URL"]}, False, "this is no registry"),
        ({"host": ""}, False, "no URL is set"),
    ],
)
def test_the_test_button_works(airflow: httpx.Client, change: dict[str, str], expected: bool, message: str) -> None:
    given = {"connection_id": "tried", "conn_type": CONNECTION_TYPE, "host": registry_users.url(), "login": "viewer"}
    body = {**given, "password": registry_users.password("viewer"), **change}
    answer = airflow.post("/api/v2/connections/test", json=body).raise_for_status().json()
    assert answer["status"] is expected, answer
    assert message in answer["message"]


def test_a_variable_changed_by_hand_is_mended(airflow: httpx.Client, client: SchemaRegistryClient, name: str) -> None:
    client.register_schema(layout.subject(name), avro())
    key, right = layout.feed_variable(name), variable(airflow, name)
    airflow.patch(f"/api/v2/variables/{key}", json={"key": key, "value": "{}"}).raise_for_status()
    assert variable(airflow, name) == {}
    client.set_compatibility(layout.subject(name), "FULL")
    assert variable(airflow, name) == right
    airflow.delete(f"/api/v2/variables/{key}").raise_for_status()
    # Nothing changes in the registry now: the DAG processor looks by itself.
    deadline = time.monotonic() + 2 * TIDY_S + SECONDS
    while variable(airflow, name) != right:
        assert time.monotonic() < deadline, "nobody has mended the Variable"
        time.sleep(0.5)
    assert not variables.sync(connections.registry())


def test_a_persons_own_variable_is_left_alone(airflow: httpx.Client, client: SchemaRegistryClient, name: str) -> None:
    key = f"feed_{uuid.uuid4().hex[:8]}_notes"
    airflow.post("/api/v2/variables", json={"key": key, "value": "mine"}).raise_for_status()
    client.register_schema(layout.subject(name), avro())
    assert airflow.get(f"/api/v2/variables/{key}").json()["value"] == "mine"
    airflow.delete(f"/api/v2/variables/{key}").raise_for_status()


@pytest.fixture
def connection(airflow: httpx.Client) -> Iterator[str]:
    """The id of a connection that a test makes; it goes away with the test."""
    made = f"registry_{uuid.uuid4().hex[:8]}"
    yield made
    airflow.delete(f"/api/v2/connections/{made}")


def test_a_person_fills_in_the_form_of_a_connection_and_tests_it(
    browser: Browser, password: str, connection: str
) -> None:
    base = urlsplit(os.environ["AIRFLOW__API__BASE_URL"])
    page = browser.new_page(viewport={"width": 1440, "height": 1400})
    page.goto(f"{base.geturl()}/auth/login")
    page.get_by_label("username").fill("admin")
    page.get_by_label("password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "login" not in url)
    page.goto(f"{base.geturl()}/connections")
    page.get_by_role("button", name="Add Connection").click()
    page.locator("input[name=connection_id]").fill(connection)
    page.get_by_role("combobox").last.click()
    page.keyboard.type(HOOK_NAME)
    page.get_by_role("option", name=HOOK_NAME).click()
    expect(page.get_by_text("URL", exact=True)).to_be_visible(timeout=SECONDS * 1000)
    given = {"host": f"http://{base.hostname}/registry", "port": str(base.port), "login": "viewer"}
    for field, value in {**given, "password": registry_users.password("viewer")}.items():
        page.locator(f"input[name={field}]").fill(value)
    page.get_by_text("Extra Fields", exact=True).click()
    for each in FIELDS.values():
        expect(page.get_by_text(each["label"], exact=True)).to_be_visible()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("row").filter(has_text=connection).get_by_role("button", name="Test Connection").click()
    expect(page.get_by_text("Test Connection Success")).to_be_visible(timeout=SECONDS * 1000)
    page.close()
