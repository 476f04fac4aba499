"""A bench for decoding: records as Spark gets them, decoded by themselves, without a topic or a table."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import fastavro

RECORDS = (
    "partition int, offset bigint, key binary, value binary, "
    "headers array<struct<name: string, value: binary>>, drained boolean, forged boolean"
)
Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Sent:
    """A record to decode."""

    value: bytes | None
    headers: Headers = ()
    key: bytes | None = None
    drained: bool = False


def avro_bytes(schema: Any, value: Any) -> bytes:
    """A value as Avro writes it, without a frame."""
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), value)
    return body.getvalue()


def frame(id_: int) -> bytes:
    return b"\0" + id_.to_bytes(4, "big")


@contextmanager
def decoding(sent: Sequence[Sent], **plan: Any) -> Iterator[Any]:
    """A frame of decoded records, not yet computed."""
    from headrace.airflow import connections
    from headrace.lake import spark_properties
    from headrace.settings import Settings
    from headrace.stages.transform import TransformPlan
    from spark_jobs import decoding as job
    from spark_jobs.session import session

    made = TransformPlan.model_construct(**{"key": ["id"], "merge": "latest", "spans": {}, **plan})
    if "columns" not in plan:
        made = made.model_copy(update={"columns": {"id": "string"}})
    rows = [
        (0, offset, each.key, each.value, list(each.headers), each.drained, False) for offset, each in enumerate(sent)
    ]
    properties = spark_properties(connections.lake(Settings()))
    with session(connections.spark_remote(), properties=properties) as spark:
        yield job.decoded(spark.createDataFrame(rows, RECORDS), made)


def decoded(sent: Sequence[Sent], **plan: Any) -> list[dict[str, Any]]:
    """What becomes of records under a plan, of which only what decoding looks at need be given."""
    with decoding(sent, **plan) as records:
        rows: list[dict[str, Any]] = records.orderBy("offset").toArrow().to_pylist()
        return rows


def reading(schema_type: str, reader: Mapping[str, Any], writers: Mapping[int, Any]) -> dict[str, Any]:
    """The part of a plan that says how records are read."""
    texts = {id_: json.dumps(each) for id_, each in writers.items()}
    return {"schema_type": schema_type, "reader": json.dumps(reader), "writers": texts}
