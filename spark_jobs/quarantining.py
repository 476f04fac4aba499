"""Quarantining: rejected records are added to the feed's quarantine, and those found good since are marked."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.quarantine import SCHEMA
from headrace.stages.transform import TransformPlan
from spark_jobs.envelopes import AGAIN

HELD = "_held"


def quarantine(spark: SparkSession, records: DataFrame, plan: TransformPlan) -> None:
    """Add what is rejected and not there yet, and settle what is there and good now.

    Each record is told by its coordinates: a run that died after this writes none of them twice. What is settled stays
    until the run's rows are published, for until then nobody sees them anywhere else; and what is merged is in
    quarantine only once that run's rows take its place.
    """
    rejected, good = F.col("reason").isNotNull(), F.col("reason").isNull()
    if not plan.judged:
        good &= F.col(AGAIN)
    known = spark.table(plan.quarantine).where(F.col("rejected_by").isNull()).select("partition", "offset")
    settled = records.where(good).join(F.broadcast(known), ["partition", "offset"], "left_semi")
    verdicts = (
        records.where(rejected)
        .unionByName(settled)
        .withColumns(
            {
                "quarantined_at": F.current_timestamp(),
                "released_at": F.lit(None).cast("timestamp"),
                "settled_by": F.lit(None).cast("string"),
                "rejected_by": F.when(rejected & F.col(AGAIN), F.lit(plan.branch)),
            }
        )
    )
    # A record and its replayed copies may come in one batch; a good one is better than a bad copy.
    names = [field.name for field in SCHEMA.fields]
    best = F.min_by(F.struct(*names), F.struct(F.col("reason").isNotNull(), "offset"))
    source = verdicts.groupBy("partition", "offset").agg(best.alias("best")).select("best.*").alias("s")
    target = f"`{plan.feed}`"  # a merge's condition knows its target by the table's own name
    counts = f"{target}.rejected_by is null"
    same = F.expr(f"s.partition = {target}.partition and s.offset = {target}.offset and {counts}")
    judged = {name: F.col(f"s.{name}") for name in ("schema_id", "reason", "detail", "released_at", "settled_by")}
    (
        source.mergeInto(plan.quarantine, same)
        .whenMatched(F.col("s.reason").isNull())
        .update({"settled_by": F.lit(plan.branch)})
        .whenMatched(_differs(target))
        .update(judged)
        .whenNotMatched(F.col("s.reason").isNotNull())
        .insertAll()
        .merge()
    )


def turned(spark: SparkSession, records: DataFrame, plan: TransformPlan) -> DataFrame:
    """Those of the records judged again that are good now and were not, or were and are not."""
    known = spark.table(plan.quarantine).where(F.col("rejected_by").isNull()).select("partition", "offset")
    there = known.withColumn(HELD, F.lit(True))
    judged = records.where(AGAIN).join(F.broadcast(there), ["partition", "offset"], "left")
    return judged.where(F.col("reason").isNull() == F.col(HELD).isNotNull())


def has_judged(spark: SparkSession, plan: TransformPlan) -> bool:
    """Whether the run found good what is in quarantine, or rejected what is merged."""
    mine = (F.col("settled_by") == plan.branch) | (F.col("rejected_by") == plan.branch)
    return not spark.table(plan.quarantine).where(mine).isEmpty()


def _differs(target: str) -> Column:
    """Whether a verdict says anything new, or answers a release."""
    said = [F.expr(f"not (s.{name} <=> {target}.{name})") for name in ("reason", "detail", "schema_id")]
    asked = [F.expr(f"{target}.{name} is not null") for name in ("released_at", "settled_by")]
    return said[0] | said[1] | said[2] | asked[0] | asked[1]
