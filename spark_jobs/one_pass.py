"""One pass: Great Expectations' engine for Spark, asking in two or three queries what it would ask in a dozen.

Its own engine makes a query for each column that a suite is about, and for each expectation another one that fetches
examples of unexpected values. The rows are the same in all of them, so all counts fit into one aggregate; examples
might be personal. Uniqueness, for which it sorts all values, is first asked by hashes: where no hash comes twice no
value does, and nothing is left to sort. What has a condition of its own, or must be fetched, goes its own way still.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from great_expectations.execution_engine.execution_engine import MetricComputationConfiguration
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.util import convert_to_json_serializable
from great_expectations.validator.metric_configuration import MetricConfiguration, MetricConfigurationID
from pyspark.errors import AnalysisException
from pyspark.sql import Column
from pyspark.sql import functions as F

Metrics = dict[MetricConfigurationID, Any]

ROW_COUNT = "table.row_count"
EXAMPLES = ".unexpected_values"
UNIQUE = ("column_values.unique.unexpected_count", "compound_columns.unique.unexpected_count")
OWN_ROWS = ("row_condition", "filter_conditions", "ignore_row_if")
"""Arguments by which an expectation is about other rows than the rest."""


class OnePass(SparkDFExecutionEngine):
    """Counts everything about all rows at once; it is told which columns, or lists of them, must be unique."""

    def __init__(self, *args: Any, unique: Iterable[Sequence[str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unique = [tuple(names) for names in unique]

    @cached_property
    def _counted(self) -> tuple[int, set[tuple[str, ...]]]:
        """The number of rows, and the columns in which nothing comes twice."""
        try:
            count, *surplus = self.dataframe.agg(F.count("*"), *map(_surplus, self._unique)).collect()[0]
        except AnalysisException:  # of one of them no hash can be made, as of a map: each is asked for by itself then
            return self.dataframe.count(), set()
        return count, {names for names, more in zip(self._unique, surplus, strict=True) if more == 0}

    @property
    def row_count(self) -> int:
        return self._counted[0]

    def resolve_metrics(
        self,
        metrics_to_resolve: Iterable[MetricConfiguration],
        metrics: Metrics | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> Metrics:
        wanted = list(metrics_to_resolve)
        known = {each.id: value for each in wanted if (value := self._known(each)) is not None}
        rest = [each for each in wanted if each.id not in known]
        return {**known, **super().resolve_metrics(rest, metrics, runtime_configuration)} if rest else known

    def _known(self, metric: MetricConfiguration) -> Any:
        """What need not be asked any more; None for anything else. Doubles that there are, are counted by sorting."""
        name, domain = metric.metric_name, metric.metric_domain_kwargs
        if name.endswith(EXAMPLES):
            return []
        if domain.get("row_condition"):
            return None
        if name == ROW_COUNT:
            return self.row_count
        if name == f"{ROW_COUNT}.aggregate_fn":
            return ()
        if name in UNIQUE:
            return 0 if _columns(domain) in self._counted[1] else None
        return None

    def resolve_metric_bundle(self, metric_fn_bundle: Iterable[MetricComputationConfiguration]) -> Metrics:
        bundle = list(metric_fn_bundle)
        apart = [each for each in bundle if _has_own_rows(each)]
        together = [each for each in bundle if not _has_own_rows(each)]
        found: Metrics = super().resolve_metric_bundle(apart) if apart else {}
        if together:
            row = self.dataframe.agg(*(each.metric_fn for each in together)).collect()[0]
            values = (convert_to_json_serializable(data=value) for value in row)
            found |= {each.metric_configuration.id: value for each, value in zip(together, values, strict=True)}
        return found


def _has_own_rows(computed: MetricComputationConfiguration) -> bool:
    domain = computed.compute_domain_kwargs or {}
    return any(domain.get(name) for name in OWN_ROWS)


def _columns(domain: Mapping[str, Any]) -> tuple[str, ...]:
    return (domain["column"],) if "column" in domain else tuple(domain["column_list"])


def _surplus(names: Sequence[str]) -> Column:
    """How many more values there are than hashes; nothing comes twice where it is 0, for equal ones hash equally."""
    hashed = F.xxhash64(*names)
    values = F.when(F.col(names[0]).isNotNull(), hashed) if len(names) == 1 else hashed
    return F.count(values) - F.count_distinct(values)
