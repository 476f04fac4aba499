"""Merging: versions to one row per key, by one total order, so that no split into batches can change the result."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.clean import FROM_OFFSET, FROM_PARTITION, HIDDEN_ROW, RANK_OFFSET, RANK_PARTITION
from headrace.quarantine import Reason
from headrace.stages.transform import TransformPlan


def versions(good: DataFrame, plan: TransformPlan) -> DataFrame:
    """Decoded records as rows of the clean table, each ranked by its own coordinates."""
    coordinates = {
        FROM_PARTITION: "partition",
        FROM_OFFSET: "offset",
        RANK_PARTITION: "partition",
        RANK_OFFSET: "offset",
    }
    return good.select(
        *(F.col("row")[name].alias(name) for name in plan.columns),
        F.col("value").isNull().alias(HIDDEN_ROW),
        *(F.col(source).alias(name) for name, source in coordinates.items()),
    )


def rank(plan: TransformPlan, qualifier: str = "") -> Column:
    """The total order as one comparable struct; in Spark a null inside a struct is lower than any value."""
    names = [*plan.order, RANK_PARTITION, RANK_OFFSET, HIDDEN_ROW, FROM_OFFSET]
    return F.struct(*(F.col(f"{qualifier}{name}") for name in names))


def rank_tombstones(rows: DataFrame, standing: DataFrame, plan: TransformPlan) -> DataFrame:
    """Give each tombstone the rank of the highest version of its key before it in its partition.

    That version may be in this batch or already be the standing row. A standing tombstone that never had a version
    below it is no candidate: it ranks by its own coordinates.
    """
    tombstones = rows.where(HIDDEN_ROW)
    versionless = F.col(HIDDEN_ROW) & (F.col(RANK_OFFSET) == F.col(FROM_OFFSET))
    columns = [*plan.key, *plan.order, RANK_PARTITION, RANK_OFFSET]
    candidates = rows.where(~F.col(HIDDEN_ROW)).select(columns).union(standing.where(~versionless).select(columns))
    below = F.struct(*(F.col(f"c.{name}") for name in [*plan.order, RANK_PARTITION, RANK_OFFSET]))
    before = (F.col(f"c.{RANK_PARTITION}") == F.col(f"t.{FROM_PARTITION}")) & (
        F.col(f"c.{RANK_OFFSET}") < F.col(f"t.{FROM_OFFSET}")
    )
    found = (
        tombstones.alias("t")
        .join(candidates.alias("c"), same_key(plan.key, "t.", "c.") & before, "left")
        .groupBy(*(F.col(f"t.{name}").alias(name) for name in [FROM_PARTITION, FROM_OFFSET, *plan.key]))
        .agg(F.max(F.when(F.col(f"c.{RANK_OFFSET}").isNotNull(), below)).alias("below"))
    )
    ranked = {
        **{name: F.lit(None).cast(type_) for name, type_ in plan.columns.items() if name not in plan.key},
        **{name: F.col("below")[name] for name in plan.order},
        HIDDEN_ROW: F.lit(True),
        RANK_PARTITION: F.coalesce(F.col("below")[RANK_PARTITION], FROM_PARTITION),
        RANK_OFFSET: F.coalesce(F.col("below")[RANK_OFFSET], FROM_OFFSET),
    }
    ordered = found.withColumns(ranked).select(rows.columns)
    return rows.where(~F.col(HIDDEN_ROW)).union(ordered)


def winners(rows: DataFrame, plan: TransformPlan) -> DataFrame:
    """The highest version of each key."""
    best = F.max_by(F.struct(*rows.columns), rank(plan)).alias("best")
    return rows.groupBy(*plan.key).agg(best).select("best.*")


def judge_appends(decoded: DataFrame, standing: DataFrame, plan: TransformPlan) -> DataFrame:
    """Mark as a conflict what has the key of a standing or an earlier row but other content."""
    content = F.struct(*(F.col("row")[name].alias(name) for name in plan.columns))
    coordinates = F.struct("partition", "offset")
    keys = {name: F.col("row")[name] for name in plan.key}
    good = decoded.where(F.col("reason").isNull())
    firsts = good.groupBy(*(value.alias(name) for name, value in keys.items())).agg(
        F.min_by(content, coordinates).alias("first")
    )
    known = standing.select(*plan.key, F.struct(*plan.columns).alias("stands"))
    held = (
        firsts.join(known, list(plan.key), "left")
        .withColumn("held", F.coalesce("stands", "first"))
        .select(*(F.col(name).alias(f"held_{name}") for name in plan.key), "held")
    )
    matches = reduce(Column.__and__, (value == F.col(f"held_{name}") for name, value in keys.items()))
    other = F.col("reason").isNull() & F.col("held").isNotNull() & ~content.eqNullSafe(F.col("held"))
    judged = decoded.join(held, matches, "left")
    return judged.withColumn("reason", F.when(other, F.lit(Reason.CONFLICT.value)).otherwise(F.col("reason"))).select(
        decoded.columns
    )


def firsts(rows: DataFrame, plan: TransformPlan) -> DataFrame:
    """The lowest version of each key: what an append keeps."""
    best = F.min_by(F.struct(*rows.columns), rank(plan)).alias("best")
    return rows.groupBy(*plan.key).agg(best).select("best.*")


def same_key(key: Sequence[str], left: str, right: str) -> Column:
    return reduce(Column.__and__, (F.col(f"{left}{name}") == F.col(f"{right}{name}") for name in key))
