"""The one place that makes a Spark session: over Connect when an address is given, else in this process."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    # This rule takes from_json for never null when its input is not, which a blank text is not: it ends in a
    # NullPointerException for the whole batch.
    "spark.sql.optimizer.enableJsonExpressionOptimization": "false",
}

SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""For a few rows: to compile a query, and to plan it anew between its stages, takes longer than to run it."""


@contextmanager
def session(remote: str | None, *, properties: Mapping[str, str], small: bool = False) -> Iterator[SparkSession]:
    """A session of its own with the catalog's properties, released at the end; `small` for a few rows."""
    spark = SparkSession.builder.remote(remote).create() if remote else SparkSession.builder.getOrCreate()
    try:
        for key, value in {**SETTINGS, **properties, **(SMALL if small else {})}.items():
            spark.conf.set(key, value)
        yield spark
    finally:
        spark.stop()
        if remote:
            # Such a session closes its client once more when it is garbage. Should that come while another one hands
            # work to the threads that all clients share, it would wait for itself for ever.
            spark._client = None  # type: ignore[union-attr]
