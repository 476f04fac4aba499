"""`headrace stubs`: DAG files for an Airflow that takes no bundle of ours."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli import app

RUNNER = CliRunner()


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    folder = tmp_path / "schemas"
    folder.mkdir()
    feed = {"type": "record", "name": "Row", "feed": {"key": ["id"]}, "fields": [{"name": "id", "type": "string"}]}
    (folder / "orders.avsc").write_text(json.dumps(feed))
    return folder


def test_every_feed_has_its_dag_file(schemas: Path, tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["stubs", str(tmp_path / "dags"), "--schemas", str(schemas), "--offline"])
    assert done.exit_code == 0
    assert done.stdout == f"{tmp_path / 'dags'}: feeds 1, at fault 0\n"
    assert [path.name for path in (tmp_path / "dags" / "stubs").iterdir()] == ["orders_feed.py"]


def test_a_fault_is_told_and_is_a_dag_file_of_its_own(schemas: Path, tmp_path: Path) -> None:
    (schemas / "broken.avsc").write_text("{")
    done = RUNNER.invoke(app, ["stubs", str(tmp_path / "dags"), "--schemas", str(schemas), "--offline"])
    assert done.exit_code == 1
    assert "broken.avsc" in done.output
    assert {path.name for path in (tmp_path / "dags" / "stubs").iterdir()} == {"orders_feed.py", "broken_fault.py"}


def test_what_is_gone_is_removed(schemas: Path, tmp_path: Path) -> None:
    command = ["stubs", str(tmp_path / "dags"), "--schemas", str(schemas), "--offline"]
    RUNNER.invoke(app, command)
    (schemas / "orders.avsc").unlink()
    assert RUNNER.invoke(app, command).exit_code == 0
    assert list((tmp_path / "dags" / "stubs").iterdir()) == []
