"""What is told of an error of Spark's."""

import traceback

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from headrace.errors import SparkFailed
from spark_jobs.failure import translated


def test_an_error_of_sparks_is_told_by_its_kind_and_never_by_its_message() -> None:
    said = (
        "(org.apache.iceberg.exceptions.ValidationException) Found conflicting files that can contain records matching "
        '(ref(name="id") >= "ada@example.org" and ref(name="id") <= "bob@example.org"): [s3://lake/x.parquet]'
    )
    told = r"transforming orders: .*ValidationException, SOME_CONDITION\."
    with pytest.raises(SparkFailed, match=told) as raised, translated("on transforming orders"):
        raise SparkConnectGrpcException(said, errorClass="SOME_CONDITION", sql_state=None)
    assert raised.value.retry
    assert "ada" not in "".join(traceback.format_exception(raised.value))
