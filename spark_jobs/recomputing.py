"""Recomputing: keys that no merge onto their standing row can bring right, made from all their records together.

A record that a row came from may be rejected now; one that ranked a tombstone may come in, or go; a lower one than the
standing may come to an append; a patch may be judged again. Each is rare, and costs a reading of the whole archive.
"""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.clean import BOTTOM, CONTENT, FROM_OFFSET, FROM_PARTITION, HIDDEN_ROW, RANK_OFFSET, RANK_PARTITION
from headrace.stages.transform import TransformPlan
from spark_jobs import merging, patching
from spark_jobs.merging import CONTENTS, COORDINATES, NOTHING, RECORDS

KEY = "_key_"


def of_keys(records: DataFrame, keys: DataFrame, plan: TransformPlan) -> DataFrame:
    """The records that have one of the keys."""
    return records.join(F.broadcast(_named(keys, plan)), _same(plan), "left_semi")


def but_keys(records: DataFrame, keys: DataFrame, plan: TransformPlan) -> DataFrame:
    """The records that have none of them."""
    return records.join(F.broadcast(_named(keys, plan)), _same(plan), "left_anti")


def can_rerank(plan: TransformPlan) -> bool:
    """Whether a verdict may change what a tombstone ranks by.

    Where records were dropped, what they gave a row of `latest` cannot be made once more: it stays. A patch knows.
    """
    return plan.merge == "patch" or (plan.merge == "latest" and bool(plan.order) and not plan.gone)


def reranked(turned: DataFrame, met: DataFrame, plan: TransformPlan) -> DataFrame:
    """The keys of which a tombstone may rank otherwise, or a patch be another, for some versions turned good or bad.

    In `latest` a tombstone that was overwritten is below the row that stands; a version that is below it too does not
    raise the one above the other.
    """
    both = met.alias("t").join(turned.alias("s"), merging.same_key(plan.key, "t.", "s."))
    raised = _order(plan, "s.") >= _order(plan, "t.")
    concerned = F.lit(True) if plan.merge == "patch" else F.col(f"t.{HIDDEN_ROW}") | raised
    return both.where(concerned).select(*(F.col(f"t.{name}") for name in plan.key))


def _order(plan: TransformPlan, qualifier: str) -> Column:
    return F.struct(*(F.col(f"{qualifier}{name}") for name in plan.order))


def _named(keys: DataFrame, plan: TransformPlan) -> DataFrame:
    return keys.select(*(F.col(name).alias(f"{KEY}{name}") for name in plan.key))


def _same(plan: TransformPlan) -> Column:
    return reduce(Column.__and__, (F.col("row")[name] == F.col(f"{KEY}{name}") for name in plan.key))


def completed(
    mended: DataFrame, keys: DataFrame, *, batch: DataFrame, stood: DataFrame, plan: TransformPlan
) -> DataFrame:
    """What was recomputed, with what the batch itself brought of it, and a hidden row where no good record is left."""
    brought = merging.versions(batch, plan).groupBy(*plan.key).agg(*merging.counts())
    places = {f"_stood{name}": F.col(name) for name in (FROM_PARTITION, FROM_OFFSET)}
    coordinates = stood.select(*plan.key, *(each.alias(name) for name, each in places.items()))
    whole = (
        keys.join(mended.drop(RECORDS, CONTENTS), list(plan.key), "left")
        .join(brought, list(plan.key), "left")
        .join(coordinates, list(plan.key), "left")
    )
    filled = {
        RECORDS: F.coalesce(RECORDS, F.lit(0)),
        CONTENTS: F.coalesce(F.col(CONTENTS), F.array().cast("array<bigint>")),
        **(_empty_state(plan) if plan.merge == "patch" else _empty_row()),
    }
    return whole.withColumns(filled).select(mended.columns)


def _empty_row() -> dict[str, Column]:
    nothing = {HIDDEN_ROW: F.lit(True), **_empty_places(), CONTENT: F.lit(NOTHING).cast("bigint")}
    return {name: F.coalesce(F.col(name), value) for name, value in nothing.items()}


def _empty_state(plan: TransformPlan) -> dict[str, Column]:
    """A delete below all."""
    is_empty = F.col(patching.TOP).isNull() & F.col(patching.DELETED).isNull()
    bottom = {name: F.lit(None).cast(plan.columns[name]) for name in plan.order}
    bottom |= {RANK_PARTITION: F.lit(BOTTOM), RANK_OFFSET: F.lit(0).cast("bigint")}
    place = _empty_places()
    empty = {
        patching.DELETED: F.struct(*(each.alias(name) for name, each in bottom.items())),
        patching.LAST: F.struct(*(place[name].alias(name) for name in COORDINATES)),
    }
    if plan.order:
        orders = ", ".join(f"`{name}`: {plan.columns[name]}" for name in plan.order)
        empty[patching.PARTITIONS] = F.create_map().cast(f"map<int, struct<{orders}>>")
    return {name: F.when(is_empty, value).otherwise(F.col(name)) for name, value in empty.items()}


def _empty_places() -> dict[str, Column]:
    return {
        FROM_PARTITION: F.col(f"_stood{FROM_PARTITION}"),
        FROM_OFFSET: F.col(f"_stood{FROM_OFFSET}"),
        RANK_PARTITION: F.lit(BOTTOM),
        RANK_OFFSET: F.lit(0).cast("bigint"),
    }
