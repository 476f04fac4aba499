"""The tasks of a run take turns on the clean table; one that comes too late to publish merges and checks again."""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from run_context import Instance, run_context
from workshop import Record, Workshop

from headrace import layout

FIELDS = [{"name": "id", "type": "string"}, {"name": "price", "type": "long"}]
CHECKED = {
    "key": ["id"],
    "checks": [{"column": "price", "between": [0, 100]}, {"column": "id", "matches": "^[a-z]+$"}],
}
LONG = timedelta(minutes=1)


@dataclass
class Shop:
    """A workshop whose runs are those of Airflow's tasks."""

    work: Workshop
    path: str

    def arrive(self, *rows: tuple[str, int], timestamp: int | None = None) -> None:
        """Rows come, and are archived."""
        self.work.publish(*(Record({"id": id_, "price": price}, timestamp=timestamp) for id_, price in rows))
        self.work.extract()

    def run(self, name: str, **more: Any) -> AbstractContextManager[Instance]:
        """Inside, tasks belong to this run."""
        return run_context(self.work.feed.name, name, **more)

    def rows(self) -> dict[str, int]:
        return {row["id"]: row["price"] for row in self.work.clean()}


@pytest.fixture
def shop(workshop: Callable[..., Workshop], tmp_path: Path) -> Shop:
    work = workshop(CHECKED, fields=FIELDS)
    path = tmp_path / f"{work.feed.name}.avsc"
    path.write_text(json.dumps(work.feed.schema))
    return Shop(work, str(path))


def test_a_task_whose_turn_it_is_not_gives_its_worker_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException

    from headrace.airflow import tasks, turns
    from headrace.lease import Leases

    monkeypatch.setattr(turns, "PATIENCE", timedelta(milliseconds=100))
    leases, clean = Leases(shop.work.lake.database), layout.lease(layout.clean_table(shop.work.feed.name))
    shop.arrive(("a", 1))
    assert leases.take(clean, holder="upkeep", lasting=LONG)
    with shop.run("one"), pytest.raises(AirflowRescheduleException) as later:
        tasks.transform(shop.path, "one")
    assert later.value.reschedule_date > datetime.now(UTC)
    leases.release(clean, holder="upkeep")

    with shop.run("one"):
        tasks.transform(shop.path, "one")
    # The run keeps its turn from transform to publish.
    assert not leases.take(clean, holder="upkeep", lasting=LONG)
    with shop.run("one"):
        checked = tasks.check(shop.path, "one")
        assert not leases.take(clean, holder="upkeep", lasting=LONG)
        tasks.publish(shop.path, "one", checked, None)
    assert leases.take(clean, holder="upkeep", lasting=LONG)
    leases.release(clean, holder="upkeep")
    assert shop.rows() == {"a": 1}

    # A failure gives it back.
    shop.arrive(("b", 500))
    with shop.run("two"):
        tasks.transform(shop.path, "two")
        with pytest.raises(AirflowFailException, match="price"):
            tasks.check(shop.path, "two")
    assert leases.take(clean, holder="upkeep", lasting=LONG)


def test_a_run_that_comes_too_late_to_publish_merges_and_checks_again(shop: Shop) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    from headrace.airflow import tasks

    shop.arrive(("a", 1))
    with shop.run("late"):
        tasks.transform(shop.path, "late")
        checked = tasks.check(shop.path, "late")
    shop.arrive(("b", 2))
    # As if the late run's turn had run out.
    shop.work.run()
    shop.arrive(("c", 3))
    with shop.run("late"):
        tasks.publish(shop.path, "late", checked, None)
    assert shop.rows() == {"a": 1, "b": 2, "c": 3}

    shop.arrive(("d", 4))
    with shop.run("later"):
        tasks.transform(shop.path, "later")
        checked = tasks.check(shop.path, "later")
    shop.work.run()
    with shop.run("later"), pytest.raises(AirflowSkipException):
        tasks.publish(shop.path, "later", checked, None)


