"""A workshop: a feed of a test's own on the one stack, driven stage by stage without Airflow's scheduler."""

import io
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import fastavro
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from headrace import layout
from headrace.feed import Feed

Value = Mapping[str, Any] | bytes | None
"""A row to encode, bytes as they are, or a tombstone."""

ORDER_FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": "long"},
    {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["placed", "paid"]}, "default": "placed"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "email", "type": ["null", "string"], "default": None, "pii": "email"},
    {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
ORDER = {"key": ["id"], "order": ["revision"], "warehouses": {"finance": {"keep": ["email"]}, "engineering": {}}}


@dataclass(frozen=True)
class Record:
    """What a test publishes; the key defaults to the row's own."""

    value: Value
    key: str | None = None
    partition: int = 0
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None


def registered(store: Any, feed: Feed) -> int:
    """The id of a feed, registered as if from a file: otherwise the stack would make a DAG of it, and run it."""
    from headrace.registry import origins

    done = store.register(feed.subject, feed.schema_type, text=json.dumps(feed.schema))
    origins.note(store, [(done.subject, done.version, done.id)])
    return int(done.id)


@dataclass(frozen=True)
class Workshop:
    """One feed of a test's own and everything needed to run it."""

    feed: Feed
    schema_id: int
    kafka: Mapping[str, Any]
    lake: Any

    def changed(self, *fields: Mapping[str, Any]) -> "Workshop":
        """The same feed with other fields: a new version of its schema."""
        from headrace import feed
        from headrace.airflow import connections

        made = feed.parse(f"{self.feed.name}.avsc", json.dumps({**self.feed.schema, "fields": fields}))
        return replace(self, feed=made, schema_id=registered(connections.registry(), made))

    def publish(self, *records: Record) -> None:
        # In order, and at once: an idempotent producer asks for its number first, which takes half a second.
        producer = Producer({**self.kafka, "acks": "all", "max.in.flight.requests.per.connection": 1, "linger.ms": 0})
        for record in records:
            producer.produce(
                self.feed.topic,
                key=self._key(record),
                value=self.encoded(record.value),
                partition=record.partition,
                headers=list(record.headers),
                timestamp=record.timestamp or int(time.time() * 1000),
            )
        assert producer.flush(30) == 0

    def _key(self, record: Record) -> bytes | None:
        if record.key is not None or not isinstance(record.value, Mapping):
            return record.key.encode() if record.key is not None else None
        return str(record.value[self.feed.declaration.key[0]]).encode()

    def encoded(self, value: Value) -> bytes | None:
        """A row in Confluent's frame; bytes and tombstones as they are."""
        if not isinstance(value, Mapping):
            return value
        frame = b"\0" + self.schema_id.to_bytes(4, "big")
        if self.feed.schema_type == "JSON":
            return frame + json.dumps(value).encode()
        body = io.BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(dict(self.feed.schema)), value)
        return frame + body.getvalue()

    def extract(self) -> Any:
        from headrace.stages import extract

        return extract.extract(
            self.feed, lake=self.lake, kafka=self.kafka, limits=extract.Limits(500_000, 128 * 1024 * 1024)
        )

    def transform(self, run: str, **asked: Any) -> Any:
        from headrace.airflow import planning
        from headrace.airflow.spark import Spark
        from headrace.stages import transform

        plan = planning.transform(self.feed, lake=self.lake, run=run, **asked)
        if plan is None:
            transform.drop_branch(self.feed, lake=self.lake, run=run)
            return None
        return json.loads(Spark.of(self.feed, self.lake).run("transform", plan.model_dump_json()))

    def check(self, run: str) -> Any:
        from headrace.stages import check

        return check.judge(self.checked(run), feed=self.feed.name, branch=layout.branch(run))

    def checked(self, run: str) -> Any:
        """How each check came out, whatever it means."""
        from headrace.airflow.spark import Spark
        from headrace.stages import check

        plan = check.plan(self.feed, lake=self.lake, run=run)
        assert plan is not None
        outcomes = json.loads(Spark.of(self.feed, self.lake).run("check", plan.model_dump_json()))
        return [check.Outcome.model_validate(each) for each in outcomes]

    def publish_run(self, run: str) -> Any:
        from headrace.stages import publish

        table, branch = self.lake.find(layout.clean_table(self.feed.name)), layout.branch(run)
        tip = table.metadata.refs.get(branch, table.metadata.refs["main"]).snapshot_id
        return publish.publish(self.feed, lake=self.lake, run=run, checked=tip)

    def merge(self, *records: Record) -> Any:
        """Publish records and bring them to the clean table, unchecked."""
        self.publish(*records)
        return self.run()

    def run(self) -> Any:
        """One run, from the topics to readers, unchecked."""
        self.extract()
        return self.again()

    def again(self, **asked: Any) -> Any:
        """One run that extracts nothing: of what is asked for, or of what the clean table lacks."""
        run = uuid.uuid4().hex
        accounts = self.transform(run, **asked)
        self.publish_run(run)
        return accounts

    def replay(self, **more: Any) -> Any:
        """All of the archive goes to its topic once more; returns when whoever reads the topic sees all of it."""
        from headrace.airflow import connections
        from headrace.kafka.pace import Rate
        from headrace.slice import Slice
        from headrace.stages import replay

        found = replay.plan(
            self.feed, lake=self.lake, kafka=self.kafka, slice_=Slice(), to=None, same_partitions=False,
            signing=connections.signing_key(),
        )  # fmt: skip
        now = int(time.time() * 1000)
        sent = replay.run(found, lake=self.lake, kafka=self.kafka, now=now, rate=Rate(), anyway=True, **more)
        self._settle()
        return sent

    def _settle(self) -> None:
        """Wait until the broker has marked all transactions: it does so a moment after it has said that they are."""
        admin, deadline = AdminClient({**self.kafka}), time.monotonic() + 30
        parts = admin.list_topics(self.feed.topic, timeout=30).topics[self.feed.topic].partitions
        wanted = {TopicPartition(self.feed.topic, each): OffsetSpec.latest() for each in parts}

        def ends(level: IsolationLevel) -> list[int]:
            asked = admin.list_offsets(wanted, isolation_level=level, request_timeout=30)
            return [asked[each].result().offset for each in wanted]

        while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
            assert time.monotonic() < deadline, "a transaction stays open"

    def redeclared(self, **declared: Any) -> "Workshop":
        """The same feed with another declaration, and the same schema."""
        from headrace import feed

        attribute, file = self.feed.attribute, self.feed.file
        schema = {**self.feed.schema, attribute: {**self.feed.schema[attribute], **declared}}
        return replace(self, feed=feed.parse(file, json.dumps(schema)))

    def load(self, warehouse: str = "finance", *, mask_key: bytes = b"key") -> Any:
        from headrace.airflow import connections
        from headrace.stages import load

        return load.load(self.feed, lake=self.lake, warehouse=connections.warehouse(warehouse), mask_key=mask_key)

    def reconcile(self, warehouse: str = "finance", *, mask_key: bytes = b"key", full: bool = True) -> Any:
        from headrace.airflow import connections
        from headrace.stages import reconcile

        done = reconcile.reconcile(
            self.feed, lake=self.lake, warehouse=connections.warehouse(warehouse), mask_key=mask_key, full=full
        )
        reconcile.judge(done)
        return done

    def prove(self, store: str = "clean", *, full: bool = True, run: str | None = None) -> Any:
        """How a store of the lake compares with the one before it, as runs and nights ask."""
        from headrace.airflow import reconciling

        return reconciling.compare(self.feed, store, run=run or uuid.uuid4().hex, full=full)

    def clean(self) -> list[dict[str, Any]]:
        """The visible rows of the clean table, by key."""
        table = self.lake.find(layout.clean_table(self.feed.name))
        rows = table.scan(row_filter="_hidden = false").to_arrow().to_pylist()
        names = [note.name for note in self.feed.fields]
        return sorted(({name: row[name] for name in names} for row in rows), key=str)

    def quarantine(self) -> dict[tuple[int, int], str]:
        table = self.lake.find(layout.quarantine_table(self.feed.name))
        rows = table.scan(row_filter="rejected_by is null").to_arrow().to_pylist()
        assert len({(row["partition"], row["offset"]) for row in rows}) == len(rows), "a record is there twice"
        return {(row["partition"], row["offset"]): row["reason"] for row in rows}
