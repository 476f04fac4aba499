"""The tutorial, done as it is written: its feed file, its Python, and the rows that it promises."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from airflow_runs import awaited, triggered
from confluent_kafka import Producer

from headrace.airflow import connections

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.md"


def block(language: str) -> str:
    """The first code block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"the tutorial has no {language}"
    return found.group(1)


@pytest.fixture
def schemas(stack: Any) -> Iterator[Path]:
    """The stack's own folder of feed files, with the tutorial's in it."""
    file = Path(os.environ["HEADRACE_SCHEMAS"], "refunds.avsc")
    file.write_text(block("json"), encoding="utf-8")
    yield file.parent
    file.unlink()


def rows(reader: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(os.environ[reader]) as connection:
        return connection.execute("select * from refunds").fetchall()


def test_the_tutorial_ends_with_the_rows_it_promises(schemas: Path, airflow: httpx.Client) -> None:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        [sys.executable, "-c", block("python")], cwd=schemas.parent, env={**os.environ, "PATH": programs}, check=True
    )
    awaited(airflow, "refunds")
    triggered(airflow, "refunds")
    assert rows("HEADRACE_READER_FINANCE") == [("r-1", 2, "ann@example.com", Decimal("12.50"))]
    assert rows("HEADRACE_READER_ENGINEERING") == [("r-1", 2, Decimal("12.50"))]

    producer = Producer(dict(connections.kafka()))
    producer.produce("refunds", key="r-1", value=None)
    assert producer.flush(30) == 0
    triggered(airflow, "refunds")
    assert rows("HEADRACE_READER_FINANCE") == rows("HEADRACE_READER_ENGINEERING") == []
