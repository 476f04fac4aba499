"""Patching: every field has the newest value that is not null, and a delete takes what came before it.

What a row must remember for that is a state that can be joined with another in any order: the rank of each field's
value, of the newest version and of the newest delete. It lies in one hidden column, by the numbers of the columns.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyiceberg.types import IcebergType, StructType
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.clean import FROM_OFFSET, FROM_PARTITION, HIDDEN_ROW, PATCH, RANK_OFFSET, RANK_PARTITION
from headrace.columns import field_types
from headrace.stages.transform import TransformPlan
from spark_jobs.conditions import any_of
from spark_jobs.merging import COORDINATES, counts, rank
from spark_jobs.origins import is_gone

# Columns of our own begin as no field may, so that none takes the place of a feed's.
LEAF, TOP, DELETED, LAST, PARTITIONS = "_leaf_", "_top", "_deleted_at", "_last", "_partitions"


@dataclass(frozen=True)
class State:
    """What is known of a row, from a batch or from the table; any part may be null."""

    values: Mapping[int, Column]
    ranks: Mapping[int, Column]
    top: Column
    deleted: Column
    partitions: Column | None
    coordinates: Mapping[str, Column]
    """Of the record that ranks highest."""

    @property
    def rank(self) -> Column:
        return F.greatest(self.top, self.deleted)


def reduced(rows: DataFrame, plan: TransformPlan) -> DataFrame:
    """One state per key of a batch's versions and deletes, and how many records said what."""
    ranked, hidden = rank(plan), F.col(HIDDEN_ROW)
    leaves = [
        F.max_by(
            F.struct(value.alias("value"), ranked.alias("rank")), F.when(value.isNotNull() & ~hidden, ranked)
        ).alias(f"{LEAF}{number}")
        for number, value in _values(plan, "").items()
    ]
    last = F.max_by(F.struct(*COORDINATES), F.struct(ranked, -F.col(FROM_OFFSET)))
    found = rows.groupBy(*plan.key).agg(
        *leaves,
        F.max(F.when(~hidden, ranked)).alias(TOP),
        F.max(F.when(hidden, ranked)).alias(DELETED),
        last.alias(LAST),
        *counts(),
    )
    return found.join(_partitions(rows, plan), list(plan.key)) if plan.order else found


def _partitions(rows: DataFrame, plan: TransformPlan) -> DataFrame:
    """The highest order that each partition brought, as a map."""
    highest = rows.groupBy(*plan.key, FROM_PARTITION).agg(F.max(F.struct(*plan.order)).alias("highest"))
    entries = F.collect_list(F.struct(FROM_PARTITION, "highest"))
    return highest.groupBy(*plan.key).agg(F.map_from_entries(entries).alias(PARTITIONS))


def standing_orders(met: DataFrame, plan: TransformPlan) -> DataFrame:
    """What standing rows know of the versions before a tombstone: for each partition its highest order."""
    each = met.select(*plan.key, F.explode(f"{PATCH}.partitions").alias(FROM_PARTITION, "order"))
    order = (F.col("order")[name].alias(name) for name in plan.order if name not in plan.key)
    place = (F.col(FROM_PARTITION), F.lit(-1).cast("bigint").alias(FROM_OFFSET))
    ranked = (F.col(FROM_PARTITION).alias(RANK_PARTITION), F.lit(-1).cast("bigint").alias(RANK_OFFSET))
    return each.select(*plan.key, *order, *place, *ranked)


def of_batch(plan: TransformPlan, source: str) -> State:
    leaves = {number: F.col(f"{source}{LEAF}{number}") for number in _numbers(plan)}
    return State(
        values={number: leaf["value"] for number, leaf in leaves.items()},
        ranks={number: leaf["rank"] for number, leaf in leaves.items()},
        top=F.col(f"{source}{TOP}"),
        deleted=F.col(f"{source}{DELETED}"),
        partitions=F.col(f"{source}{PARTITIONS}") if plan.order else None,
        coordinates={name: F.col(f"{source}{LAST}")[name] for name in COORDINATES},
    )


def of_table(plan: TransformPlan, target: str, *, replaced: Column) -> State:
    """The standing row's state; where it is replaced, no more of it than cannot be made once more."""
    patch = F.col(f"{target}{PATCH}")
    state = State(
        values=_values(plan, target),
        ranks={
            number: F.coalesce(patch["fields"][number], implied) for number, implied in _implied(plan, target, patch)
        },
        top=patch["top"],
        deleted=patch["deleted"],
        partitions=patch["partitions"] if plan.order else None,
        coordinates={name: F.col(f"{target}{name}") for name in COORDINATES},
    )
    return _where(state, ~replaced) if not plan.gone else _left(state, replaced, plan)


def _where(state: State, counts: Column) -> State:
    return State(
        values={number: F.when(counts, value) for number, value in state.values.items()},
        ranks={number: F.when(counts, rank) for number, rank in state.ranks.items()},
        top=F.when(counts, state.top),
        deleted=F.when(counts, state.deleted),
        partitions=None if state.partitions is None else F.when(counts, state.partitions),
        coordinates={name: F.when(counts, each) for name, each in state.coordinates.items()},
    )


