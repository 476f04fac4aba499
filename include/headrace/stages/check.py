"""Check: the expectations that a run's rows must meet before anyone sees them, derived from the schema and declared."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace import away, effort, layout
from headrace.columns import Column, columns
from headrace.constraints import Bound, Constraint, constraints
from headrace.declaration import Check
from headrace.errors import CheckError
from headrace.expectations import named_columns
from headrace.feed import Feed
from headrace.lake import Lake
from headrace.outcome import Expectation, Outcome
from headrace.stages.publish import is_whole, moved
from headrace.stages.transform import spark_name

Named = tuple[str, dict[str, Any]]
"""An expectation's name and its arguments."""

PLAIN = (StringType, LongType, DoubleType, BooleanType)
"""Columns whose values are those that an enum lists; not those of types that are texts with a meaning."""

NUMBERS = (LongType, DoubleType)

SPARK_TYPES: Mapping[type[IcebergType], list[str]] = {
    BooleanType: ["BooleanType"],
    IntegerType: ["IntegerType", "LongType"],
    LongType: ["LongType"],
    FloatType: ["FloatType", "DoubleType"],
    DoubleType: ["DoubleType"],
    DecimalType: ["DecimalType"],
    DateType: ["DateType"],
    TimestampType: ["TimestampNTZType"],
    TimestamptzType: ["TimestampType"],
    StringType: ["StringType"],
    UUIDType: ["StringType"],
    FixedType: ["BinaryType"],
    BinaryType: ["BinaryType"],
    StructType: ["StructType"],
    ListType: ["ArrayType"],
    MapType: ["MapType"],
}
"""What Spark calls each type, and those that it may be widened to."""


ADVICE = "Mend the cause and clear the transform task, or publish anyway under Required Actions."
"""What to do about a run that its checks stopped."""


class CheckPlan(BaseModel):
    """Which rows of which branch are checked, and for what."""

    model_config = ConfigDict(frozen=True)

    feed: str
    clean: str
    branch: str
    snapshot: int
    base: int
    """What readers see meanwhile."""
    since: int
    """The sequence number of what they see: rows with a larger change number are the run's."""
    suite: list[Expectation]
    key: list[str] = []
    """The fields by which a failed row is told; none where that would show personal data."""
    small: bool = False
    """Whether so little is read that its queries are not worth compiling."""


def suite(feed: Feed) -> list[Expectation]:
    """Everything that the schema implies and the feed declares."""
    derived = [
        Expectation(name=name, arguments=arguments, origin="schema", personal=_is_personal(arguments, feed))
        for name, arguments in _derived(feed)
    ]
    return [*derived, *(_declared(check, feed) for check in feed.declaration.checks)]


def shown_key(feed: Feed) -> list[str]:
    """The fields that a row may be told by; none where one of them is personal."""
    return [] if feed.personal & set(feed.declaration.key) else list(feed.declaration.key)


def _is_personal(arguments: Mapping[str, Any], feed: Feed) -> bool:
    return any(name in feed.personal for _, name in named_columns(arguments))


def _derived(feed: Feed) -> Iterator[Named]:
    key, limits = feed.declaration.key, constraints(feed)
    yield _unique(key)
    for column in columns(feed):
        name = {"column": column.name}
        yield "expect_column_values_to_be_in_type_list", {**name, "type_list": _types(column.type)}
        if column.required or column.name in key:
            yield "expect_column_values_to_not_be_null", name
        for expectation, arguments in _constrained(column, limits.get(column.name, Constraint())):
            yield expectation, {**name, **arguments}


def _unique(names: Sequence[str]) -> Named:
    if len(names) == 1:
        return "expect_column_values_to_be_unique", {"column": names[0]}
    return "expect_compound_columns_to_be_unique", {"column_list": list(names)}


def _types(type_: IcebergType) -> list[str]:
    """The types that Spark may read a column as: a table that was widened once stays so."""
    return next(names for kind, names in SPARK_TYPES.items() if isinstance(type_, kind))


def _constrained(column: Column, limit: Constraint) -> Iterator[Named]:
    """What a schema says of values holds of a column where that has them as they came: a date is no longer a text."""
    kind = type(column.type)
    if limit.symbols and kind in PLAIN:
        yield "expect_column_values_to_be_in_set", {"value_set": list(limit.symbols)}
    if kind in NUMBERS and (limit.low or limit.high):
        yield "expect_column_values_to_be_between", {**_end("min", limit.low), **_end("max", limit.high)}
    if kind is not StringType:
        return
    if limit.shortest is not None or limit.longest is not None:
        lengths = {"min_value": limit.shortest, "max_value": limit.longest}
        yield "expect_column_value_lengths_to_be_between", _given(lengths)
    if limit.pattern is not None:
        yield "expect_column_values_to_match_regex", {"regex": limit.pattern}


