"""Decoding: archive envelopes to typed rows, each by the schema whose id it carries; what fails gets a reason."""

import json
from collections.abc import Callable, Mapping
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from headrace.quarantine import Reason
from headrace.stages.transform import TransformPlan

CORRUPT = "_corrupt"
FRAME_BYTES = 5
JSON_RECORDS_PER_WORKER = 50_000
"""A Python worker takes a second to start: fewer records than this are not worth another one."""


def decoded(records: DataFrame, plan: TransformPlan) -> DataFrame:
    """The records with `schema_id`, the struct `row` (null for a tombstone) and, where one is rejected, `reason`."""
    framed = records.withColumns({"schema_id": schema_id(F.col("value")), "payload": payload(F.col("value"))})
    rows = _avro(framed, plan) if plan.schema_type == "AVRO" else _json(framed, plan)
    keyed = rows.withColumn("row", F.when(F.col("value").isNull(), tombstone_row(plan)).otherwise(F.col("row")))
    return keyed.withColumn("reason", reason(plan)).drop("payload", "fault")


def schema_id(value: Column) -> Column:
    """The id in Confluent's frame (a zero byte, then four bytes, the highest first); null without a frame."""
    framed = (F.length(value) >= FRAME_BYTES) & (F.hex(F.substring(value, 1, 1)) == "00")
    return F.when(framed, F.conv(F.hex(F.substring(value, 2, 4)), 16, 10).cast("bigint"))


def payload(value: Column) -> Column:
    return value.substr(F.lit(FRAME_BYTES + 1), F.length(value))


def _avro(framed: DataFrame, plan: TransformPlan) -> DataFrame:
    """One pass whatever number of versions is mixed: each record meets only the branch of its own id."""
    options = {"mode": "PERMISSIVE", "avroSchema": plan.reader}
    row = _by_id(plan.writers, lambda writer: from_avro(F.col("payload"), writer, options))
    # A record that does not decode comes back as a row of nulls.
    empty = F.coalesce(*(row[name].cast("string") for name in plan.columns)).isNull()
    return framed.withColumns({"row": _typed(row, plan), "fault": F.when(empty, F.lit(Reason.UNDECODABLE.value))})


def _json(framed: DataFrame, plan: TransformPlan) -> DataFrame:
    """Every record is validated against the schema that it was written with, then read by the feed's own."""
    shape = ", ".join([f"`{name}` {type_}" for name, type_ in plan.columns.items()] + [f"{CORRUPT} string"])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    row = F.from_json(F.col("payload").cast("string"), shape, options)
    workers = 1 + sum(next_ - first for first, next_ in plan.spans.values()) // JSON_RECORDS_PER_WORKER
    judged = framed.coalesce(workers).withColumn(
        "fault", _by_id(plan.writers, lambda writer: validity(writer)(F.col("payload")))
    )
    unread = F.when(row[CORRUPT].isNotNull(), F.lit(Reason.INVALID.value))
    return judged.withColumns({"row": _typed(row, plan), "fault": F.coalesce("fault", unread)})


def _by_id(writers: Mapping[int, str], branch: Callable[[str], Column]) -> Column:
    """A case expression over the schema ids; null for an id that is not among them."""
    cases = iter(writers.items())
    id_, writer = next(cases)
    chosen = F.when(F.col("schema_id") == id_, branch(writer))
    for id_, writer in cases:
        chosen = chosen.when(F.col("schema_id") == id_, branch(writer))
    return chosen


def _typed(row: Column, plan: TransformPlan) -> Column:
    return F.struct(*(row[name].cast(type_).alias(name) for name, type_ in plan.columns.items()))


def validity(schema: str) -> Callable[[Column], Column]:
    """A function over Arrow batches that names the fault of each JSON text, compiled once per batch."""

    # Nested, so that it travels to the workers by value: they need the validator but none of our code.
    @F.arrow_udf("string")  # type: ignore[attr-defined, untyped-decorator]
    def fault(texts: pa.Array) -> pa.Array:
        import jsonschema_rs

        validator = jsonschema_rs.validator_for(json.loads(schema), validate_formats=True)

        def refuse(constant: str) -> None:
            raise ValueError(f"{constant} is not JSON")

        def judge(text: bytes | None) -> str | None:
            if text is None:
                return None
            try:
                return None if validator.is_valid(json.loads(text, parse_constant=refuse)) else "invalid"
            except (ValueError, RecursionError):  # no JSON, half a character, or brackets without end
                return "undecodable"

        return pa.array([judge(text) for text in texts.to_pylist()], pa.string())

    return fault  # type: ignore[no-any-return]


def tombstone_row(plan: TransformPlan) -> Column:
    """A tombstone has no fields but its key, which the Kafka key tells: its text, or a JSON object for several."""
    text = F.col("key").cast("string")
    if len(plan.key) == 1:
        keys = {plan.key[0]: F.expr(f"try_cast(cast(key as string) as {plan.columns[plan.key[0]]})")}
    else:
        shape = ", ".join(f"`{name}` {plan.columns[name]}" for name in plan.key)
        parsed = F.from_json(text, shape)
        keys = {name: parsed[name] for name in plan.key}
    return F.struct(*(keys.get(name, F.lit(None)).cast(type_).alias(name) for name, type_ in plan.columns.items()))


def unreadable(plan: TransformPlan) -> Column:
    """Whether some text is not UTF-8 or holds a NUL, which no Postgres takes: one such row would stop every load."""
    texts = [F.col("row")[name] for name, type_ in plan.columns.items() if type_ == "string"]
    bad = [~F.is_valid_utf8(text) | F.contains(text, F.lit("\0")) for text in texts]
    return reduce(Column.__or__, (F.coalesce(each, F.lit(False)) for each in bad), F.lit(False))


def reason(plan: TransformPlan) -> Column:
    """Why a record is rejected, the first reason that applies; null when it is good."""
    tombstone = F.col("value").isNull()
    refused = F.lit(Reason.TOMBSTONE.value if plan.merge == "append" else None)
    keyless = F.lit(False)
    for name in plan.key:
        keyless = keyless | F.col("row")[name].isNull()
    return (
        F.when(tombstone & keyless, F.lit(Reason.KEYLESS.value))
        .when(tombstone & unreadable(plan), F.lit(Reason.KEYLESS.value))
        .when(tombstone, refused)
        .when(F.col("schema_id").isNull(), F.lit(Reason.UNFRAMED.value))
        .when(~F.col("schema_id").isin(list(plan.writers)), F.lit(Reason.UNKNOWN_ID.value))
        .when(F.col("fault").isNotNull(), F.col("fault"))
        .when(unreadable(plan), F.lit(Reason.UNDECODABLE.value))
        .when(keyless, F.lit(Reason.KEYLESS.value))
    )
