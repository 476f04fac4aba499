"""The workshop fixture: feeds with topics and tables of their own, so that tests can run in any order."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from registry_desk import desk, registry_desk
from workshop import ORDER, ORDER_FIELDS, Workshop, registered

from headrace import feed as feeds

__all__ = ["desk", "registry_desk"]


@pytest.fixture
def workshop(stack: Any) -> Callable[..., Workshop]:
    """Makes a feed with a topic and tables of its own; they go away with the stack."""
    from headrace.airflow import connections
    from headrace.kafka import topic
    from headrace.settings import Settings

    kafka, lake, store = connections.kafka(), connections.lake(Settings()), connections.registry()
    store.prepare()

    def make(
        declaration: Mapping[str, Any] = ORDER,
        *,
        fields: Sequence[Mapping[str, Any]] = ORDER_FIELDS,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Workshop:
        name = f"t_{uuid.uuid4().hex[:10]}"
        if json_schema:
            made = feeds.parse(f"{name}.json", json.dumps({**json_schema, "x-feed": declaration}))
        else:
            schema = {"type": "record", "name": "Row", "doc": "A row.", "fields": fields, "feed": declaration}
            made = feeds.parse(f"{name}.avsc", json.dumps(schema))
        topic.ensure(kafka, made)
        return Workshop(made, registered(store, made), kafka, lake)

    return make
