"""Warming Spark Connect: transforms and checks on a handful of rows, so that the first real ones are quick.

A fresh JVM spends half a minute on loading and compiling what a run needs. This runs in the background while people and
Airflow still get ready, on a catalog of its own.
"""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from pyiceberg.schema import Schema, index_by_name
from pyspark.sql import SparkSession

from headrace import clean, feed, record
from headrace.columns import columns
from headrace.database import Database
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.lake import Lake, spark_properties
from headrace.quarantine import SCHEMA as QUARANTINE
from headrace.stages.check import CheckPlan, suite
from headrace.stages.transform import TransformPlan, hidden_types, spark_type
from headrace.storage import Storage
from spark_jobs.check import check
from spark_jobs.session import session
from spark_jobs.transform import transform

CATALOG = "warming"
BRANCH = "run_warming"
FIELDS = {"id": "string", "revision": "long"}
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Word",
    "fields": [{"name": name, "type": type_} for name, type_ in FIELDS.items()],
    "feed": {"key": ["id"], "order": ["revision"]},
}
JSON: dict[str, Any] = {
    "properties": {"id": {"type": "string"}, "revision": {"type": "integer"}},
    "x-feed": {"key": ["id"], "merge": "append"},
}
# Framed by schema id 1: a row that decodes, one that does not, and a tombstone.
AVRO_VALUES = [b"\0\0\0\0\1\2a\2", b"\0\0\0\0\1\2", None]
SPANS = {0: (0, 3)}
JSON_VALUES = [b'\0\0\0\0\1{"id": "a", "revision": 1}', b"\0\0\0\0\1{", b""]
EXAMPLES: list[tuple[str, dict[str, Any], Sequence[bytes | None]]] = [
    ("avro.avsc", AVRO, AVRO_VALUES),
    ("json.json", JSON, JSON_VALUES),
]


def main() -> int:
    """Run everything once."""
    spark_address = _connection("SPARK")
    remote = f"{spark_address['host']}:{spark_address['port']}"
    with session(remote, properties=spark_properties(lake())) as spark:
        for file, schema, values in EXAMPLES:
            warm(spark, feed.parse(file, json.dumps(schema)), values=values)
    return 0


def lake() -> Lake:
    """The stack's own lake under another catalog name, so that its tables are apart but its clients get warm too."""
    base, s3 = _connection("CATALOG"), _connection("S3")
    return Lake(
        CATALOG,
        f"{os.environ['HEADRACE_LAKE']}/{CATALOG}",
        Database(base["host"], base["port"], base["schema"], base["login"], base["password"]),
        Storage(s3["extra"]["endpoint_url"], s3["login"], s3["password"], s3["extra"]["region_name"]),
    )


def _connection(name: str) -> dict[str, Any]:
    connection: dict[str, Any] = json.loads(os.environ[f"AIRFLOW_CONN_HEADRACE_{name}"])
    return connection


def warm(spark: SparkSession, example: Feed, *, values: Sequence[bytes | None]) -> None:
    """Make the feed's three tables, transform some records and check the rows."""
    types = {column.name: spark_type(column.type) for column in columns(example)}
    archive, clean_table = f"{CATALOG}.archive.{example.name}", f"{CATALOG}.clean.{example.name}"
    records = [
        {"partition": 0, "offset": offset, "timestamp": 0, "key": b"a", "value": value}
        for offset, value in enumerate(values)
    ]
    make(spark, archive, types=_types(record.SCHEMA), rows=records)
    make(spark, clean_table, types={**types, **hidden_types(example)}, rows=[{"id": "z"}])
    make(spark, f"{CATALOG}.quarantine.{example.name}", types=_types(QUARANTINE), rows=[])
    snapshot, base = tip(spark, archive), tip(spark, clean_table)
    transform(spark, transform_plan(example, snapshot, base=base, types=types))
    plan = CheckPlan(
        feed=example.name,
        clean=clean_table,
        branch=BRANCH,
        snapshot=tip(spark, clean_table, branch=BRANCH),
        base=base,
        since=0,
        suite=suite(example),
    )
    check(spark, plan)


def tip(spark: SparkSession, table: str, branch: str = "main") -> int:
    """The snapshot at the end of a table's branch."""
    (ref,) = spark.read.table(f"{table}.refs").where(f"name = '{branch}'").collect()
    snapshot: int = ref["snapshot_id"]
    return snapshot


def make(spark: SparkSession, table: str, *, types: dict[str, str], rows: list[dict[str, Any]]) -> None:
    """Make a table anew and write rows into it; columns that a row does not name are null."""
    spark.sql(f"create namespace if not exists {table.rsplit('.', 1)[0]}")
    spark.sql(f"drop table if exists {table} purge")
    shape = ", ".join(f"`{name}` {type_}" for name, type_ in types.items())
    whole = [{**dict.fromkeys(types), **row} for row in rows]
    writer = spark.createDataFrame(whole, shape).writeTo(table).using("iceberg")
    for key, value in clean.PROPERTIES.items():
        writer = writer.tableProperty(key, value)
    writer.create()


def _types(schema: Schema) -> dict[str, str]:
    return {field.name: spark_type(field.field_type) for field in schema.fields}


def transform_plan(example: Feed, snapshot: int, *, base: int, types: dict[str, str]) -> TransformPlan:
    declared = example.declaration
    return TransformPlan(
        feed=example.name,
        schema_type=example.schema_type,
        reader=json.dumps(example.schema),
        writers={1: json.dumps(example.schema)},
        columns=types,
        numbers=index_by_name(clean.schema(example)),
        key=declared.key,
        order=declared.order,
        merge=declared.merge,
        archive=f"{CATALOG}.archive.{example.name}",
        archive_snapshot=snapshot,
        spans=SPANS,
        clean=f"{CATALOG}.clean.{example.name}",
        base=base,
        change=1,
        branch=BRANCH,
        quarantine=f"{CATALOG}.quarantine.{example.name}",
        heads=Heads().to_json(),
    )


if __name__ == "__main__":
    sys.exit(main())
