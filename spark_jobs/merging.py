"""Merging: versions to one row per key, by one total order, so that no split into batches can change the result."""

import json
from collections.abc import Sequence
from functools import reduce

from pyiceberg.types import IcebergType, ListType, MapType, StructType
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.clean import FROM_OFFSET, FROM_PARTITION, HIDDEN_ROW, RANK_OFFSET, RANK_PARTITION
from headrace.columns import field_types
from headrace.quarantine import Reason
from headrace.record import AFTER
from headrace.stages.transform import TransformPlan
from spark_jobs.conditions import any_of

# Columns of our own begin as no field may, so that none takes the place of a feed's.
BELOW, BEST, FIRST, STANDS, HELD, NOTED_AFTER = "_below", "_best", "_first", "_stands", "_held", "_after"
COORDINATES = {FROM_PARTITION: "partition", FROM_OFFSET: "offset", RANK_PARTITION: "partition", RANK_OFFSET: "offset"}


def versions(good: DataFrame, plan: TransformPlan, *notes: Column) -> DataFrame:
    """Decoded records as rows of the clean table, each ranked by its own coordinates, with what else is noted of them.

    A tombstone, and a version that deletes, is a hidden row, which keeps nothing but what identifies and ranks it.
    """
    hidden = F.col("value").isNull() | deletes(plan)
    kept = {*plan.key, *plan.order}
    row = {name: F.col("row")[name] for name in plan.columns}
    return good.select(
        *((each if name in kept else F.when(~hidden, each)).alias(name) for name, each in row.items()),
        hidden.alias(HIDDEN_ROW),
        *(F.col(source).alias(name) for name, source in COORDINATES.items()),
        *notes,
    )


def after() -> Column:
    """What the archive notes with a tombstone: how far the drained topic was."""
    return F.col(AFTER).alias(NOTED_AFTER)


def deletes(plan: TransformPlan) -> Column:
    """Whether a version deletes its row, by the condition that the feed declares."""
    if plan.delete is None:
        return F.lit(False)
    field, type_ = F.col("row")[plan.delete.field], plan.columns[plan.delete.field]
    matches = (field.isNull() if each is None else field == F.lit(each).try_cast(type_) for each in plan.delete.one_of)
    return F.coalesce(any_of(matches), F.lit(False))


def rank(plan: TransformPlan, qualifier: str = "") -> Column:
    """The total order as one comparable struct; in Spark a null inside a struct is lower than any value."""
    names = [*plan.order, RANK_PARTITION, RANK_OFFSET, HIDDEN_ROW, FROM_OFFSET]
    return F.struct(*(F.col(f"{qualifier}{name}") for name in names))


def rank_first(plan: TransformPlan, qualifier: str = "") -> Column:
    """The order of `first`, whose lowest version stays: a delete is below all, for nothing comes after it."""
    names = [*plan.order, RANK_PARTITION, RANK_OFFSET, FROM_OFFSET]
    return F.struct(~F.col(f"{qualifier}{HIDDEN_ROW}"), *(F.col(f"{qualifier}{name}") for name in names))


def wins(plan: TransformPlan, source: str, target: str) -> Column:
    """Whether a new row takes the place of the standing one."""
    if plan.merge == "first":
        return rank_first(plan, source) < rank_first(plan, target)
    return rank(plan, source) > rank(plan, target)


