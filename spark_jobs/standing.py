"""Standing: the rows of the clean table that a batch's keys have already, found without reading the rest of it."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.clean import (
    CHANGED,
    CONTENT,
    FROM_OFFSET,
    FROM_PARTITION,
    HIDDEN_ROW,
    RANK_OFFSET,
    RANK_PARTITION,
)
from headrace.stages.transform import TransformPlan
from spark_jobs.conditions import any_of

RANKED = (HIDDEN_ROW, FROM_PARTITION, FROM_OFFSET, RANK_PARTITION, RANK_OFFSET, CONTENT, CHANGED)
BROADCAST = 1_000_000
"""Up to so many keys go to every reader of the table, so that it is read in place and never sorted or sent around."""


def table(spark: SparkSession, plan: TransformPlan) -> DataFrame:
    """The clean table as the run found it; none of its rows where they are made anew."""
    rows = spark.read.option("versionAsOf", plan.base).table(plan.clean)
    return rows.where(F.lit(False)) if plan.anew else rows


def met(standing: DataFrame, keys: DataFrame, plan: TransformPlan, *, where: Column, count: int) -> DataFrame:
    """The standing rows that have one of the keys, with the columns that decide; for a patch with all of them."""
    near = F.broadcast(keys) if count <= BROADCAST else keys
    rows = standing.where(where)
    columns = rows.columns if plan.merge == "patch" else _deciding(plan)
    return rows.select(*columns).join(near, list(plan.key), "left_semi")


def _deciding(plan: TransformPlan) -> Sequence[str]:
    place = [plan.partition.field] if plan.partition else []
    return list(dict.fromkeys([*plan.key, *plan.order, *place, *RANKED]))


def made_by(standing: DataFrame, coordinates: DataFrame, plan: TransformPlan) -> DataFrame:
    """The keys of the rows that certain records made: each is told by its partition and offset."""
    spans = coordinates.groupBy("partition").agg(F.min("offset"), F.max("offset")).collect()
    near = any_of(
        (F.col(FROM_PARTITION) == number) & F.col(FROM_OFFSET).between(first, last) for number, first, last in spans
    )
    places = coordinates.select(F.col("partition").alias(FROM_PARTITION), F.col("offset").alias(FROM_OFFSET))
    rows = standing.where(near).select(*plan.key, FROM_PARTITION, FROM_OFFSET)
    return rows.join(F.broadcast(places), [FROM_PARTITION, FROM_OFFSET], "left_semi").select(*plan.key)
