"""The check job: run a suite of Great Expectations over the rows that a run's branch changed."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import great_expectations as gx
from great_expectations.core import ExpectationValidationResult
from great_expectations.core.batch import Batch
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.exceptions.exceptions import ExpectationNotFoundError
from great_expectations.expectations.registry import get_expectation_impl
from great_expectations.validator.validator import Validator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, TimestampType

from headrace import shown
from headrace.clean import CHANGED, HIDDEN, HIDDEN_ROW, PATCH
from headrace.outcome import Expectation, Outcome
from headrace.stages.check import CheckPlan
from spark_jobs.failure import translated
from spark_jobs.one_pass import OnePass
from spark_jobs.session import session

# It tells of every function it registers.
logging.getLogger("great_expectations").setLevel(logging.WARNING)

# Nothing on disk, where each run would leave a folder behind, and no progress bars in a task's log.
IN_MEMORY = DataContextConfig(
    store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
    progress_bars=ProgressBarsConfig(globally=False),
)

# Counts are enough where nothing failed, and examples of unexpected values might be personal.
COUNTS = {"result_format": "BASIC", "partial_unexpected_count": 0}

# Whole rows, of which only the key is told.
ROWS = {"result_format": "BASIC", "partial_unexpected_count": 3, "include_unexpected_rows": True}

MISSING = "there is no such column"
UNSOUND = "Great Expectations does not take its arguments"
UNIQUE = ("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
TYPES = ("expect_column_values_to_be_of_type", "expect_column_values_to_be_in_type_list")
SPARK_ERROR = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
PYTHON_ERROR = re.compile(r"^(?:\w+\.)*(\w+)(?::|$)", re.MULTILINE)
"""The first line of a traceback that is not indented, but for the heading: where the trouble began."""


def run(plan: str, *, remote: str | None, properties: Mapping[str, str]) -> str:
    """The job's shell: a plan in, outcomes out, both as JSON."""
    planned = CheckPlan.model_validate_json(plan)
    with (
        translated(f"on checking {planned.feed}"),
        session(remote, properties=properties, small=planned.small) as spark,
    ):
        outcomes = check(spark, planned)
        return json.dumps([outcome.model_dump() for outcome in outcomes])


def check(spark: SparkSession, plan: CheckPlan) -> list[Outcome]:
    """Read the changed rows once, and ask everything of them."""
    rows = changed_rows(spark, plan).persist()
    try:
        return validate(rows, plan.suite, key=plan.key)
    finally:
        # Great Expectations catches whatever Spark raises. Where Spark itself has gone away that would be no answer
        # about the rows, which somebody might approve; but then it cannot do this either, and raises once more.
        rows.unpersist()


def changed_rows(spark: SparkSession, plan: CheckPlan) -> DataFrame:
    """The visible rows that the run changed, told by their number; statistics leave out files that hold none.

    Without the platform's own columns: an expectation about the table's columns is about those that readers see.
    """
    rows = spark.read.option("versionAsOf", plan.snapshot).table(plan.clean)
    changed = rows.where(~F.col(HIDDEN_ROW) & (F.col(CHANGED) > plan.since))
    return changed.drop(*(column.name for column in HIDDEN), PATCH)


def validate(rows: DataFrame, suite: list[Expectation], *, key: Sequence[str] = ()) -> list[Outcome]:
    """How each expectation came out; failed rows are told by their key, if one may be shown."""
    context = gx.get_context(mode="ephemeral", project_config=IN_MEMORY)
    sound = [each for each in suite if _made(each)]
    unique = {_columns(each) for each in sound if each.name in UNIQUE and "row_condition" not in each.arguments}
    engine = OnePass(spark=rows.sparkSession, persist=False, unique=sorted(unique))
    validator = Validator(engine, data_context=context, batches=[Batch(data=rows)])  # type: ignore[arg-type]
    results = zip(sound, _results(validator, sound, COUNTS), strict=True)
    outcomes = [outcome(result, each, of=engine.row_count) for each, result in results]
    outcomes += [Outcome(expectation=each, success=False, error=UNSOUND) for each in suite if each not in sound]
    failed = [each for each in outcomes if each.unexpected]
    if not failed or not key:
        return outcomes
    told = _results(validator, [each.expectation for each in failed], ROWS)
    types = {name: rows.schema[name].dataType for name in key}
    keys = {id(each): _keys(result, types) for each, result in zip(failed, told, strict=True)}
    return [each.model_copy(update={"keys": keys.get(id(each), ())}) for each in outcomes]


