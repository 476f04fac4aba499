"""Personal values that the demo planted are looked for in every byte of what must not hold them."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headrace
from demo.content import CONTENT, Life
from demo.feed import read_feed
from demo.generator import DAMAGED_REVISION, SEED, SIZES, meanings
from demo.record import Version
from stack.environment import database_url
from stack.parts import postgres
from stack.parts.part import Stack

PERSONAL = {"orders": ["email"], "customers": ["name", "email", "phone"], "calls": ["caller", "callee"]}
ROUNDS = 2
"""As many as the fixture publishes."""
TELLING = 8
"""Shorter values, which the demo plants too, stand in anything."""
PROGRAMS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def planted(demo: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One value a line: what the clean tables hold, and all that the demo ever said of people.

    They are whole, so that no mask of one is taken for it.
    """
    os.environ["HEADRACE_PERSONAL"] = "*"
    values: set[str] = set()
    for feed, columns in PERSONAL.items():
        rows = headrace.read(feed, columns=columns).arrow()
        for name in columns:
            values |= {value for value in rows.column(name).unique().to_pylist() if len(value or "") >= TELLING}
        there = len(values)
        values |= {value for value in said(feed, columns) if len(value) >= TELLING}
        assert len(values) > there, "rows alone know nothing of deleted people, or of records in quarantine"
    del os.environ["HEADRACE_PERSONAL"]
    assert len(values) > 10_000
    file = tmp_path_factory.mktemp("planted") / "values"
    file.write_text("\n".join(values), encoding="utf-8")
    return file


def said(example: str, columns: Iterable[str]) -> Iterator[str]:
    """What the demo's records said: superseded versions, deleted people, and what it damaged."""
    feed = read_feed(example)
    versions = [meaning.row for _, meaning in meanings(feed, rounds=ROUNDS) if isinstance(meaning, Version)]
    lives = (Life(SEED, example, number, index) for number in range(ROUNDS) for index in range(SIZES[example]))
    damaged = (CONTENT[example](life, DAMAGED_REVISION, 0) for life in lives)
    yield from (str(row[name]) for row in (*versions, *damaged) for name in columns if row.get(name))


def files_of(stack: Stack, database: str) -> Path:
    """Where Postgres keeps a database, all that was written in its files."""
    secret = stack.passwords.postgres
    url = database_url(stack.settings, user=postgres.SUPERUSER, password=secret, database=database)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("checkpoint")
        row = connection.execute("select oid from pg_database where datname = %s", [database]).fetchone()
    assert row
    return postgres.data_folder(stack.settings) / "base" / str(row[0])


def found(planted: Path, *places: Path) -> list[str]:
    """The files in which a planted value stands."""
    command = ["grep", "--recursive", "--text", "--fixed-strings", "--files-with-matches", f"--file={planted}"]
    done = subprocess.run(
        [*command, *map(str, places)], env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


def test_a_warehouse_that_may_see_them_holds_them(stack: Stack, planted: Path) -> None:
    assert found(planted, files_of(stack, "finance")), "else the other tests here would prove nothing"


@pytest.mark.parametrize("database", ["engineering", "airflow", "registry", "catalog"])
def test_no_byte_of_any_other_database_holds_one(stack: Stack, planted: Path, database: str) -> None:
    assert found(planted, files_of(stack, database)) == []


def test_no_log_holds_one(stack: Stack, planted: Path) -> None:
    assert list(stack.settings.logs.rglob("*.log"))
    assert found(planted, stack.settings.logs) == []


def test_no_list_of_quarantine_shows_one(stack: Any, planted: Path, tmp_path: Path) -> None:
    for feed in PERSONAL:
        for options in ([], ["--list", "--limit", "10000"], ["--list", "--limit", "10000", "--json"]):
            (tmp_path / f"{feed}{len(options)}").write_text(listed(feed, options))
    assert found(planted, tmp_path) == []


def listed(feed: str, options: Iterable[str]) -> str:
    command = [str(PROGRAMS / "headrace"), "quarantine", feed, *options]
    wide = {**os.environ, "COLUMNS": "500"}  # nothing is cut off
    done = subprocess.run(command, env=wide, capture_output=True, text=True, check=True)
    assert "undecodable" in done.stdout
    return done.stdout + done.stderr
