"""Conditions: many of them joined into one that is not deep."""

from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F


def any_of(conditions: Iterable[Column]) -> Column:
    """Whether one of them holds; joined in pairs, for Spark Connect takes no plan that nests a hundred deep."""
    rest = list(conditions) or [F.lit(False)]
    while len(rest) > 1:
        pairs = zip(rest[::2], rest[1::2], strict=False)
        rest = [one | other for one, other in pairs] + rest[len(rest) - len(rest) % 2 :]
    return rest[0]


def lies_in(partition: Column, offset: Column, spans: Mapping[int, Iterable[tuple[int, int]]]) -> Column:
    """Whether coordinates lie in one of the spans, offsets `[first, next)` by partition."""
    return any_of(
        (partition == number) & (offset >= first) & (offset < next_)
        for number, each in spans.items()
        for first, next_ in each
    )
