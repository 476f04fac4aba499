"""Leases in a real Postgres: who has the turn, and what becomes of it when its holder is killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from headrace import layout
from headrace.errors import CheckError, ServiceAway, TurnTaken
from headrace.lease import PATIENCE, Leases, turn

LONG, SHORT, NONE = timedelta(minutes=1), timedelta(milliseconds=300), timedelta()


@pytest.fixture
def leases(stack: Any) -> Leases:
    from headrace.airflow import connections

    return Leases(connections.database(layout.CATALOG_CONNECTION))


@pytest.fixture
def name() -> str:
    return layout.lease(layout.clean_table(f"t_{uuid.uuid4().hex[:10]}"))


def awaited(condition: Callable[[], bool], *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_of_many_at_once_one_has_the_turn(leases: Leases, name: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        took = list(pool.map(lambda n: leases.take(name, holder=f"run {n}", lasting=LONG), range(8)))
    assert took.count(True) == 1
    found = leases.holder(name)
    assert found is not None
    assert found.holder == f"run {took.index(True)}"


def test_the_table_is_made_once_though_many_ask_for_it_first(
    leases: Leases, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = f"s_{uuid.uuid4().hex[:10]}"
    monkeypatch.setitem(PATIENCE, "options", f"-c search_path={schema}")
    with psycopg.connect(leases.database.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            with ThreadPoolExecutor(8) as pool:
                took = list(pool.map(lambda n: leases.take(name, holder=f"run {n}"), range(8)))
            assert took.count(True) == 1
        finally:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")


def test_its_holder_goes_on_with_a_turn_and_others_wait(leases: Leases, name: str) -> None:
    assert leases.take(name, holder="a", doing="transform", lasting=SHORT)
    first = leases.holder(name)
    assert leases.take(name, holder="a", doing="check", lasting=LONG)
    again = leases.holder(name)
    assert first is not None
    assert again is not None
    assert (again.since, again.doing) == (first.since, "check")
    assert again.until > first.until
    told = rf"{name}: a has the turn for check since .* until"
    with pytest.raises(TurnTaken, match=told), turn(leases, name, holder="b", doing="upkeep", patience=SHORT):
        pass


def test_only_its_holder_can_give_a_turn_back(leases: Leases, name: str) -> None:
    assert leases.take(name, holder="a", lasting=LONG)
    assert not leases.release(name, holder="b")
    assert not leases.take(name, holder="b", lasting=LONG)
    assert leases.release(name, holder="a")
    assert not leases.release(name, holder="a")
    assert leases.holder(name) is None
    assert leases.take(name, holder="b", lasting=LONG)


def test_a_turn_lasts_as_long_as_its_holder_shows_signs_of_life(leases: Leases, name: str) -> None:
    with turn(leases, name, holder="a", doing="transform", patience=NONE, lasting=SHORT):
        began = time.monotonic()
        while time.monotonic() - began < 4 * SHORT.total_seconds():
            assert not leases.take(name, holder="b", lasting=SHORT)
    assert leases.holder(name) is None


def test_a_success_may_keep_the_turn_for_the_runs_next_task_and_a_failure_does_not(leases: Leases, name: str) -> None:
    with turn(leases, name, holder="a", doing="transform", patience=NONE, keep=LONG):
        pass
    assert not leases.take(name, holder="b")
    with pytest.raises(CheckError), turn(leases, name, holder="a", doing="check", patience=NONE, keep=LONG):
        raise CheckError("a check failed")
    assert leases.take(name, holder="b")


def test_who_waits_gets_the_turn_as_soon_as_it_is_given_back(leases: Leases, name: str) -> None:
    assert leases.take(name, holder="a", lasting=LONG)
    threading.Timer(0.3, lambda: leases.release(name, holder="a")).start()
    with turn(leases, name, holder="b", doing="upkeep", patience=timedelta(seconds=20)):
        found = leases.holder(name)
        assert found is not None
        assert (found.holder, found.doing) == ("b", "upkeep")


HOLD = """
import sys, time
from datetime import timedelta
from headrace.database import Database
from headrace.lease import Leases, turn

host, port, base, user, password, name = sys.argv[1:]
leases = Leases(Database(host, int(port), base, user, password))
with turn(leases, name, holder="doomed", doing="transform", patience=timedelta(), lasting=timedelta(seconds=1)):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_holder_that_is_killed_loses_its_turn_after_a_while(leases: Leases, name: str) -> None:
    base = leases.database
    told = [base.host, str(base.port), base.name, base.user, base.password, name]
    with subprocess.Popen([sys.executable, "-c", HOLD, *told], stdout=subprocess.PIPE, text=True) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "held\n"
        assert not leases.take(name, holder="b")
        os.kill(doomed.pid, signal.SIGKILL)
    awaited(lambda: leases.take(name, holder="b"))


def test_a_child_that_was_forked_inside_a_turn_does_not_keep_it(leases: Leases, name: str) -> None:
    assert leases.take(name, holder="a", lasting=SHORT)
    with turn(leases, name, holder="a", doing="transform", patience=NONE, lasting=SHORT):
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True)
        child.start()
    try:
        assert leases.take(name, holder="b")
    finally:
        child.kill()


def test_our_clock_decides_nothing(leases: Leases, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert leases.take(name, holder="a", lasting=LONG)
    monkeypatch.setattr(time, "time", lambda: datetime(2099, 1, 1, tzinfo=UTC).timestamp())
    assert not leases.take(name, holder="b", lasting=LONG)


def test_a_database_that_is_away_is_told_as_such(leases: Leases, name: str) -> None:
    with pytest.raises(ServiceAway, match="headrace_catalog"):
        Leases(replace(leases.database, port=1)).take(name, holder="a")


def test_what_was_done_counts_though_the_turn_was_lost_meanwhile(
    leases: Leases, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with turn(leases, name, holder="a", doing="transform", patience=NONE, keep=LONG):
        leases.release(name, holder="a")
        leases.take(name, holder="b", lasting=LONG)
    assert "somebody else took it" in caplog.text
    found = leases.holder(name)
    assert found is not None
    assert found.holder == "b"
