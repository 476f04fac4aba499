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
from spark_jobs.origins import IMPORTED, is_from_elsewhere

# Columns of our own begin as no field may, so that none takes the place of a feed's.
BELOW, BEST, FIRST, STANDS, HELD, NOTED_AFTER = "_below", "_best", "_first", "_stands", "_held", "_after"
STANDS_FROM = "_stands_from"
COORDINATES = {
    FROM_PARTITION: "partition",
    FROM_OFFSET: "offset",
    RANK_PARTITION: "rank_partition",
    RANK_OFFSET: "rank_offset",
}


def versions(good: DataFrame, plan: TransformPlan, *notes: Column) -> DataFrame:
    """Decoded records as rows of the clean table, each with the coordinates that rank it and what else is noted of it.

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
    return F.struct(*(F.col(f"{qualifier}{name}") for name in [*plan.order, RANK_PARTITION, RANK_OFFSET]))


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
    """Each tombstone with the order fields of the highest version of its key before it, and its own coordinates.

    That version may be in this batch, be the standing row, or be what a standing tombstone has taken its order from.
    Nothing of its key lies between the two, so it ranks just above. Without order fields its coordinates are all, and
    in `first` a delete is below all. A record imported, or replayed from another topic, came before a tombstone that
    follows it in its partition; a drained topic's when the archive has noted so; between two records replayed from
    another topic, their places there decide.
    """
    if plan.merge == "first" or not plan.order:
        return tombstones.drop(NOTED_AFTER)
    columns = [*plan.key, *plan.order, *COORDINATES]
    candidates = rows.select(columns).union(standing.select(columns))
    below = F.struct(*(F.col(f"c.{name}") for name in plan.order))
    found = (
        tombstones.alias("t")
        .join(candidates.alias("c"), same_key(plan.key, "t.", "c.") & _is_before("c.", "t."), "left")
        .groupBy(*(F.col(f"t.{name}").alias(name) for name in [*plan.key, *COORDINATES]))
        .agg(F.max(F.when(F.col(f"c.{RANK_OFFSET}").isNotNull(), below)).alias(BELOW))
    )
    ranked = {
        **{name: F.lit(None).cast(type_) for name, type_ in plan.columns.items() if name not in plan.key},
        **{name: F.col(BELOW)[name] for name in plan.order if name not in plan.key},
        HIDDEN_ROW: F.lit(True),
    }
    return found.withColumns(ranked).select(rows.columns)


def _is_before(version: str, tombstone: str) -> Column:
    """Whether a version came before a tombstone; a tombstone's own row does too, for its order still holds."""
    from_partition, from_offset = F.col(f"{version}{FROM_PARTITION}"), F.col(f"{version}{FROM_OFFSET}")
    alongside = from_partition == F.col(f"{tombstone}{FROM_PARTITION}")
    noted = F.try_element_at(F.col(f"{tombstone}{NOTED_AFTER}"), from_partition)
    before = (alongside & (from_offset <= F.col(f"{tombstone}{FROM_OFFSET}"))) | F.coalesce(
        from_offset < noted, F.lit(False)
    )
    place, above = F.col(f"{version}{RANK_PARTITION}"), F.col(f"{tombstone}{RANK_PARTITION}")
    in_turn = F.col(f"{version}{RANK_OFFSET}") <= F.col(f"{tombstone}{RANK_OFFSET}")
    return F.when(is_from_elsewhere(above), place.isin(above, above + IMPORTED) & in_turn).otherwise(before)


def standing_tombstones(rows: DataFrame, standing: DataFrame, plan: TransformPlan) -> DataFrame:
    """The tombstones that stand where replayed versions came before them, ranked anew.

    A version that was in quarantine until it was mended may come after a tombstone that once followed it, and so may
    one from another topic, of which slices are replayed in any order.
    """
    tombstone = F.col(HIDDEN_ROW)
    if plan.delete is not None:
        # A version that deletes ranks by its own order; it cannot be told from a tombstone that has taken one.
        tombstone &= reduce(Column.__and__, (F.col(name).isNull() for name in plan.order), F.lit(True))
    met = standing.where(tombstone).join(rows.select(*plan.key).distinct(), list(plan.key), "left_semi")
    nothing = F.lit(None).cast("map<int, bigint>").alias(NOTED_AFTER)
    return ranked_tombstones(met.select(*rows.columns, nothing), rows, standing, plan)


def winners(rows: DataFrame, plan: TransformPlan) -> DataFrame:
    """The version of each key that its merge rule keeps: the highest, or the lowest."""
    whole = F.struct(*rows.columns)
    match plan.merge:
        case "append":
            best = F.min_by(whole, F.struct(FROM_PARTITION, FROM_OFFSET))
        case "first":
            best = F.min_by(whole, rank_first(plan))
        case _:
            # Of two copies of one record the earlier stays, as it does when it stands already.
            best = F.max_by(whole, F.struct(rank(plan), -F.col(FROM_OFFSET)))
    return rows.groupBy(*plan.key).agg(best.alias(BEST)).select(f"{BEST}.*")


def judge_appends(decoded: DataFrame, standing: DataFrame, plan: TransformPlan) -> DataFrame:
    """Mark as a conflict what has the key of a standing or an earlier row but other content.

    A copy of the standing row's own record is none, though a later version of the schema may read it otherwise.
    """
    types = field_types(plan.schema_type, json.loads(plan.reader))
    content = F.struct(*(comparable(F.col("row")[name], type_).alias(name) for name, type_ in types.items()))
    coordinates = F.struct("partition", "offset")
    keys = {name: F.col("row")[name] for name in plan.key}
    good = decoded.where(F.col("reason").isNull())
    firsts = good.groupBy(*(value.alias(name) for name, value in keys.items())).agg(
        F.min_by(content, coordinates).alias(FIRST)
    )
    stands = F.struct(*(comparable(F.col(name), type_).alias(name) for name, type_ in types.items()))
    place = F.struct(F.col(FROM_PARTITION).alias("partition"), F.col(FROM_OFFSET).alias("offset"))
    known = standing.select(*plan.key, stands.alias(STANDS), place.alias(STANDS_FROM))
    held = (
        firsts.join(known, list(plan.key), "left")
        .withColumn(HELD, F.coalesce(STANDS, FIRST))
        .select(*(F.col(name).alias(f"{HELD}_{name}") for name in plan.key), HELD, STANDS_FROM)
    )
    matches = reduce(Column.__and__, (value == F.col(f"{HELD}_{name}") for name, value in keys.items()))
    itself = coordinates.eqNullSafe(F.col(STANDS_FROM))
    other = F.col("reason").isNull() & F.col(HELD).isNotNull() & ~content.eqNullSafe(F.col(HELD)) & ~itself
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
