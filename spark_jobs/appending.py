"""Appending: of the records of one key the first stays, what says the same is a redelivery, the rest conflicts."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.clean import CONTENT, FROM_OFFSET, FROM_PARTITION, RANK_OFFSET, RANK_PARTITION
from headrace.quarantine import Reason
from headrace.stages.transform import TransformPlan
from spark_jobs.conditions import lies_in
from spark_jobs.content import content

# Columns of our own begin as no field may, so that none takes the place of a feed's.
FIRST, STANDS, HELD, KEY, VERDICT = "_first", "_stands", "_held", "_key_", "_verdict"


def judged(decoded: DataFrame, met: DataFrame, plan: TransformPlan) -> DataFrame:
    """Mark as a conflict what has the key of a standing or an earlier row but other content.

    A copy of the standing row's own record is none, though a later version of the schema may read it otherwise.
    """
    held = _held(_firsts(decoded, plan), met, plan)
    keys = {name: F.col("row")[name] for name in plan.key}
    same_key = reduce(Column.__and__, (value == F.col(f"{KEY}{name}") for name, value in keys.items()))
    itself = F.struct("partition", "offset").eqNullSafe(F.struct(FROM_PARTITION, FROM_OFFSET))
    other = F.col("reason").isNull() & F.col(HELD).isNotNull() & (_content(plan) != F.col(HELD)) & ~itself
    reason = F.when(other, F.lit(Reason.CONFLICT.value)).otherwise(F.col("reason"))
    return decoded.join(held, same_key, "left").withColumn("reason", reason).select(decoded.columns)


def rejudged(batch: DataFrame, whole: DataFrame) -> DataFrame:
    """The batch with the verdicts that its records have among all records of their keys, where those are known.

    Beside the standing row a record that takes its place looks like a conflict, and one that says the same like none.
    """
    verdict = F.min_by(F.struct("reason"), F.col("reason").isNotNull()).alias(VERDICT)
    verdicts = whole.groupBy("partition", "offset").agg(verdict)
    reason = F.when(F.col(VERDICT).isNotNull(), F.col(VERDICT)["reason"]).otherwise(F.col("reason"))
    judged_again = batch.join(verdicts, ["partition", "offset"], "left").withColumn("reason", reason)
    return judged_again.select(batch.columns)


def displaced(decoded: DataFrame, met: DataFrame, plan: TransformPlan) -> DataFrame:
    """The keys whose standing row is not the first any more: one that ranks lower came after it, and says otherwise."""
    # Of a row whose record was dropped nothing would be left: it stays, and what says otherwise is a conflict.
    here = ~lies_in(F.col(FROM_PARTITION), F.col(FROM_OFFSET), plan.gone)
    met_ranks = met.where(here).select(*plan.key, F.col(CONTENT).alias(HELD), _rank().alias(STANDS))
    joined = _firsts(decoded, plan).join(met_ranks, list(plan.key))
    lower = (F.col(f"{FIRST}.rank") < F.col(STANDS)) & (F.col(f"{FIRST}.content") != F.col(HELD))
    return joined.where(lower).select(*plan.key)


def _firsts(decoded: DataFrame, plan: TransformPlan) -> DataFrame:
    """The first good record of each key: its rank and what it says."""
    rank = F.struct("rank_partition", "rank_offset")
    first = F.struct(rank.alias("rank"), _content(plan).alias("content"))
    good = decoded.where(F.col("reason").isNull() & F.col("value").isNotNull())
    keys = (F.col("row")[name].alias(name) for name in plan.key)
    return good.groupBy(*keys).agg(F.min_by(first, F.struct(rank, "offset")).alias(FIRST))


def _held(firsts: DataFrame, met: DataFrame, plan: TransformPlan) -> DataFrame:
    """What each key's row says, standing or to come, and which record made it if it stands."""
    known = met.select(*plan.key, F.col(CONTENT).alias(STANDS), FROM_PARTITION, FROM_OFFSET)
    says = F.coalesce(F.col(STANDS), F.col(f"{FIRST}.content")).alias(HELD)
    keys = (F.col(name).alias(f"{KEY}{name}") for name in plan.key)
    return firsts.join(known, list(plan.key), "left").select(*keys, says, FROM_PARTITION, FROM_OFFSET)


def _rank() -> Column:
    return F.struct(F.col(RANK_PARTITION).alias("rank_partition"), F.col(RANK_OFFSET).alias("rank_offset"))


def _content(plan: TransformPlan) -> Column:
    return content({name: F.col("row")[name] for name in plan.columns}, plan)
