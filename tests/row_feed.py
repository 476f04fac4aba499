"""A feed of a test's own in the running stack, from a file, with records as a producer sends them."""

import io
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Producer

FIELDS = [{"name": "id", "type": "string"}, {"name": "price", "type": "long"}]


@dataclass(frozen=True)
class RowFeed:
    """A feed file in the folder that the stack watches."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    def declare(self, declared: Mapping[str, Any]) -> None:
        feed = {"key": ["id"], "schedule": "0 0 1 1 *", "topic": {"partitions": 1}, **declared}
        self.path.write_text(json.dumps({"type": "record", "name": "Row", "feed": feed, "fields": FIELDS}))

    def publish(self, *rows: tuple[str, int], timestamp: int = 0) -> None:
        """Send rows: their ids and prices; `timestamp` is Kafka's, in milliseconds, or now."""
        from headrace.airflow import connections

        schema_id = max(connections.registry().writers(f"{self.name}-value"))
        schema, producer = fastavro.parse_schema(json.loads(self.path.read_text())), Producer(connections.kafka())
        for id_, price in rows:
            body = io.BytesIO()
            fastavro.schemaless_writer(body, schema, {"id": id_, "price": price})
            value = b"\0" + schema_id.to_bytes(4, "big") + body.getvalue()
            producer.produce(self.name, key=id_, value=value, timestamp=timestamp)
        assert producer.flush(30) == 0

    def published(self) -> dict[str, int]:
        """What readers see: ids and prices."""
        table = self._table("clean")
        rows = table.scan(row_filter="_hidden = false").to_arrow().to_pylist() if table else []
        return {row["id"]: row["price"] for row in rows}

    def archived(self) -> int:
        """How many records the archive holds."""
        table = self._table("archive")
        return table.scan().to_arrow().num_rows if table else 0

    def _table(self, namespace: str) -> Any:
        from headrace.airflow import connections
        from headrace.settings import Settings

        return connections.lake(Settings()).find((namespace, self.name))


@contextmanager
def row_feed(declared: Mapping[str, Any]) -> Iterator[RowFeed]:
    """The feed, until the test has ended."""
    made = RowFeed(Path(os.environ["HEADRACE_SCHEMAS"]) / f"t_{uuid.uuid4().hex[:8]}.avsc")
    made.declare(declared)
    try:
        yield made
    finally:
        made.path.unlink()
