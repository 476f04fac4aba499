"""Deciding: what becomes of each key of a batch beside the row that stands, and the accounts of it."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.clean import CHANGED, CONTENT, HIDDEN_ROW, PATCH, RANK_OFFSET
from headrace.stages.transform import TransformPlan
from spark_jobs import merging, patching, places
from spark_jobs.content import content
from spark_jobs.merging import CONTENTS, COORDINATES, NOTHING, RECORDS, same_key

# Columns of our own begin as no field may, so that none takes the place of a feed's.
REPLACES, OUTCOME, WRITES, STOOD, PLACE = "_replaces", "_outcome", "_writes", "_stood", "_place"
SEEN = "_seen"

NOTES = (RECORDS, CONTENTS, REPLACES, OUTCOME, WRITES, STOOD, PLACE, f"{STOOD}{CONTENT}")
"""What is known of a row and is not written."""

OUTCOMES = ("inserted", "updated", "deleted")


def decided(fresh: DataFrame, met: DataFrame, plan: TransformPlan) -> DataFrame:
    """Each key's row as it shall be, whether it is to be written, and what readers will see of that."""
    both = fresh.alias("s").join(met.alias("t"), same_key(plan.key, "s.", "t."), "left")
    row, writes = (_patched if plan.merge == "patch" else _chosen)(plan)
    stood = F.col(f"t.{RANK_OFFSET}").isNotNull()
    place = places.unit(F.col(f"t.{plan.partition.field}"), plan) if plan.partition else F.lit(None).cast("bigint")
    rows = both.select(
        *(each.alias(name) for name, each in row.items()),
        *(F.col(f"s.{name}") for name in (RECORDS, CONTENTS)),
        *(F.col(f"t.{name}").alias(f"{STOOD}{name}") for name in (CONTENT, CHANGED)),
        (stood & ~F.col(f"t.{HIDDEN_ROW}")).alias(SEEN),
        stood.alias(STOOD),
        place.alias(PLACE),
        writes.alias(WRITES),
    )
    if plan.merge == "patch":
        # Of the columns and not of what they are made of, which is long: Spark would plan with each of its copies.
        said = content({name: F.col(name) for name in plan.columns}, plan)
        rows = rows.withColumn(CONTENT, F.when(F.col(HIDDEN_ROW), F.lit(NOTHING)).otherwise(said))
    return _told(rows, [*row, CONTENT], plan)


def _told(rows: DataFrame, names: list[str], plan: TransformPlan) -> DataFrame:
    """The rows with what readers will see of them."""
    seen, shown = F.col(SEEN), ~F.col(HIDDEN_ROW)
    same = F.col(f"{STOOD}{CONTENT}").eqNullSafe(F.col(CONTENT))
    outcome = (
        F.when(~F.col(WRITES), None)
        .when(shown & ~seen, F.lit("inserted"))
        .when(shown & ~same, F.lit("updated"))
        .when(~shown & (seen | ~F.col(STOOD)), F.lit("deleted"))
    )
    # What only ranks otherwise now is written, but nothing that reads changes has to look at it.
    changed = F.when(outcome.isNotNull(), F.lit(plan.change)).otherwise(F.col(f"{STOOD}{CHANGED}"))
    notes = (RECORDS, CONTENTS, f"{STOOD}{CONTENT}", STOOD, PLACE, WRITES)
    return rows.select(*dict.fromkeys(names), changed.cast("bigint").alias(CHANGED), *notes, outcome.alias(OUTCOME))


def _chosen(plan: TransformPlan) -> tuple[dict[str, Column], Column]:
    """One of the two rows, whole."""
    names = [*plan.columns, HIDDEN_ROW, *COORDINATES, CONTENT]
    row = {name: F.col(f"s.{name}") for name in names}
    row |= {name: F.lit(None).cast(type_) for name, type_ in plan.dropped.items()}
    differs = ~F.struct(*_identity(plan, "s.")).eqNullSafe(F.struct(*_identity(plan, "t.")))
    wins = merging.wins(plan, "s.", "t.") | F.col(f"t.{RANK_OFFSET}").isNull()
    return row, F.when(F.col(f"s.{REPLACES}"), differs).otherwise(wins)


def _identity(plan: TransformPlan, qualifier: str) -> list[Column]:
    """What tells a row; a tombstone that has taken its order from another version is another one."""
    names = dict.fromkeys([*plan.order, *COORDINATES, CONTENT, HIDDEN_ROW])
    return [F.col(f"{qualifier}{name}").alias(name) for name in names]


def _patched(plan: TransformPlan) -> tuple[dict[str, Column], Column]:
    """The two together, field by field."""
    old = patching.of_table(plan, "t.", replaced=F.col(f"s.{REPLACES}"))
    state = patching.joined(patching.of_batch(plan, "s."), old)
    values, hidden = patching.row(state, plan, key="s."), patching.is_hidden(state)
    row = {
        **values,
        HIDDEN_ROW: hidden,
        **state.coordinates,
        PATCH: patching.memory(state),
        # A version that has no such field any more says nothing of it.
        **{name: F.col(f"t.{name}") for name in plan.dropped},
    }
    return row, ~F.coalesce(patching.same(row[PATCH], F.col(f"t.{PATCH}"), plan), F.lit(False))


@dataclass(frozen=True)
class Summary:
    """What became of a batch's good records, each counted once, and where what is written lies."""

    accounts: dict[str, int]
    written: int
    stood: int
    """How many of those take the place of a standing row."""
    places: list[int]
    """The partitions of these rows."""


def summary(rows: DataFrame) -> Summary:
    """Look over what was decided once."""
    counted, happened = F.col(RECORDS) > 0, F.col(OUTCOME).isNotNull()
    known = F.coalesce(F.array_contains(CONTENTS, F.col(f"{STOOD}{CONTENT}")), F.lit(False)).cast("int")
    said, replaced = F.size(CONTENTS), F.col(WRITES) & F.col(STOOD)
    found = rows.agg(
        F.sum(F.col(RECORDS) - said + known).alias("duplicates"),
        F.sum(said - known - (counted & happened).cast("int")).alias("superseded"),
        *(F.count_if(counted & (F.col(OUTCOME) == name)).alias(name) for name in OUTCOMES),
        F.count_if(~counted & happened).alias("withdrawn"),
        F.count_if(WRITES).alias(WRITES),
        F.count_if(replaced).alias(STOOD),
        F.collect_set(F.when(replaced, F.col(PLACE))).alias(PLACE),
    ).first()
    assert found is not None, "an aggregate without groups gives one row"
    figures = found.asDict()
    written, stood, touched = (figures.pop(name) for name in (WRITES, STOOD, PLACE))
    return Summary({name: int(count or 0) for name, count in figures.items()}, written, stood, touched)