def ranked_tombstones(tombstones: DataFrame, rows: DataFrame, standing: DataFrame, plan: TransformPlan) -> DataFrame:
    """Each tombstone with the rank of the highest version of its key before it in its partition.

    That version may be in this batch or already be the standing row. A standing tombstone that never had a version
    below it is no candidate: it ranks by its own coordinates. In `first`, where a delete is below all, each does.
    A drained topic's versions that were archived before a tombstone of the own topic came before it too; above one of
    them it stands at its own place, which no late record of the drained topic reaches but by its order.
    """
    if plan.merge == "first":
        return tombstones.drop(NOTED_AFTER)
    versionless = F.col(HIDDEN_ROW) & (F.col(RANK_OFFSET) == F.col(FROM_OFFSET))
    columns = [*plan.key, *plan.order, RANK_PARTITION, RANK_OFFSET]
    candidates = rows.select(columns).union(standing.where(~versionless).select(columns))
    below = F.struct(*(F.col(f"c.{name}") for name in [*plan.order, RANK_PARTITION, RANK_OFFSET]))
    alongside = F.col(f"c.{RANK_PARTITION}") == F.col(f"t.{FROM_PARTITION}")
    drained = F.try_element_at(F.col(f"t.{NOTED_AFTER}"), F.col(f"c.{RANK_PARTITION}"))
    before = F.col(f"c.{RANK_OFFSET}") < F.when(alongside, F.col(f"t.{FROM_OFFSET}")).otherwise(drained)
    found = (
        tombstones.alias("t")
        .join(candidates.alias("c"), same_key(plan.key, "t.", "c.") & before, "left")
        .groupBy(*(F.col(f"t.{name}").alias(name) for name in [FROM_PARTITION, FROM_OFFSET, *plan.key]))
        .agg(F.max(F.when(F.col(f"c.{RANK_OFFSET}").isNotNull(), below)).alias(BELOW))
    )
    stands = F.col(BELOW)[RANK_PARTITION] == F.col(FROM_PARTITION)
    ranked = {
        **{name: F.lit(None).cast(type_) for name, type_ in plan.columns.items() if name not in plan.key},
        **{name: F.col(BELOW)[name] for name in plan.order},
        HIDDEN_ROW: F.lit(True),
        RANK_PARTITION: F.col(FROM_PARTITION),
        RANK_OFFSET: F.when(stands, F.col(BELOW)[RANK_OFFSET]).otherwise(F.col(FROM_OFFSET)),
    }
    return found.withColumns(ranked).select(rows.columns)


def winners(rows: DataFrame, plan: TransformPlan) -> DataFrame:
    """The version of each key that its merge rule keeps: the highest, or the lowest."""
    whole = F.struct(*rows.columns)
    match plan.merge:
        case "append":
            best = F.min_by(whole, rank(plan))
        case "first":
            best = F.min_by(whole, rank_first(plan))
        case _:
            best = F.max_by(whole, rank(plan))
    return rows.groupBy(*plan.key).agg(best.alias(BEST)).select(f"{BEST}.*")


def judge_appends(decoded: DataFrame, standing: DataFrame, plan: TransformPlan) -> DataFrame:
    """Mark as a conflict what has the key of a standing or an earlier row but other content."""
    types = field_types(plan.schema_type, json.loads(plan.reader))
    content = F.struct(*(comparable(F.col("row")[name], type_).alias(name) for name, type_ in types.items()))
    coordinates = F.struct("partition", "offset")
    keys = {name: F.col("row")[name] for name in plan.key}
    good = decoded.where(F.col("reason").isNull())
    firsts = good.groupBy(*(value.alias(name) for name, value in keys.items())).agg(
        F.min_by(content, coordinates).alias(FIRST)
    )
    stands = F.struct(*(comparable(F.col(name), type_).alias(name) for name, type_ in types.items()))
    known = standing.select(*plan.key, stands.alias(STANDS))
    held = (
        firsts.join(known, list(plan.key), "left")
        .withColumn(HELD, F.coalesce(STANDS, FIRST))
        .select(*(F.col(name).alias(f"{HELD}_{name}") for name in plan.key), HELD)
    )
    matches = reduce(Column.__and__, (value == F.col(f"{HELD}_{name}") for name, value in keys.items()))
    other = F.col("reason").isNull() & F.col(HELD).isNotNull() & ~content.eqNullSafe(F.col(HELD))
    judged = decoded.join(held, matches, "left")
    return judged.withColumn("reason", F.when(other, F.lit(Reason.CONFLICT.value)).otherwise(F.col("reason"))).select(
        decoded.columns
    )


def comparable(value: Column, type_: IcebergType) -> Column:
    """A value that can be compared: Spark compares no maps, and the order of their entries says nothing."""
    match type_:
        case MapType():
            return F.array_sort(F.transform(F.map_entries(value), lambda entry: _entry(entry, type_.value_type)))
        case ListType():
            return F.transform(value, lambda each: comparable(each, type_.element_type))
        case StructType(fields=fields):
            members = (comparable(value[field.name], field.field_type).alias(field.name) for field in fields)
            return F.when(value.isNotNull(), F.struct(*members))
    return value


def _entry(entry: Column, type_: IcebergType) -> Column:
    return F.struct(entry["key"].alias("key"), comparable(entry["value"], type_).alias("value"))


def same_key(key: Sequence[str], left: str, right: str) -> Column:
    return reduce(Column.__and__, (F.col(f"{left}{name}") == F.col(f"{right}{name}") for name in key))