def _end(which: str, bound: Bound | None) -> dict[str, Any]:
    if bound is None:
        return {}
    return {f"{which}_value": bound.value, **({f"strict_{which}": True} if bound.strict else {})}


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _declared(check: Check, feed: Feed) -> Expectation:
    name, arguments = _form(check)
    column = {"column": check.column} if check.column else {}
    every = {**column, **arguments, **_given({"mostly": check.mostly})}
    return Expectation(name=name, arguments=every, severity=check.severity, personal=_is_personal(every, feed))


def _form(check: Check) -> Named:
    match check:
        case Check(between=(low, high)):
            return "expect_column_values_to_be_between", {"min_value": low, "max_value": high}
        case Check(one_of=list(values)):
            return "expect_column_values_to_be_in_set", {"value_set": values}
        case Check(matches=str(pattern)):
            return "expect_column_values_to_match_regex", {"regex": pattern}
        case Check(not_null=True):
            return "expect_column_values_to_not_be_null", {}
        case Check(unique=True):
            return "expect_column_values_to_be_unique", {}
        case Check(unique=list(names)):
            return _unique(names)
        case Check(length=(low, high)):
            return "expect_column_value_lengths_to_be_between", _given({"min_value": low, "max_value": high})
        case Check(row_count=(low, high)):
            return "expect_table_row_count_to_be_between", _given({"min_value": low, "max_value": high})
        case Check(expect=str(name), arguments=arguments):
            return name, arguments
    raise AssertionError("the declaration lets exactly one form through")


@away.tells
def plan(feed: Feed, *, lake: Lake, run: str) -> CheckPlan | None:
    """The rows that the run's branch changed; None when it changed none. Raises when they must be merged again."""
    table, branch = lake.find(layout.clean_table(feed.name)), layout.branch(run)
    if table is None or branch not in table.metadata.refs:
        return None
    snapshot, base = table.metadata.refs[branch].snapshot_id, table.current_snapshot()
    if base is None or base.snapshot_id == snapshot:
        return None
    if not is_whole(table, snapshot):
        raise moved(feed)
    return CheckPlan(
        feed=feed.name,
        clean=spark_name(lake.name, layout.clean_table(feed.name)),
        branch=branch,
        snapshot=snapshot,
        base=base.snapshot_id,
        since=base.sequence_number or 0,
        suite=suite(feed),
        key=shown_key(feed),
        small=effort.is_small([table.snapshot_by_id(snapshot)]),
    )


def stopping(outcomes: Iterable[Outcome], *, approved: Collection[str] = ()) -> list[Outcome]:
    """The outcomes that keep a run from being published: failed, not only warning, and not approved by anybody."""
    return [
        outcome
        for outcome in outcomes
        if not outcome.success
        and outcome.expectation.severity == "stop"
        and outcome.expectation.model_dump_json() not in approved
    ]


def offered(stopped: Iterable[Outcome], *, snapshot: int) -> dict[str, Any]:
    """What on-call may approve of a run that checks stopped, as JSON: approved is what is named, and nothing else."""
    every = list(stopped)
    return {
        "snapshot": str(snapshot),
        "expectations": [outcome.expectation.model_dump_json() for outcome in every],
        "told": [str(outcome) for outcome in every],
    }


def judge(
    outcomes: list[Outcome],
    *,
    feed: str,
    branch: str,
    page: str | None = None,
    approved: Collection[str] = (),
    advice: str = ADVICE,
) -> list[Outcome]:
    """The outcomes that only warn; raises when one of the others failed. `page` is where all of them are shown."""
    failed = [outcome for outcome in outcomes if not outcome.success]
    if stopped := stopping(outcomes, approved=approved):
        told = "; ".join(map(str, stopped))
        shown = f" Every outcome: {page}" if page else ""
        raise CheckError(
            f"feed {feed}: {len(stopped)} of {len(outcomes)} checks failed: {told}. Nothing was published: readers "
            f"still see the rows before this run. Its rows wait on branch {branch} of clean.{feed}; what they would "
            f"change shows: headrace compare {feed} {branch}. {advice}{shown}"
        )
    return failed
