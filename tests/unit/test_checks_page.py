"""The pages about checks: what they show, that they load nothing, and that what they show is only shown."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from headrace import layout
from headrace.outcome import Expectation, Outcome
from headrace.pages import checks
from headrace.results import Approval, Result

BETWEEN = Expectation(
    name="expect_column_values_to_be_between", arguments={"column": "price", "min_value": 0, "max_value": 100}
)
UNIQUE = Expectation(name="expect_column_values_to_be_unique", arguments={"column": "id"}, origin="schema")
BASE = "http://airflow.example"


def result(number: int, *outcomes: Outcome, **more: Any) -> Result:
    at = datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(minutes=5 * number)
    run = f"scheduled__{number}"
    return Result(feed="orders", run=run, branch=f"run_{number}", snapshot="1", at=at, outcomes=list(outcomes), **more)


def failed(count: int = 3, **more: Any) -> Outcome:
    return Outcome(expectation=BETWEEN, success=False, unexpected=count, rows=9, keys=("k1", "k2"), **more)


def met(expectation: Expectation) -> Outcome:
    return Outcome(expectation=expectation, success=True, unexpected=0, rows=9)


def test_a_history_shows_every_check_in_every_run_the_failed_ones_first() -> None:
    page = checks.history("orders", [result(2, failed(), met(UNIQUE)), result(1, met(UNIQUE))], base_url=BASE)
    names = re.findall(r'scope="row">([^<]+)<', page)
    assert names == ["price: 0 to 100", "id: every value once"]
    states = re.findall(r'<a class="cell (\w+)"', page)
    assert states == ["failed", "absent", "met", "met"], "the newest is on the left"
    assert "3 of 9 rows; keys k1, k2" in page
    assert "headrace compare orders run_2" in page
    assert f"{BASE}/checks/orders/{result(1).name}" in page


def test_an_approval_says_who_and_why() -> None:
    approval = Approval(by="ann", why="a <new> tariff", at=datetime(2026, 1, 2, tzinfo=UTC))
    page = checks.single(result(1, failed(), approval=approval), base_url=BASE)
    assert "1 of 1 checks failed; approved by ann" in page
    assert "a &lt;new&gt; tariff" in page
    assert "headrace compare" not in page


def test_a_rebuild_is_named_and_not_linked_to_a_run_that_there_is_not() -> None:
    plain = result(1, met(UNIQUE))
    made_anew = plain.model_copy(update={"run": layout.rebuild_run("1")})
    for each, links in ((plain, True), (made_anew, False)):
        page = checks.single(each, base_url=BASE)
        assert (each.run in page, f"{BASE}/dags/orders/runs/{each.run}" in page) == (True, links)


def test_a_page_loads_nothing_and_runs_nothing() -> None:
    page = checks.history("orders", [result(1, failed(error="IndexError"))], base_url=BASE)
    assert not re.search(r"<script|<link|<img|@import|url\(|src=", page)
    assert set(re.findall(r"https?://[^/\"]+", page)) == {BASE}


def test_a_feed_that_was_never_checked_has_a_page_too() -> None:
    assert "No run of this feed was checked yet" in checks.history("orders", [], base_url=BASE)


def test_the_trend_shows_the_worst_run_highest() -> None:
    bars = checks._bars([result(1, failed(1)), result(2, met(BETWEEN)), result(3, failed(50))])
    assert [bar.title.split(": ")[1] for bar in bars] == ["1 failed rows", "0 failed rows", "50 failed rows"]
    assert max(bars, key=lambda bar: bar.height) is bars[2]
