"""The check job: run a suite of Great Expectations over the rows that a run's branch changed."""

import json
import logging
from collections.abc import Iterable, Mapping

import great_expectations as gx
from great_expectations.core import ExpectationValidationResult
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.expectations.registry import get_expectation_impl
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.clean import FROM_OFFSET, FROM_PARTITION, HIDDEN_ROW
from headrace.stages.check import CheckPlan, Expectation, Outcome
from spark_jobs.conditions import any_of
from spark_jobs.session import session

# It tells of every function it registers.
logging.getLogger("great_expectations").setLevel(logging.WARNING)

# Nothing on disk, where each run would leave a folder behind, and no progress bars in a task's log.
IN_MEMORY = DataContextConfig(
    store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
    progress_bars=ProgressBarsConfig(globally=False),
)

# Counts are enough, and examples of unexpected values, which cost a query each, might be personal.
COUNTS = {"result_format": "BASIC", "partial_unexpected_count": 0}


def run(plan: str, *, remote: str | None, properties: Mapping[str, str]) -> str:
    """The job's shell: a plan in, outcomes out, both as JSON."""
    with session(remote, properties=properties) as spark:
        outcomes = check(spark, CheckPlan.model_validate_json(plan))
        return json.dumps([outcome.model_dump() for outcome in outcomes])


def check(spark: SparkSession, plan: CheckPlan) -> list[Outcome]:
    """Read the changed rows once, and ask everything of them."""
    rows = changed_rows(spark, plan).persist()
    try:
        return validate(rows, plan.suite)
    finally:
        rows.unpersist()


def changed_rows(spark: SparkSession, plan: CheckPlan) -> DataFrame:
    """The visible rows that the run wrote, told by the coordinates they come from."""
    rows = spark.read.option("versionAsOf", plan.snapshot).table(plan.clean)
    changed = rows.where(~F.col(HIDDEN_ROW) & within([*plan.spans.items(), *plan.replayed.items()]))
    if not plan.replayed:
        return changed
    # Where originals lie, lie rows too that a replay left as they were.
    before = spark.read.option("versionAsOf", plan.base).table(plan.clean).where(within(plan.replayed.items()))
    return changed.join(before.select(FROM_PARTITION, FROM_OFFSET), [FROM_PARTITION, FROM_OFFSET], "left_anti")


def within(spans: Iterable[tuple[int, tuple[int, int]]]) -> Column:
    """Whether a row was made by a record in one of the spans."""
    return any_of(
        (F.col(FROM_PARTITION) == number) & (F.col(FROM_OFFSET) >= first) & (F.col(FROM_OFFSET) < next_)
        for number, (first, next_) in spans
    )


def validate(rows: DataFrame, suite: list[Expectation]) -> list[Outcome]:
    context = gx.get_context(mode="ephemeral", project_config=IN_MEMORY)
    batch = (
        context.data_sources.add_spark("clean").add_dataframe_asset("rows").add_batch_definition_whole_dataframe("all")
    )
    # Results come in an order of their own, so each expectation carries its place in the suite.
    expectations = [
        get_expectation_impl(each.name)(**each.arguments, meta={"place": place}) for place, each in enumerate(suite)
    ]
    results = batch.get_batch({"dataframe": rows}).validate(
        gx.ExpectationSuite("suite", expectations=expectations), result_format=COUNTS
    )
    return [outcome(result, suite) for result in results.results]


def outcome(result: ExpectationValidationResult, suite: list[Expectation]) -> Outcome:
    """How the expectation that a result is about came out."""
    assert result.expectation_config is not None, "a result tells what was expected"
    expectation = suite[result.expectation_config.meta["place"]]
    count = result.result.get("unexpected_count")
    return Outcome(expectation=expectation, success=bool(result.success), unexpected=count)
