"""Check: the expectations that a run's rows must meet before anyone sees them, derived from the schema and declared."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict
from pyiceberg.types import BooleanType, DoubleType, LongType, StringType

from headrace import away, layout
from headrace.arrow import is_json
from headrace.columns import columns
from headrace.declaration import Check, Severity
from headrace.errors import CheckError
from headrace.feed import Feed
from headrace.lake import Lake, heads_at, heads_of
from headrace.stages.transform import missing, originals, spark_name

PLAIN = (StringType, LongType, DoubleType, BooleanType)
"""Columns whose values are those that an enum lists."""


class Expectation(BaseModel):
    """One Great Expectations expectation by its snake_case name."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: dict[str, Any]
    severity: Severity = "stop"


class Outcome(BaseModel):
    """How one expectation came out; never with a value of a row, which may be personal."""

    model_config = ConfigDict(frozen=True)

    expectation: Expectation
    success: bool
    unexpected: int | None = None


class CheckPlan(BaseModel):
    """Which rows of which branch are checked, and for what."""

    model_config = ConfigDict(frozen=True)

    feed: str
    clean: str
    branch: str
    snapshot: int
    base: int
    """What readers see meanwhile."""
    spans: dict[int, tuple[int, int]]
    replayed: dict[int, tuple[int, int]] = {}
    """The spans of the originals of replayed records, which may have changed rows too."""
    suite: list[Expectation]


def suite(feed: Feed) -> list[Expectation]:
    """Everything that the schema implies and the feed declares."""
    return [*_derived(feed), *(_declared(check) for check in feed.declaration.checks)]


def _derived(feed: Feed) -> Iterator[Expectation]:
    key = feed.declaration.key
    if len(key) == 1:
        yield Expectation(name="expect_column_values_to_be_unique", arguments={"column": key[0]})
    else:
        yield Expectation(name="expect_compound_columns_to_be_unique", arguments={"column_list": key})
    for column in columns(feed):
        if column.required or column.name in key:
            yield Expectation(name="expect_column_values_to_not_be_null", arguments={"column": column.name})
    plain = {column.name for column in columns(feed) if isinstance(column.type, PLAIN) and not is_json(column.type)}
    for name, symbols in _enums(feed):
        if name not in plain:
            continue  # a date or a JSON text is no longer what the schema lists
        yield Expectation(name="expect_column_values_to_be_in_set", arguments={"column": name, "value_set": symbols})


def _enums(feed: Feed) -> Iterator[tuple[str, list[str]]]:
    if feed.schema_type == "JSON":
        for name, field in feed.schema.get("properties", {}).items():
            if "enum" in field:
                yield name, [symbol for symbol in field["enum"] if symbol is not None]
        return
    for field in feed.schema["fields"]:
        members = field["type"] if isinstance(field["type"], list) else [field["type"]]
        for member in members:
            if isinstance(member, dict) and member.get("type") == "enum":
                yield field["name"], member["symbols"]


def _declared(check: Check) -> Expectation:
    column = {"column": check.column} if check.column else {}
    match check:
        case Check(between=(low, high)):
            name, arguments = "expect_column_values_to_be_between", {"min_value": low, "max_value": high}
        case Check(one_of=list(values)):
            name, arguments = "expect_column_values_to_be_in_set", {"value_set": values}
        case Check(matches=str(pattern)):
            name, arguments = "expect_column_values_to_match_regex", {"regex": pattern}
        case Check(not_null=True):
            name, arguments = "expect_column_values_to_not_be_null", {}
        case Check(expect=str(name), arguments=arguments):
            pass
        case _:
            raise AssertionError("the declaration lets exactly one form through")
    return Expectation(name=name, arguments={**column, **arguments}, severity=check.severity)


@away.tells
def plan(feed: Feed, *, lake: Lake, run: str) -> CheckPlan | None:
    """The rows that the run's branch changed; None when it changed none."""
    table, branch = lake.find(layout.clean_table(feed.name)), layout.branch(run)
    if table is None or branch not in table.metadata.refs:
        return None
    snapshot = table.metadata.refs[branch].snapshot_id
    changed = missing(heads_at(table, snapshot), heads_of(table))
    base = table.current_snapshot()
    if not changed or base is None:
        return None
    return CheckPlan(
        feed=feed.name,
        clean=spark_name(lake.name, layout.clean_table(feed.name)),
        branch=branch,
        snapshot=snapshot,
        base=base.snapshot_id,
        spans=changed,
        replayed=originals(table.snapshot_by_id(snapshot)),
        suite=suite(feed),
    )


def judge(outcomes: list[Outcome], *, feed: str, branch: str) -> list[Outcome]:
    """The outcomes that only warn; raises when one of the others failed."""
    failed = [outcome for outcome in outcomes if not outcome.success]
    if stopping := [outcome for outcome in failed if outcome.expectation.severity == "stop"]:
        told = "; ".join(_tell(outcome) for outcome in stopping)
        raise CheckError(
            f"feed {feed}: {len(stopping)} of {len(outcomes)} checks failed: {told}. Nothing was published: readers "
            f"still see the rows before this run. Its rows wait on branch {branch} of clean.{feed}; mend the cause, "
            f"then clear the transform task."
        )
    return failed


def _tell(outcome: Outcome) -> str:
    about = outcome.expectation.arguments
    column = about.get("column") or ", ".join(about.get("column_list", ())) or "the table"
    count = f" ({outcome.unexpected} rows)" if outcome.unexpected is not None else ""
    return f"{column}: {outcome.expectation.name}{count}"
