"""The registry's store and two servers over it, under real concurrency: one id for one schema, whoever asks when."""

import json
import multiprocessing
import socket
import time
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import psycopg
import pytest
import uvicorn
from registry_desk import Desk, avro, optional

from headrace.database import Database
from headrace.registry.api import application
from headrace.registry.registration import Asked
from headrace.registry.registry import Registry
from headrace.registry.schema import SchemaText
from headrace.registry.store import Store


def serve(database: Database, namespace: str, port: int) -> None:
    store = Store(database, namespace)
    store.prepare()
    uvicorn.run(application(Registry(store)), port=port, log_level="warning")


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_two_servers_never_give_one_id_to_two_schemas_nor_two_ids_to_one(desk: Desk) -> None:
    ports, context = [free_port(), free_port()], multiprocessing.get_context("spawn")
    servers = [
        context.Process(target=serve, args=(desk.store.database, desk.store.namespace, port), daemon=True)
        for port in ports
    ]
    for server in servers:
        server.start()
    try:
        for port in ports:
            await_server(port)
        done = hammer(ports)
    finally:
        for server in servers:
            server.terminate()
            server.join(20)
    texts, ids, numbers = defaultdict(set), defaultdict(set), defaultdict(set)
    for subject, text, answer in done:
        texts[answer["id"]].add(text)
        ids[text].add(answer["id"])
        numbers[subject].add((answer["version"], answer["id"]))
    assert all(len(found) == 1 for found in texts.values()), "one id, two schemas"
    assert all(len(found) == 1 for found in ids.values()), "one schema, two ids"
    assert sorted(texts) == list(range(1, len(ids) + 1)), "ids count up without a gap"
    for found in numbers.values():
        assert sorted(version for version, _ in found) == list(range(1, len(found) + 1)), "so do versions"


def await_server(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/subjects").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("a server did not come up")


def hammer(ports: list[int]) -> list[tuple[str, str, Any]]:
    """Many clients register the same and other schemas in the same and other subjects, at both servers."""
    schemas = [avro("R", *(optional(f"f{n}_{each}") for each in range(n))) for n in range(8)]
    work = [(f"s{subject}", schema) for schema in schemas for subject in range(5)] * 4

    def register(number: int) -> tuple[str, str, Any]:
        subject, schema = work[number]
        url = f"http://127.0.0.1:{ports[number % 2]}/subjects/{subject}/versions"
        answer = httpx.post(url, json=schema, timeout=60)
        assert answer.is_success, answer.text
        return subject, schema["schema"], answer.json()

    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(register, range(len(work))))


def test_the_mark_rises_with_each_change_and_stays_otherwise(desk: Desk) -> None:
    before = desk.store.mark()
    desk.walk([("POST /subjects/s/versions", avro("R"), 200, ...)])
    registered = desk.store.mark()
    assert registered > before
    desk.walk(
        [
            ("GET /subjects", None, 200, ["s"]),
            ("POST /subjects/s", avro("R"), 200, ...),
            ("POST /subjects/s/versions", avro("R"), 200, ...),
            ("POST /subjects/s/versions", {"schema": "nonsense"}, 422, ...),
        ]
    )
    assert desk.store.mark() == registered
    desk.walk([("DELETE /subjects/s", None, 200, ...)])
    assert desk.store.mark() > registered


def test_the_latest_version_of_every_subject_is_told_with_its_text(desk: Desk) -> None:
    desk.walk(
        [
            ("POST /subjects/b/versions", avro("R"), 200, ...),
            ("POST /subjects/b/versions", avro("R", optional("x")), 200, ...),
            ("POST /subjects/a/versions", avro("R"), 200, ...),
            ("POST /subjects/gone/versions", avro("R"), 200, ...),
            ("DELETE /subjects/gone", None, 200, ...),
        ]
    )
    latest = desk.store.latest()
    assert [(each.subject, each.version, each.id, each.type) for each in latest] == [
        ("a", 1, 1, "AVRO"),
        ("b", 2, 2, "AVRO"),
    ]
    assert latest[1].text == avro("R", optional("x"))["schema"]


def test_the_writers_of_a_subject_include_deleted_versions_and_stand_alone(desk: Desk) -> None:
    leaf = {"type": "fixed", "name": "Leaf", "size": 1}
    desk.walk(
        [
            ("POST /subjects/leaf/versions", {"schema": json.dumps(leaf)}, 200, {"id": 1}),
            (
                "POST /subjects/s/versions",
                avro(
                    "R", {"name": "f", "type": "Leaf"}, references=[{"name": "Leaf", "subject": "leaf", "version": 1}]
                ),
                200,
                {"id": 2},
            ),
            ("DELETE /subjects/s", None, 200, ...),
        ]
    )
    writers = desk.store.writers("s")
    assert list(writers) == [2]
    assert json.loads(writers[2])["fields"][0]["type"] == leaf


def test_writers_in_json_schema_stand_alone_too(desk: Desk) -> None:
    leaf, twig = {"type": "string"}, {"properties": {"leaf": {"$ref": "leaf.json"}}}
    refers = [{"name": "leaf.json", "subject": "leaf", "version": 1}]
    desk.walk(
        [
            ("POST /subjects/leaf/versions", {"schema": json.dumps(leaf), "schemaType": "JSON"}, 200, {"id": 1}),
            (
                "POST /subjects/s/versions",
                {"schema": json.dumps(twig), "schemaType": "JSON", "references": refers},
                200,
                {"id": 2},
            ),
            (
                "GET /schemas/ids/2?format=resolved",
                None,
                200,
                {"schema": '{"properties":{"leaf":{"$ref":"leaf.json"}}}'},
            ),
        ]
    )
    assert json.loads(desk.store.writers("s")[2]) == {"properties": {"leaf": leaf}}


def test_a_store_registers_a_text_as_it_is(desk: Desk) -> None:
    first = desk.store.register("s", "AVRO", text='{ "type": "string" }')
    again = desk.store.register("s", "AVRO", text='{ "type": "string" }')
    assert (first.version, first.id) == (again.version, again.id) == (1, 1)
    assert desk.store.writers("s") == {1: '{ "type": "string" }'}


def test_tables_are_made_by_many_at_once(desk: Desk) -> None:
    store = Store(desk.store.database, namespace=desk.store.namespace)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: store.prepare(), range(12)))
    store.close()


def cut_midway(store: Store) -> None:
    with store.writing() as tables:
        tables.register("s", SchemaText("AVRO", '"string"'))
        with psycopg.connect(store.database.url(), autocommit=True) as other:
            other.execute("select pg_terminate_backend(%s)", [tables.connection.info.backend_pid])
        tables.mark()


def test_a_connection_that_is_cut_midway_leaves_nothing_and_the_next_request_gets_another(desk: Desk) -> None:
    with pytest.raises(psycopg.OperationalError):
        cut_midway(desk.store)
    desk.walk([("GET /subjects", None, 200, []), ("POST /subjects/s/versions", avro("R"), 200, {"id": 1})])


def test_a_change_that_fails_leaves_nothing_and_its_connection_goes_on(desk: Desk) -> None:
    registry, name = Registry(desk.store), f"s-{uuid.uuid4()}"
    try:
        with desk.store.writing() as tables:
            tables.register(name, SchemaText("AVRO", '"string"'))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert registry.subjects() == []
    assert registry.register(name, Asked(SchemaText("AVRO", '"string"'))).id == 1
