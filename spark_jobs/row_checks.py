"""Row checks: what a record must meet by itself, or it is rejected before it is merged."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.declaration import Check
from headrace.stages.transform import TransformPlan
from spark_jobs.conditions import any_of


def detail(plan: TransformPlan) -> Column:
    """Which check a row breaks, the first one declared; null when it breaks none."""
    broken = F.lit(None).cast("string")
    for check in reversed(plan.checks):
        broken = F.when(_breaks(check, plan), F.lit(told(check))).otherwise(broken)
    return broken


def told(check: Check) -> str:
    """A check in words, from the feed file alone."""
    match check:
        case Check(between=(low, high)):
            return f"{check.column}: between {low} and {high}"
        case Check(one_of=list(values)):
            return f"{check.column}: one of {', '.join(map(str, values))}"
        case Check(matches=str(pattern)):
            return f"{check.column}: matches {pattern}"
    return f"{check.column}: not null"


def _breaks(check: Check, plan: TransformPlan) -> Column:
    """Null meets every check but the one that refuses it, as Great Expectations has it."""
    name = check.column or ""
    value, type_ = F.col("row")[name], plan.columns[name]
    match check:
        case Check(between=(low, high)):
            broken = ~value.between(_literal(low, type_), _literal(high, type_))
        case Check(one_of=list(values)):
            broken = ~_is_any(value, values, type_=type_)
        case Check(matches=str(pattern)):
            broken = ~F.rlike(value.cast("string"), F.lit(pattern))
        case _:
            return value.isNull()
    return F.coalesce(broken, F.lit(False))


def _is_any(value: Column, values: Sequence[object], *, type_: str) -> Column:
    return any_of(value == _literal(each, type_) for each in values)


def _literal(value: object, type_: str) -> Column:
    """A value of the feed file in the column's own type; numbers stay as they are, for 0.5 is no whole number."""
    return F.lit(value) if isinstance(value, int | float) else F.lit(value).try_cast(type_)
