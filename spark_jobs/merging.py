"""Merging: versions to one row per key, by one total order, so that no split into batches can change the result."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from headrace.clean import BOTTOM, CONTENT, FROM_OFFSET, FROM_PARTITION, HIDDEN_ROW, RANK_OFFSET, RANK_PARTITION
from headrace.record import AFTER
from headrace.stages.transform import TransformPlan
from spark_jobs.conditions import any_of
from spark_jobs.content import content
from spark_jobs.origins import IMPORTED, is_from_elsewhere

# Columns of our own begin as no field may, so that none takes the place of a feed's.
BELOW, BEST, NOTED_AFTER, COPY = "_below", "_best", "_after", "_copy"
COUNTED, RECORDS, CONTENTS = "_counted", "_records", "_contents"
NOTHING = 0
"""The content of a hidden row."""
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
        F.when(hidden, F.lit(NOTHING)).otherwise(content(row, plan)).alias(CONTENT),
        F.lit(True).alias(COUNTED),
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
    """Whether a new row takes the place of the standing one: by its rank, or as the same record read otherwise."""
    itself = (
        F.struct(*(F.col(f"{source}{name}") for name in COORDINATES))
        == F.struct(*(F.col(f"{target}{name}") for name in COORDINATES))
    ) & ~F.col(f"{source}{CONTENT}").eqNullSafe(F.col(f"{target}{CONTENT}"))
    match plan.merge:
        case "append":
            return itself
        case "first":
            return itself | (rank_first(plan, source) < rank_first(plan, target))
    return itself | (rank(plan, source) > rank(plan, target))


def told_apart(tombstones: DataFrame, plan: TransformPlan) -> DataFrame:
    """Tombstones that may be copies of each other, numbered, so that each is counted: they rank alike."""
    same = Window.partitionBy(*plan.key, *COORDINATES).orderBy(RANK_OFFSET)
    return tombstones.withColumn(COPY, F.row_number().over(same))


def ranked_tombstones(
    tombstones: DataFrame, rows: DataFrame, standing: DataFrame, *, plan: TransformPlan, counted: bool = True
) -> DataFrame:
    """Each tombstone with the order fields of the highest version of its key before it, and its own coordinates.

    That version may be in this batch, be the standing row, or be what a standing tombstone has taken its order from.
    Nothing of its key lies between the two, so it ranks just above. Without order fields its coordinates are all, and
    in `first` a delete is below all. A record imported, or replayed from another topic, came before a tombstone that
    follows it in its partition; a drained topic's when the archive has noted so; between two records replayed from
    another topic, their places there decide.
    """
    if plan.merge == "first" or not plan.order:
        return tombstones.drop(NOTED_AFTER, COPY)
    columns = [*plan.key, *plan.order, *COORDINATES]
    candidates = rows.select(columns).union(standing.select(columns))
    below = F.struct(*(F.col(f"c.{name}") for name in plan.order))
    each = [name for name in [*plan.key, *COORDINATES, COPY] if name in tombstones.columns]
    found = (
        tombstones.alias("t")
        .join(candidates.alias("c"), same_key(plan.key, "t.", "c.") & _is_before("c.", "t."), "left")
        .groupBy(*(F.col(f"t.{name}").alias(name) for name in each))
        .agg(F.max(F.when(F.col(f"c.{RANK_OFFSET}").isNotNull(), below)).alias(BELOW))
    )
    ranked = {
        **{name: F.lit(None).cast(type_) for name, type_ in plan.columns.items() if name not in plan.key},
        **{name: F.col(BELOW)[name] for name in plan.order if name not in plan.key},
        HIDDEN_ROW: F.lit(True),
        CONTENT: F.lit(NOTHING),
        COUNTED: F.lit(counted),
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
    imported = above.cast("bigint") + IMPORTED
    return F.when(is_from_elsewhere(above), place.isin(above, imported) & in_turn).otherwise(before)


def standing_tombstones(rows: DataFrame, standing: DataFrame, plan: TransformPlan) -> DataFrame:
    """The tombstones that stand where replayed versions came before them, ranked anew.

    A version that was in quarantine until it was mended may come after a tombstone that once followed it, and so may
    one from another topic, of which slices are replayed in any order.
    """
    tombstone = F.col(HIDDEN_ROW) & (F.col(RANK_PARTITION) != BOTTOM)
    if plan.delete is not None:
        # A version that deletes ranks by its own order; it cannot be told from a tombstone that has taken one.
        tombstone &= reduce(Column.__and__, (F.col(name).isNull() for name in plan.order), F.lit(True))
    met = standing.where(tombstone)
    nothing = F.lit(None).cast("map<int, bigint>").alias(NOTED_AFTER)
    known = (name for name in rows.columns if name != COUNTED)
    bare = {name: F.lit(None).cast(type_) for name, type_ in plan.columns.items() if name not in met.columns}
    tombstones = met.withColumns({**bare, COUNTED: F.lit(False)}).select(*known, COUNTED, nothing)
    return ranked_tombstones(tombstones, rows, standing, plan=plan, counted=False)


def reduced(rows: DataFrame, plan: TransformPlan) -> DataFrame:
    """One row per key, the version that its merge rule keeps, and how many records said what."""
    whole = F.struct(*(name for name in rows.columns if name != COUNTED))
    match plan.merge:
        case "append":
            best = F.min_by(whole, F.struct(RANK_PARTITION, RANK_OFFSET, FROM_OFFSET))
        case "first":
            best = F.min_by(whole, rank_first(plan))
        case _:
            # Of two copies of one record the earlier stays, as it does when it stands already.
            best = F.max_by(whole, F.struct(rank(plan), -F.col(FROM_OFFSET)))
    return rows.groupBy(*plan.key).agg(best.alias(BEST), *counts()).select(f"{BEST}.*", RECORDS, CONTENTS)


def counts() -> tuple[Column, Column]:
    """How many records a key has, and what they say."""
    return (
        F.count_if(COUNTED).alias(RECORDS),
        F.collect_set(F.when(F.col(COUNTED), F.col(CONTENT))).alias(CONTENTS),
    )


def same_key(key: Sequence[str], left: str, right: str) -> Column:
    return reduce(Column.__and__, (F.col(f"{left}{name}") == F.col(f"{right}{name}") for name in key))