def test_a_late_approval_holds_for_what_was_approved_and_for_nothing_else(shop: Shop) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from headrace import results
    from headrace.airflow import tasks
    from headrace.airflow.approval import STOPPED, Approval

    shop.arrive(("a", 500))
    with shop.run("stopped") as instance:
        tasks.transform(shop.path, "stopped")
        with pytest.raises(AirflowFailException):
            tasks.check(shop.path, "stopped")
        offered = dict(instance.told[STOPPED])
    assert len(offered["expectations"]) == 1
    assert "price" in offered["told"][0]
    approval = agreed(offered)
    assert str(Approval(**approval)) == "approved by on-call at 2026-03-01T12:00:00+00:00: agreed"

    def approved() -> None:
        with shop.run("stopped") as instance:
            instance.told[STOPPED] = offered
            tasks.publish(shop.path, "stopped", None, approval)

    shop.work.run()  # main moves on
    shop.arrive(("b", 900), ("C", 1))
    with pytest.raises(AirflowFailException, match="id"):
        approved()
    assert "b" not in shop.rows()
    found = results.latest(shop.work.feed.name, lake=shop.work.lake, count=5)
    assert [each.approval for each in found] == [None, None], "nothing was published by it"
    shop.arrive(("C", 0))
    shop.work.run()
    shop.arrive(("d", 700))
    approved()
    assert shop.rows()["d"] == 700
    kept = results.of_run(shop.work.feed.name, "stopped", lake=shop.work.lake)
    assert kept is not None
    assert kept.approval is not None
    assert (kept.approval.by, kept.approval.why) == ("on-call", "agreed")


def agreed(offered: Mapping[str, Any]) -> dict[str, Any]:
    """An approval of what is offered."""
    return {
        "by": "on-call", "why": "agreed", "at": "2026-03-01T12:00:00+00:00",
        "snapshot": offered["snapshot"], "expectations": offered["expectations"],
    }  # fmt: skip


def test_an_approval_is_noted_once_the_rows_are_published_if_need_be_by_the_next_try(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from headrace import results
    from headrace.airflow import tasks
    from headrace.airflow.approval import STOPPED

    shop.arrive(("a", 500))
    with shop.run("stopped") as instance:
        tasks.transform(shop.path, "stopped")
        with pytest.raises(AirflowFailException):
            tasks.check(shop.path, "stopped")
        offered = dict(instance.told[STOPPED])

    def approved() -> None:
        with shop.run("stopped") as instance:
            instance.told[STOPPED] = offered
            tasks.publish(shop.path, "stopped", None, agreed(offered))

    def dies(*given: Any, **more: Any) -> None:
        assert shop.rows() == {"a": 500}, "it would be noted before anybody sees the rows"
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(results, "approve", dies)
        with pytest.raises(ConnectionError):
            approved()
    approved()
    kept = results.of_run(shop.work.feed.name, "stopped", lake=shop.work.lake)
    assert kept is not None
    assert kept.approval is not None


def test_an_approval_of_an_earlier_try_is_none(shop: Shop) -> None:
    from headrace.airflow.approval import given

    approval = {"by": "on-call", "why": "agreed", "at": "now", "snapshot": "1", "expectations": []}
    assert given(approval, stopped=None) is None
    assert given(approval, stopped={"snapshot": "2"}) is None
    assert given(None, stopped={"snapshot": "1"}) is None
    assert given(approval, stopped={"snapshot": "1"}) is not None


def test_a_backfill_takes_the_archive_as_it_is_and_transforms_its_window_only(shop: Shop) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    from headrace.airflow import tasks

    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    interval = {"data_interval_start": noon - timedelta(hours=1), "data_interval_end": noon}
    with shop.run("again", **interval):
        assert tasks.window() is None
    with shop.run("again", run_type="backfill", **interval):
        assert tasks.window() == (1772362800000, 1772366400000)
        with pytest.raises(AirflowSkipException, match="a backfill takes the archive as it is"):
            tasks.extract(shop.path)
