"""Stubs: one DAG file per feed file."""

import os
from pathlib import Path

import pytest

from headrace.airflow import stubs


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    folder = tmp_path / "schemas"
    folder.mkdir()
    for name in ("orders.avsc", "calls.json", "notes.txt"):
        (folder / name).write_text("{}")
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_every_feed_file_gets_a_stub_and_other_files_do_not(schemas: Path, tmp_path: Path) -> None:
    stubs.write(schemas, tmp_path / "stubs")
    assert names(tmp_path / "stubs") == {"orders_feed.py", "calls_feed.py"}


def test_a_stub_is_written_again_only_when_its_feed_file_changed(schemas: Path, tmp_path: Path) -> None:
    stubs.write(schemas, tmp_path / "stubs")
    assert stubs.write(schemas, tmp_path / "stubs") == []
    os.utime(schemas / "orders.avsc", (1, 1))
    assert stubs.write(schemas, tmp_path / "stubs") == [tmp_path / "stubs" / "orders_feed.py"]


def test_a_stub_carries_the_time_of_its_feed_file_so_that_airflow_sees_changes(schemas: Path, tmp_path: Path) -> None:
    stubs.write(schemas, tmp_path / "stubs")
    stub, file = tmp_path / "stubs" / "orders_feed.py", schemas / "orders.avsc"
    assert stub.stat().st_mtime_ns == file.stat().st_mtime_ns


def test_the_stub_of_a_removed_feed_file_goes_away(schemas: Path, tmp_path: Path) -> None:
    stubs.write(schemas, tmp_path / "stubs")
    (schemas / "orders.avsc").unlink()
    stubs.write(schemas, tmp_path / "stubs")
    assert names(tmp_path / "stubs") == {"calls_feed.py"}


def test_a_bad_feed_file_harms_no_other_stub(schemas: Path, tmp_path: Path) -> None:
    (schemas / "broken.avsc").write_text("{")
    stubs.write(schemas, tmp_path / "stubs")
    assert names(tmp_path / "stubs") == {"orders_feed.py", "calls_feed.py", "broken_feed.py"}
