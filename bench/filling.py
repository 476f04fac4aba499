"""Filling: a clean table of many days of equal size, made at once, for what is measured on large tables."""

from typing import Any

DAY_ROWS, DAY_MS = 50_000, 86_400_000
END_MS = 20_718 * DAY_MS
"""The end of the last day."""
FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": "long"},
    {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["placed", "paid", "sent"]}},
    {"name": "price", "type": "double"},
    {"name": "customer", "type": "string"},
    {"name": "city", "type": ["null", "string"], "default": None},
    {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "note", "type": "string"},
]


def fill(feed: Any, lake: Any, *, rows: int, is_random: bool) -> None:
    """Write rows as an append of the transform writes them: as if each had come once, some time ago."""
    from pyspark.sql import functions as F

    from headrace import clean, heads, layout
    from headrace.airflow import connections
    from headrace.heads import Heads
    from headrace.lake import spark_properties
    from headrace.stages.transform import spark_name
    from spark_jobs.session import session
    from spark_jobs.transform import SNAPSHOT_PROPERTY

    table = clean.clean_of(feed, lake)
    name = spark_name(lake.name, layout.clean_table(feed.name))
    remote, properties = connections.spark_remote(), spark_properties(lake)
    with session(remote, properties=properties) as spark:
        number = F.col("number")
        key = F.md5(number.cast("string")) if is_random else F.format_string("order-%012d", number)
        created = F.lit(END_MS) - F.floor((rows - number) * DAY_MS / DAY_ROWS)
        place = (F.lit(0).alias(clean.RANK_PARTITION), number.alias(clean.RANK_OFFSET))
        rank = F.struct(F.lit(1).alias("revision"), *place)
        numbers = [table.schema().find_field(str(each["name"])).field_id for each in FIELDS]
        values = {
            "id": key,
            "revision": F.lit(1),
            "status": F.lit("placed"),
            "price": F.rand(1),
            "customer": F.format_string("customer %d", number % 10**6),
            "city": F.lit("Ghent"),
            "created_at": F.timestamp_millis(created),
            "note": F.concat(F.lit("note "), F.sha1(number.cast("string"))),
            **{each.name: F.lit(0) for each in clean.HIDDEN},
            clean.HIDDEN_ROW: F.lit(False),
            clean.RANK_OFFSET: number,
            clean.CONTENT: F.xxhash64(number),
            clean.PATCH: F.struct(
                rank.alias("top"),
                F.lit(None).alias("deleted"),
                F.map_from_arrays(F.lit(numbers), F.array_repeat(rank, len(numbers))).alias("fields"),
                F.create_map(F.lit(0), F.struct(F.lit(1).alias("revision"))).alias("partitions"),
            ),
        }
        spark.conf.set(f"{SNAPSHOT_PROPERTY}{heads.PROPERTY}", Heads().to_json())
        wanted = spark.table(name).schema.fields
        columns = [values[each.name].cast(each.dataType).alias(each.name) for each in wanted]
        spark.range(rows).withColumnRenamed("id", "number").select(*columns).writeTo(name).append()