def _left(state: State, replaced: Column, plan: TransformPlan) -> State:
    """The state, where it is replaced only what records have set that the archive no longer has.

    What deleted the row stays in any case: a tombstone has its rank from versions that may be gone.
    """
    stays = {number: ~replaced | is_gone(rank, plan) for number, rank in state.ranks.items()}
    ranks = {number: F.when(stays[number], rank) for number, rank in state.ranks.items()}
    top = F.when(~replaced | is_gone(state.top, plan), state.top)
    highest = F.greatest(top, *ranks.values()) if ranks else top
    rank = F.greatest(highest, state.deleted)
    own = rank.eqNullSafe(state.rank)
    place = {FROM_PARTITION: RANK_PARTITION, FROM_OFFSET: RANK_OFFSET}
    held = state.partitions
    if held is not None:
        held = F.when(~replaced, held).otherwise(F.map_filter(held, lambda number, _: number.isin(*plan.gone)))
    return State(
        values={number: F.when(stays[number], value) for number, value in state.values.items()},
        ranks=ranks,
        top=highest,
        deleted=state.deleted,
        partitions=held,
        coordinates={
            name: F.when(own, each).otherwise(rank[place.get(name, name)]) for name, each in state.coordinates.items()
        },
    )


def _implied(plan: TransformPlan, target: str, patch: Column) -> Iterator[tuple[int, Column]]:
    """The rank of a value that no version has told: the default of a column that was added after the row.

    To whoever reads it now, each version from before says so, and the newest of them last. Inside a record only those
    say so that have the record.
    """
    values = _values(plan, target)
    for number, value in values.items():
        path = plan.leaves[number]
        beside = [each for each in values if each != number and plan.leaves[each][:-1] == path[:-1]]
        told = [patch["fields"][each] for each in beside] if len(path) > 1 else []
        newest = reduce(F.greatest, told) if told else patch["top"]
        yield number, F.when(value.isNotNull(), F.coalesce(newest, patch["top"]))


def joined(new: State, old: State) -> State:
    """Both together: of each field the newer value, and none from before the newest delete."""
    deleted = F.greatest(new.deleted, old.deleted)
    values, ranks = {}, {}
    for number in new.values:
        newest = F.greatest(new.ranks[number], old.ranks[number])
        lives = deleted.isNull() | (newest > deleted)
        value = F.when(_is_newer(new.ranks[number], old.ranks[number]), new.values[number])
        values[number] = F.when(lives, value.otherwise(old.values[number]))
        ranks[number] = F.when(lives, newest)
    is_newer = _is_newer(new.rank, old.rank)
    return State(
        values,
        ranks,
        F.greatest(new.top, old.top),
        deleted,
        _highest(new.partitions, old.partitions),
        {name: F.when(is_newer, each).otherwise(old.coordinates[name]) for name, each in new.coordinates.items()},
    )


def _is_newer(new: Column, old: Column) -> Column:
    return new.isNotNull() & (old.isNull() | (new > old))


def _highest(new: Column | None, old: Column | None) -> Column | None:
    if new is None or old is None:
        return None
    both = F.map_zip_with(new, old, lambda _, one, other: F.greatest(one, other))
    return F.coalesce(both, new, old)


def is_hidden(state: State) -> Column:
    """Whether nothing came after the newest delete."""
    return F.coalesce(state.deleted.isNotNull() & (state.top.isNull() | (state.top < state.deleted)), F.lit(False))


def row(state: State, plan: TransformPlan, *, key: str) -> dict[str, Column]:
    """The columns of a state's row."""
    numbers = {tuple(path): number for number, path in plan.leaves.items()}
    types = field_types(plan.schema_type, json.loads(plan.reader))
    return {
        name: F.col(f"{key}{name}") if name in plan.key else _whole((name,), type_, numbers, values=state.values)
        for name, type_ in types.items()
    }


def _whole(
    path: tuple[str, ...], type_: IcebergType, numbers: Mapping[tuple[str, ...], int], *, values: Mapping[int, Column]
) -> Column:
    """A value made of its leaves; a struct without any value is null."""
    if path in numbers:
        return values[numbers[path]]
    assert isinstance(type_, StructType), "only a struct has leaves inside"
    members = {
        field.name: _whole((*path, field.name), field.field_type, numbers, values=values) for field in type_.fields
    }
    some = any_of(member.isNotNull() for member in members.values())
    return F.when(some, F.struct(*(member.alias(name) for name, member in members.items())))


def memory(state: State) -> Column:
    """A state as the hidden column keeps it."""
    entries = F.array(
        *(F.struct(F.lit(number).alias("key"), each.alias("value")) for number, each in state.ranks.items())
    )
    known = F.filter(entries, lambda entry: entry["value"].isNotNull())
    parts = {"top": state.top, "deleted": state.deleted, "fields": F.map_from_entries(known)}
    if state.partitions is not None:
        parts["partitions"] = state.partitions
    return F.struct(*(part.alias(name) for name, part in parts.items()))


def same(one: Column, other: Column, plan: TransformPlan) -> Column:
    """Whether two memories are the same; Spark compares no maps."""
    maps = ["fields", *(["partitions"] if plan.order else [])]
    pairs = [one[name].eqNullSafe(other[name]) for name in ("top", "deleted")]
    pairs += [_entries(one[name]).eqNullSafe(_entries(other[name])) for name in maps]
    return reduce(Column.__and__, pairs)


def _entries(value: Column) -> Column:
    return F.array_sort(F.map_entries(value))


def _numbers(plan: TransformPlan) -> list[int]:
    return [number for number, path in plan.leaves.items() if path[0] not in plan.key]


def _values(plan: TransformPlan, qualifier: str) -> dict[int, Column]:
    return {number: _member(qualifier, plan.leaves[number]) for number in _numbers(plan)}


def _member(qualifier: str, path: Sequence[str]) -> Column:
    return reduce(lambda value, name: value[name], path[1:], F.col(f"{qualifier}{path[0]}"))
