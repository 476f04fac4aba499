"""Failure: an error of Spark's as one of ours, by what kind it is and no more: its message may quote what was read."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from headrace.errors import SparkFailed

NAMES = re.compile(r"[\w.]*\w(?:Error|Exception|Timeout)\b|\bUNAVAILABLE\b|\bDEADLINE_EXCEEDED\b")
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Where PySpark writes the messages of its errors of its own accord, even of those that are caught."""


def silence() -> None:
    """Have PySpark write none of them."""
    for name in LOGGERS:
        PySparkLogger.getLogger(name).disabled = True


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise what Spark raises without its message, and without the error itself, which a log would show too."""
    silence()
    try:
        yield
    except PySparkException as error:
        raise SparkFailed(f"Spark gave up {doing}: {told(error)}. Its own log tells more.") from None


def told(error: PySparkException) -> str:
    """The names of errors in its message, gRPC's own among them, and its condition."""
    names = [type(error).__name__, *NAMES.findall(str(error))]
    names = [name.rpartition(".")[2] for name in names] + [error.getCondition() or ""]
    return ", ".join(dict.fromkeys(filter(None, names)))
