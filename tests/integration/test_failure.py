"""What Spark says when it fails: its messages quote values, so none is raised, and none is written either."""

import traceback
from typing import Any

import pytest

from headrace.airflow import connections
from headrace.errors import SparkFailed
from spark_jobs.failure import translated
from spark_jobs.session import session


def test_a_value_that_spark_fails_at_is_neither_raised_nor_written(
    stack: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        pytest.raises(SparkFailed, match="CAST_INVALID_INPUT") as raised,
        translated("on reading"),
        session(connections.spark_remote(), properties={}) as spark,
    ):
        spark.sql("select cast(value as int) from values ('ada@example.org') as rows(value)").collect()
    assert "ada" not in "".join(traceback.format_exception(raised.value))
    assert "ada" not in "".join(capfd.readouterr())
