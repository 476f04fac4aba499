"""Stretches: the parts of a key's range in which a batch's keys lie, so that statistics of files leave out the rest."""

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise

from pyiceberg.types import IntegerType, LongType, StringType
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.columns import field_types
from headrace.stages.transform import TransformPlan
from spark_jobs.conditions import any_of

Key = str | int
Stretch = tuple[Key, Key]
"""The lowest and the highest key of a part; both belong to it."""

MOST = 8
"""A row is compared with each, so they have to stay few."""

LOOKED_AT = 50_000
"""Of more keys than this only the lowest and the highest are asked for."""

DIGITS = 8
"""So many bytes after what all keys begin with tell how far they are apart."""


def of_keys(keys: DataFrame, plan: TransformPlan, *, count: int) -> list[Stretch]:
    """Where the first field of these keys lies; nothing where its statistics would not tell."""
    if not isinstance(field_types(plan.schema_type, json.loads(plan.reader))[plan.key[0]], _ORDERED):
        return []
    first = F.col(plan.key[0])
    if count > LOOKED_AT:
        # What lies between the two is not known, so it is one stretch.
        row = keys.agg(F.min(first), F.max(first)).first()
        return [] if row is None or row[0] is None else [(row[0], row[1])]
    return stretches(row[0] for row in keys.select(first).distinct().collect())


# Iceberg orders uuids in its own way, and of other types keys are seldom made.
_ORDERED = (StringType, IntegerType, LongType)


def stretches(keys: Iterable[Key]) -> list[Stretch]:
    """The keys' range, without the parts in which there are none for an eighth of it or more."""
    ordered: list[Key] = sorted(keys)
    if not ordered:
        return []
    numbers = _numbers(ordered)
    wide = (numbers[-1] - numbers[0]) / MOST
    ends = [at for at, (one, next_) in enumerate(pairwise(numbers)) if next_ - one > wide]
    firsts, lasts = [0, *(at + 1 for at in ends)], [*ends, len(ordered) - 1]
    return [(ordered[first], ordered[last]) for first, last in zip(firsts, lasts, strict=True)]


def _numbers(ordered: Sequence[Key]) -> list[int]:
    """Keys as numbers whose differences tell how far they are apart; those of texts, roughly."""
    if isinstance(ordered[0], int):
        return [int(each) for each in ordered]
    texts = [str(each).encode() for each in ordered]
    pairs = zip(texts[0], texts[-1], strict=False)
    start = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(texts[0]), len(texts[-1])))
    return [int.from_bytes(each[start : start + DIGITS].ljust(DIGITS, b"\0"), "big") for each in texts]


def within(column: Column, stretches_: Sequence[Stretch]) -> Column:
    """Whether a key may be among those that the stretches were made of."""
    return any_of(column.between(*stretch) for stretch in stretches_) if stretches_ else F.lit(True)
