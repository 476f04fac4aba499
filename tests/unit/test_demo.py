"""The demo's own parts: what counts as a difference, how far a topic has come, what is read and what is shown."""

import io
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from demo import report
from demo.airflow import Run, Task, task_page
from demo.board import LineBoard, Moment
from demo.comparison import compared
from demo.differences import differences
from demo.errors import FeedError, SettingError, TopicError
from demo.feed import EXAMPLES, Feed, read_feed
from demo.generator import meanings, round_counts
from demo.oracle import Expected, expected
from demo.publisher import rounds_published
from demo.registration import registrations
from demo.settings import Airflow, read_settings
from demo.stores import Found

ROWS = [
    {"id": "a", "price": Decimal("1.00"), "at": datetime(2025, 1, 1, tzinfo=UTC), "email": "a@example.com"},
    {"id": "b", "price": Decimal("2.00"), "at": None, "email": None},
]


def found_differences(actual: list[dict[str, Any]]) -> list[str]:
    return [str(each) for each in differences(ROWS, actual, key=("id",), hide={"email"})]


def test_the_same_rows_in_another_order_do_not_differ() -> None:
    assert found_differences(list(reversed(ROWS))) == []


def test_a_lost_a_doubled_and_an_unexpected_row_are_found() -> None:
    assert found_differences(ROWS[:1]) == ["missing: b"]
    assert found_differences([*ROWS, ROWS[0]]) == ["doubled: a"]
    assert found_differences([*ROWS, {**ROWS[0], "id": "c"}]) == ["unexpected: c"]


def test_an_altered_value_is_shown_with_both_sides() -> None:
    altered = [{**ROWS[0], "price": Decimal("1.01")}, ROWS[1]]
    assert found_differences(altered) == ["altered: a in price (Decimal('1.00') expected, Decimal('1.01') found)"]


def test_a_value_of_another_type_differs_even_when_it_is_equal() -> None:
    assert found_differences([{**ROWS[0], "price": 1}, ROWS[1]]) != []


def test_a_personal_value_that_differs_is_named_but_not_shown() -> None:
    assert found_differences([{**ROWS[0], "email": "eve@example.com"}, ROWS[1]]) == ["altered: a in email"]


def test_a_column_that_must_not_be_there_is_found() -> None:
    leaked = [{**row, "phone": "+1"} for row in ROWS]
    assert found_differences(leaked)[0] == "altered: a in phone (a column that must not be there)"


def test_a_column_that_is_absent_is_found() -> None:
    assert found_differences([{"id": "a", "price": Decimal("1.00"), "at": ROWS[0]["at"]}, ROWS[1]]) == [
        "altered: a in email (no such column)"
    ]


FEED = read_feed("customers")


def ends_after(rounds: int) -> Counter[int]:
    return sum((round_counts(FEED, number=number, size=60) for number in range(rounds)), Counter())


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_whole_rounds_are_counted_from_the_end_offsets(rounds: int) -> None:
    progress = rounds_published(FEED, ends_after(rounds), size=60)
    assert (progress.rounds, progress.partial) == (rounds, False)


def test_an_interrupted_round_is_seen_as_partial() -> None:
    ends = ends_after(1) + Counter({1: 2})
    progress = rounds_published(FEED, ends, size=60)
    assert (progress.rounds, progress.partial) == (1, True)
    assert progress.whole == ends_after(1)


def test_a_topic_with_more_than_the_demo_published_is_refused() -> None:
    with pytest.raises(TopicError, match="needs the topic to itself"):
        rounds_published(FEED, Counter({0: 10_000, 1: 0, 2: 0}), size=60)


def oracle_and_stores(feed: Feed) -> tuple[Expected, Found]:
    said = expected(feed, meanings(feed, rounds=1, size=60), mask_key="k")
    quarantine = [{"partition": p, "offset": o, "reason": reason} for (p, o), reason in said.quarantine.items()]
    warehouses = {name: [dict(row) for row in rows] for name, rows in said.warehouses.items()}
    return said, Found(said.published, [dict(row) for row in said.clean], quarantine, warehouses)


@pytest.mark.parametrize("example", EXAMPLES)
def test_stores_that_hold_what_the_oracle_says_are_reconciled(example: str) -> None:
    said, stores = oracle_and_stores(read_feed(example))
    assert compared(read_feed(example), said, found=stores).reconciled


@pytest.mark.parametrize("example", EXAMPLES)
def test_one_row_lost_anywhere_is_seen(example: str) -> None:
    feed = read_feed(example)
    said, stores = oracle_and_stores(feed)
    broken = [
        replace(stores, archived=stores.archived - 1),
        replace(stores, clean=stores.clean[1:]),
        replace(stores, quarantine=stores.quarantine[1:]),
        *(
            replace(stores, warehouses={**stores.warehouses, name: rows[1:]})
            for name, rows in stores.warehouses.items()
        ),
    ]
    assert len(broken) == 5
    assert not any(compared(feed, said, found=each).reconciled for each in broken)


def test_another_reason_in_quarantine_is_seen() -> None:
    said, stores = oracle_and_stores(FEED)
    other = [{**stores.quarantine[0], "reason": "unheard of"}, *stores.quarantine[1:]]
    assert not compared(FEED, said, found=replace(stores, quarantine=other)).reconciled