def _results(
    validator: Validator, suite: Sequence[Expectation], wanted: Mapping[str, Any]
) -> list[ExpectationValidationResult]:
    """Great Expectations' results, which come in an order of their own: each carries its place in the suite."""
    made = (_made(each, place) for place, each in enumerate(suite))
    results: list[ExpectationValidationResult] = validator.graph_validate(
        [each.configuration for each in made if each], runtime_configuration={"result_format": dict(wanted)}
    )
    return sorted(results, key=_place)


def _made(expectation: Expectation, place: int = 0) -> Any | None:
    """As Great Expectations takes it; None if it does not, which `headrace lint` cannot tell of every argument."""
    try:
        return get_expectation_impl(expectation.name)(**expectation.arguments, meta={"place": place})
    except (ValueError, TypeError, ExpectationNotFoundError):
        return None


def _place(result: ExpectationValidationResult) -> int:
    assert result.expectation_config is not None, "a result tells what was expected"
    place: int = result.expectation_config.meta["place"]
    return place


def _columns(expectation: Expectation) -> tuple[str, ...]:
    arguments = expectation.arguments
    return (arguments["column"],) if "column" in arguments else tuple(arguments["column_list"])


def outcome(result: ExpectationValidationResult, expectation: Expectation, *, of: int) -> Outcome:
    """How an expectation came out, by its result about so many rows."""
    found, error = result.result, _error(result.exception_info)
    if error == "IndexError" and expectation.name in TYPES:
        error = MISSING
    # A run that only deletes leaves no rows, and of none there is no mean that could be wrong.
    is_void = of == 0 and error is None and found.get("observed_value") is None
    return Outcome(
        expectation=expectation,
        success=bool(result.success) or is_void,
        unexpected=found.get("unexpected_count"),
        rows=of if "unexpected_count" in found else None,
        observed=None if expectation.personal else _observed(found.get("observed_value"), expectation),
        error=error,
    )


def _observed(value: Any, expectation: Expectation) -> float | str | None:
    """A figure about all rows; of anything else, which may be rows' own values, only how much there is."""
    match value:
        case bool() | None:
            return None
        case int() | float():
            return value
        case Decimal():
            return float(value)
        case date():
            return value.isoformat()
        case list() | dict():
            return f"{len(value)} values"
        case str() if expectation.name in TYPES:
            return value
    return None


def _error(raised: Mapping[str, Any] | None) -> str | None:
    """The kind of the error that kept an expectation from being tested; its message may hold a row's value."""
    each = next((each for each in (raised or {}).values() if isinstance(each, Mapping)), raised or {})
    if not each.get("raised_exception"):
        return None
    trace = str(each.get("exception_traceback", ""))
    kind = SPARK_ERROR.search(trace) or PYTHON_ERROR.search(trace)
    return kind[1] if kind else "an error"


def _keys(result: ExpectationValidationResult, key: Mapping[str, DataType]) -> tuple[str, ...]:
    """The different keys of the rows that a result shows, each as one text."""
    rows = result.result.get("unexpected_rows") or []
    keys = (shown.key(_zoned(row[name], type_) for name, type_ in key.items()) for row in rows)
    return tuple(dict.fromkeys(keys))


def _zoned(value: Any, type_: DataType) -> Any:
    """Spark gives a moment in the machine's own zone, and does not say so."""
    return value.astimezone() if isinstance(type_, TimestampType) and value is not None else value
