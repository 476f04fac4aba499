"""Holding: the records of forgotten keys, told by keyed hashes, so that nothing brings them back.

Blanked records are told by their header. Others may come back by a replay, an import or an older copy: those of a key
on the hold list are left out when they came before it was forgotten, and so is a copy whose original is blank. The
hashes are Spark's own, as in `origins`.
"""

import json
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace import provenance
from headrace.columns import field_types
from headrace.forgotten import MARK
from headrace.provenance import ABSENT
from headrace.stages.transform import TransformPlan
from spark_jobs import decoding, envelopes
from spark_jobs.origins import is_from_elsewhere

FORGOTTEN = "forgotten"
PADS, DIGEST, NEXT, KEY, ORIGINAL = "_hold_pads", "_hold_digest", "_hold_next", "_hold_key", "_hold_original"


def is_blank() -> Column:
    """Whether an envelope is what was left of a forgotten record."""
    return F.expr(
        f"key is null and value is null and coalesce(exists(headers, header -> header.name = '{MARK}'), false)"
    )


def blanked(placed: DataFrame, plan: TransformPlan, spark: SparkSession) -> DataFrame:
    """Placed records, with those marked that are blank, and copies whose original is, whatever these say."""
    marked_ = placed.withColumn(FORGOTTEN, is_blank())
    copies = placed.where(F.col("replayed")).groupBy("partition").agg(F.min("offset"), F.max("offset")).collect()
    if not copies:
        return marked_
    # Only where the originals lie: statistics of offsets leave out all other files.
    spans = {partition: (first, last + 1) for partition, first, last in copies}
    originals = envelopes.within(spark, plan, spans).where(is_blank())
    known = originals.select("partition", "offset", F.lit(True).alias(ORIGINAL))
    return (
        marked_.join(known, ["partition", "offset"], "left")
        .withColumn(FORGOTTEN, F.col(FORGOTTEN) | (F.col("replayed") & F.col(ORIGINAL).isNotNull()))
        .drop(ORIGINAL)
    )


def marked(decoded: DataFrame, plan: TransformPlan, spark: SparkSession) -> DataFrame:
    """Decoded records, of which blanked ones are marked, with those marked too whose key is held."""
    decoded = decoded.withColumn(KEY, key_of(plan))
    for secret in sorted({each.secret for each in plan.held}):
        decoded = _marked(decoded, plan, spark, secret=secret)
    return decoded.drop(KEY)


def key_of(plan: TransformPlan) -> Column:
    """A decoded record's key: by its fields, or, as a tombstone's, by the Kafka key where they do not tell it."""
    told = decoding.tombstone_row(plan, field_types(plan.schema_type, json.loads(plan.reader)))
    return F.struct(
        *(F.when(is_readable(plan), F.col("row")[name]).otherwise(told[name]).alias(name) for name in plan.key)
    )


def is_readable(plan: TransformPlan) -> Column:
    """Whether the fields of a decoded record tell its key."""
    return reduce(Column.__and__, (F.col("row")[name].isNotNull() for name in plan.key))


def _marked(decoded: DataFrame, plan: TransformPlan, spark: SparkSession, *, secret: int) -> DataFrame:
    held = [(each.digest, each.next) for each in plan.held if each.secret == secret]
    known = spark.createDataFrame(held, f"{DIGEST} string, {NEXT} map<int, bigint>")
    hashed = digested(decoded, plan, spark, secret=secret)
    # History that somebody brings back is of before, wherever it comes from.
    brought = F.col("imported") | is_from_elsewhere(F.col("rank_partition"))
    before = F.col("offset") < F.coalesce(F.try_element_at(NEXT, F.col("partition")), F.lit(0))
    is_held = F.col(NEXT).isNotNull() & (brought | before)
    return (
        hashed.join(F.broadcast(known), DIGEST, "left")
        .withColumn(FORGOTTEN, F.col(FORGOTTEN) | is_held)
        .drop(DIGEST, NEXT)
    )


def digested(rows: DataFrame, plan: TransformPlan, spark: SparkSession, *, secret: int) -> DataFrame:
    """Rows, whose key is a struct of its fields, with the keyed hash of that."""
    inner, outer = provenance.pads(bytes.fromhex(plan.signing[secret]))
    # A table of one row, never a literal: a query's plan is shown and logged in many places.
    pads = spark.createDataFrame(
        [((bytearray(inner), bytearray(outer)),)], f"{PADS} struct<inner: binary, outer: binary>"
    )
    return rows.crossJoin(F.broadcast(pads)).withColumn(DIGEST, F.expr(_hmac(plan))).drop(PADS)


# As text: Spark Connect refuses queries that are nested too deeply, and a text is one level.
def _hmac(plan: TransformPlan) -> str:
    parts = ", ".join(f"coalesce(sha2({_bytes(name, plan)}, 256), '{ABSENT}')" for name in plan.key)
    inner = f"unhex(sha2(concat({PADS}.inner, cast(concat_ws('\\n', {parts}) as binary)), 256))"
    return f"sha2(concat({PADS}.outer, {inner}), 256)"


def _bytes(name: str, plan: TransformPlan) -> str:
    field = f"{KEY}.`{name}`"
    return field if plan.columns[name] == "binary" else f"cast(cast({field} as string) as binary)"