def test_the_table_of_counts_has_one_line_per_feed_and_a_verdict() -> None:
    said, stores = oracle_and_stores(FEED)
    good = compared(FEED, said, found=stores)
    bad = compared(FEED, said, found=replace(stores, clean=[]))
    shown = printed(lambda console: console.print(report.counts([good, bad]))).splitlines()
    titles = "feed published archived clean quarantined loaded finance loaded engineering reconciled"
    assert " ".join(shown[0].split()) == titles
    assert [line.split()[-1] for line in shown[1:]] == ["✓", "✗"]


def test_differences_are_explained_without_personal_values() -> None:
    said, stores = oracle_and_stores(FEED)
    altered = [{**row, "name": "Mallory"} for row in stores.clean]
    bad = compared(FEED, said, found=replace(stores, clean=altered))
    shown = printed(lambda console: report.explain(console, bad))
    assert f"customers, clean: {len(stores.clean)} keys differ" in shown
    assert "Mallory" not in shown
    assert len(shown.splitlines()) == 1 + report.SHOWN_DIFFERENCES


def test_the_address_and_the_password_are_printed_as_they_are() -> None:
    shown = printed(lambda console: report.closing(console, Airflow("http://127.0.0.1:8080", "admin", "p[b]w")))
    assert "http://127.0.0.1:8080  user admin  password p[b]w" in shown


def test_outside_a_terminal_a_line_is_printed_only_when_something_moved() -> None:
    run = Run("orders", "manual__1")
    moments = [Moment(run, "running", (Task("extract", -1, state, 1), Task("load", 0, "waiting", 0))) for state in "ab"]
    shown = printed(lambda console: show_all(LineBoard(console), [moments[0], moments[0], moments[1]]))
    assert [line.split() for line in shown.splitlines()] == [
        ["orders", "running"],
        ["orders.extract", "a"],
        ["orders.extract", "b"],
    ]


def show_all(board: LineBoard, moments: list[Moment]) -> None:
    for moment in moments:
        board.show([moment])


def printed(show: Any) -> str:
    console = Console(file=io.StringIO(), width=120)
    show(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_task_is_linked_to_its_page_with_its_map_index() -> None:
    at, run = Airflow("http://here", "admin", ""), Run("orders", "manual__2025-01-01T00:00:00+00:00")
    page = task_page(at, run, task=Task("load", 1, "failed", 1))
    assert page == "http://here/dags/orders/runs/manual__2025-01-01T00%3A00%3A00%2B00%3A00/tasks/load/mapped/1"


def test_of_two_versions_the_newest_schema_id_is_used() -> None:
    entries = [
        {"feed": "orders", "subject": "orders-value", "version": version, "id": id_, "topic": "orders"}
        for version, id_ in ((2, 9), (1, 4))
    ]
    assert registrations(json.dumps(entries))["orders"].id == 9


def environment(folder: Path) -> dict[str, str]:
    passwords = folder / "passwords.json"
    passwords.write_text('{"admin": "secret"}', encoding="utf-8")
    return {
        "AIRFLOW_CONN_HEADRACE_KAFKA": json.dumps(
            {"conn_type": "kafka", "extra": json.dumps({"bootstrap.servers": "here:1", "group.id": "x"})}
        ),
        "AIRFLOW_CONN_HEADRACE_MASKS": json.dumps({"conn_type": "generic", "password": "k"}),
        "AIRFLOW_CONN_HEADRACE_S3": json.dumps({"conn_type": "aws", "login": "a", "password": "b", "extra": {}}),
        "AIRFLOW_CONN_HEADRACE_CATALOG": json.dumps({"conn_type": "postgres", "login": "c", "password": "d"}),
        "HEADRACE_READER_FINANCE": "postgresql://f",
        "HEADRACE_READER_ENGINEERING": "postgresql://e",
        "HEADRACE_LAKE": "s3://headrace",
        "AIRFLOW__API__BASE_URL": "http://here/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
    }


def test_the_settings_come_from_the_environment(tmp_path: Path) -> None:
    settings = read_settings(environment(tmp_path))
    assert settings.kafka == {"bootstrap.servers": "here:1"}
    assert (settings.airflow.url, settings.airflow.user) == ("http://here", "admin")
    assert settings.readers == {"finance": "postgresql://f", "engineering": "postgresql://e"}


def test_settings_do_not_show_their_secrets(tmp_path: Path) -> None:
    assert "secret" not in repr(read_settings(environment(tmp_path)))


def test_each_missing_setting_is_named(tmp_path: Path) -> None:
    whole = environment(tmp_path)
    for name in whole:
        with pytest.raises(SettingError, match=name):
            read_settings({key: value for key, value in whole.items() if key != name})


def test_an_airflow_that_never_started_is_said_so(tmp_path: Path) -> None:
    whole = environment(tmp_path)
    (tmp_path / "passwords.json").unlink()
    with pytest.raises(SettingError, match="make up"):
        read_settings(whole)


def test_a_feed_that_the_demo_does_not_tell_is_an_error() -> None:
    with pytest.raises(FeedError, match=r"neither clicks\.avsc nor clicks\.json"):
        read_feed("clicks")
