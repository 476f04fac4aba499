"""Envelopes: the archive's records that a plan asks for, new ones and those that are to be judged again."""

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace import record
from headrace.heads import Heads
from headrace.stages.transform import Spans, TransformPlan
from spark_jobs.conditions import any_of

COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")
AGAIN = "again"
"""Whether a record was judged before; a replayed copy of one was too."""


def asked(spark: SparkSession, plan: TransformPlan) -> DataFrame:
    """What a plan names; statistics of offsets and timestamps leave out files that hold none of it."""
    archive, parts = _archive(spark, plan), []
    if plan.spans:
        parts.append(archive.where(_within(plan.spans)).withColumn(AGAIN, F.lit(plan.anew)))
    if plan.window:
        first, next_ = plan.window
        inside = (F.col("timestamp") >= first) & (F.col("timestamp") < next_) & _within(_merged(plan))
        parts.append(archive.where(inside).withColumn(AGAIN, F.lit(True)))
    if plan.released:
        released = (
            spark.read.option("versionAsOf", plan.quarantine_snapshot or 0)
            .table(plan.quarantine)
            .where(F.col("released_at").isNotNull())
            .select("partition", "offset")
        )
        some = archive.where(_within(plan.released)).join(F.broadcast(released), ["partition", "offset"], "left_semi")
        parts.append(some.withColumn(AGAIN, F.lit(True)))
    return reduce(DataFrame.unionByName, parts)


def whole(spark: SparkSession, plan: TransformPlan) -> DataFrame:
    """All that the clean table will have merged when the plan is done."""
    return _archive(spark, plan).where(_within(_merged(plan))).withColumn(AGAIN, F.lit(True))


def before(spark: SparkSession, plan: TransformPlan, next_: Mapping[int, int]) -> DataFrame:
    """All that the archive holds before some offsets."""
    spans = {number: (0, offset) for number, offset in next_.items()}
    return within(spark, plan, spans).withColumn(AGAIN, F.lit(True))


def within(spark: SparkSession, plan: TransformPlan, spans: Mapping[int, tuple[int, int]]) -> DataFrame:
    """All that the archive holds of some spans."""
    return _archive(spark, plan).where(_within(spans))


def _archive(spark: SparkSession, plan: TransformPlan) -> DataFrame:
    archive = spark.read.option("versionAsOf", plan.archive_snapshot).table(plan.archive)
    # Only an archive of two topics has it, and not in snapshots from before it held the second.
    after = F.col(record.AFTER) if record.AFTER in archive.columns else F.lit(None).cast("map<int, bigint>")
    return archive.select(*COLUMNS, after.alias(record.AFTER))


def _merged(plan: TransformPlan) -> Spans:
    return {number: (0, next_) for number, next_ in Heads.from_json(plan.heads).next.items()}


def _within(spans: Mapping[int, tuple[int, int]]) -> Column:
    return any_of(
        (F.col("partition") == number) & (F.col("offset") >= first) & (F.col("offset") < next_)
        for number, (first, next_) in spans.items()
    )
