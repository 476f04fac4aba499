"""A registry of a test's own, asked over HTTP: each step is a request and what must come back."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql
from starlette.testclient import TestClient

ABSENT = object()
"""Expected of a key that must not be there."""

Step = tuple[str, Any, int, Any]
"""Method and path, the body to send, the status, and what the answer holds: see `mismatch`."""


def avro(name: str = "R", *fields: str | dict[str, Any], **more: Any) -> dict[str, Any]:
    """The body that registers a record; a field that is only named is a string."""
    import json

    made = [field if isinstance(field, dict) else {"name": field, "type": "string"} for field in fields]
    return {"schema": json.dumps({"type": "record", "name": name, "fields": made}, separators=(",", ":")), **more}


def optional(name: str) -> dict[str, Any]:
    return {"name": name, "type": "string", "default": ""}


def refers(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    return {"name": name, "subject": subject, "version": version}


@dataclass(frozen=True)
class Desk:
    """Where a registry takes requests."""

    client: TestClient
    store: Any

    def ask(self, line: str, body: Any = None, **options: Any) -> Any:
        method, path = line.split(" ", 1)
        return self.client.request(method, path, json=body, **options)

    def walk(self, steps: Sequence[Step]) -> None:
        """Do each step in turn; the first that differs fails the test."""
        for number, (line, body, status, expected) in enumerate(steps, start=1):
            answer = self.ask(line, body)
            told = f"step {number}: {line} → {answer.status_code} {answer.text}"
            assert answer.status_code == status, told
            got = answer.json() if expected is not ... else None
            assert (wrong := mismatch(expected, got)) is None, f"{told}\n{wrong}"


def mismatch(expected: Any, got: Any, at: str = "") -> str | None:
    """Where an answer differs: `...` is anything, a dict names some keys, a bare int is an error code."""
    if expected is ...:
        return None
    if isinstance(expected, int) and not isinstance(expected, bool) and isinstance(got, dict):
        return mismatch({"error_code": expected}, got, at)
    if isinstance(expected, tuple):
        return mismatch({"error_code": expected[0], "message": expected[1]}, got, at)
    if isinstance(expected, dict) and isinstance(got, dict):
        extra = [f"{at}.{key} should not be there" for key, value in expected.items() if value is ABSENT and key in got]
        wanted = {key: value for key, value in expected.items() if value is not ABSENT}
        found = [mismatch(value, got.get(key, ABSENT), f"{at}.{key}") for key, value in wanted.items()]
        return next(filter(None, [*extra, *found]), None)
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        found = [mismatch(value, each, f"{at}[{n}]") for n, (value, each) in enumerate(zip(expected, got, strict=True))]
        return next(filter(None, found), None)
    return None if expected == got else f"{at or 'the answer'} is {got!r}, not {expected!r}"


@pytest.fixture(scope="module")
def registry_desk(stack: Any) -> Iterator[Desk]:
    """A registry with tables of a module's own, that go with it."""
    from headrace.airflow import connections
    from headrace.registry.api import application
    from headrace.registry.registry import Registry
    from headrace.registry.store import Store

    store = Store(connections.registry().database, namespace=f"test_{uuid.uuid4().hex}")
    store.prepare()
    with TestClient(application(Registry(store))) as client:
        yield Desk(client, store)
    store.close()
    with psycopg.connect(store.database.url()) as connection:
        connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(store.namespace)))


@pytest.fixture
def desk(registry_desk: Desk) -> Desk:
    """An empty registry, whose ids begin with 1."""
    with registry_desk.store.writing() as tables:
        for table in ("uses", "versions", "schemas", "contexts", "configs", "modes"):
            tables.connection.execute(sql.SQL("delete from {}").format(sql.Identifier(table)))
        tables.add_context(".")
    return registry_desk
