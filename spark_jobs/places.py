"""Places: which partitions of the clean table a batch touches, as a condition that leaves all others unread."""

from collections.abc import Iterable, Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.stages.transform import TransformPlan
from spark_jobs.conditions import any_of

MOST = 200
"""More stretches than this are joined into one: a condition has to stay readable to the planner."""


# Bounds travel as numbers: Python's datetimes know no year 10,000 and take an hour twice a year for another one.
def number(value: Column, type_: str) -> Column:
    """A date as days, a timestamp as microseconds since 1970."""
    return F.unix_date(value) if type_ == "date" else F.unix_micros(value.cast("timestamp"))


def moment(value: int, type_: str) -> Column:
    """The number as the field's own type again."""
    since = F.date_from_unix_date(F.lit(value)) if type_ == "date" else F.timestamp_micros(F.lit(value))
    return since.cast(type_)


def unit(value: Column, plan: TransformPlan) -> Column:
    """The first moment of the partition that a value of the partition field lies in, as a number."""
    assert plan.partition is not None, "only a partitioned table has places"
    type_ = plan.columns[plan.partition.field]
    return number(F.date_trunc(plan.partition.by, value.cast("timestamp")).cast(type_), type_)


def within(column: Column, units: Iterable[int | None], plan: TransformPlan) -> Column:
    """Whether a partition field's value lies in one of the partitions that begin at these numbers, or is null."""
    assert plan.partition is not None, "only a partitioned table has places"
    type_ = plan.columns[plan.partition.field]
    firsts = sorted(each for each in units if each is not None)
    if not firsts:
        return column.isNull()
    chosen = firsts if len(firsts) <= MOST else [firsts[0], firsts[-1]]
    ends = chosen if len(firsts) <= MOST else [firsts[-1]]
    stretches = zip(chosen, ends, strict=False)
    return any_of([*_stretches(stretches, column, type_=type_, plan=plan), column.isNull()])


def _stretches(
    stretches: Iterable[tuple[int, int]], column: Column, *, type_: str, plan: TransformPlan
) -> Iterator[Column]:
    assert plan.partition is not None, "only a partitioned table has places"
    for first, last in stretches:
        after = F.expr(f"interval 1 {plan.partition.by}")
        end = (moment(last, type_).cast("timestamp_ntz") + after).cast(type_)
        yield (column >= moment(first, type_)) & (column < end)
