"""Results of checks in the lake: kept, listed with the newest first, bounded in number, and approved once."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import results
from headrace.outcome import Expectation, Outcome
from headrace.results import Result

START = datetime(2026, 1, 1, tzinfo=UTC)
FAILED = Outcome(
    expectation=Expectation(name="expect_it", arguments={"column": "a"}), success=False, unexpected=1, rows=2
)


@pytest.fixture
def lake(stack: Any) -> Any:
    from headrace.airflow import connections
    from headrace.settings import Settings

    return connections.lake(Settings())


def kept(lake: Any, feed: str, number: int, *, run: str | None = None) -> Result:
    run = run or f"scheduled__{number}"
    result = Result(
        feed=feed,
        run=run,
        branch="run_1",
        snapshot="12345678901234567890",
        at=START + timedelta(minutes=number),
        window=(START, START + timedelta(minutes=5)),
        outcomes=[FAILED],
    )
    results.write(result, lake=lake)
    return result


def test_results_come_back_as_they_were_the_newest_first_and_old_ones_go(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = f"t_{uuid.uuid4().hex[:10]}"
    monkeypatch.setattr(results, "KEPT", 3)
    assert results.latest(feed, lake=lake, count=5) == []
    made = [kept(lake, feed, number) for number in (2, 1, 4, 3)]
    found = results.latest(feed, lake=lake, count=5)
    assert found == [made[2], made[3], made[0]]
    assert results.latest(feed, lake=lake, count=1) == found[:1]
    assert results.read(feed, made[2].name, lake=lake) == made[2]
    assert results.read(feed, made[1].name, lake=lake) is None


def test_an_approval_is_noted_in_the_last_result_of_its_run(lake: Any) -> None:
    feed = f"t_{uuid.uuid4().hex[:10]}"
    first, again, other = (kept(lake, feed, number, run=run) for number, run in ((1, "a"), (2, "a"), (3, "b")))
    done = results.approve(feed, "a", lake=lake, by="ann", why="it is right", at=START)
    assert done is not None
    assert (done.approval, done.at) == (results.Approval(by="ann", why="it is right", at=START), again.at)
    assert [each.approval is not None for each in results.latest(feed, lake=lake, count=5)] == [False, True, False]
    assert results.of_run(feed, "a", lake=lake) == done
    assert results.approve(feed, "nobody's", lake=lake, by="ann", why="") is None
    assert first.stopped
    assert other.failed
