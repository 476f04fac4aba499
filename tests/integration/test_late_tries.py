"""Late tries: one that was taken for dead writes to its run's branch after its successor, and no row is doubled."""

from collections.abc import Callable, Iterator

import pytest
from interception import STOP
from nursery import Nursery, errand
from whole_run import WholeRun
from workshop import Record, Workshop

from headrace.errors import BranchMoved
from headrace.stages import check

Make = Callable[..., Workshop]

FIELDS = [{"name": "id", "type": "string"}, {"name": "revision", "type": "int"}]
DECLARED = {"key": ["id"], "order": ["revision"]}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    modules = ["whole_run", "headrace.airflow.connections", "spark_jobs.transform"]
    with Nursery([*modules, "pyspark.sql.connect.session"]) as opened:
        yield opened


def last_setting(shop: Workshop, nursery: Nursery) -> int:
    """The number of the call that tells Spark what to note with the rows: the next one writes them."""
    shop.publish(Record({"id": "a", "revision": 1}))
    watched = nursery.run(errand(shop, work=WholeRun(shop, "watched", checks=False).sent()))
    assert watched.records == 1
    return sum(name == "grpc.Config" for name, *_ in watched.calls) - 1


def test_a_try_that_sleeps_while_its_run_is_done_again_doubles_nothing(workshop: Make, nursery: Nursery) -> None:
    shop = workshop(DECLARED, fields=FIELDS)
    point = ("grpc.Config", last_setting(shop, nursery), "after")
    shop.publish(Record({"id": "b", "revision": 1}), Record({"id": "c", "revision": 1}))
    work = WholeRun(shop, "run", checks=False)
    asleep = nursery.run(errand(shop, work=work.sent(), point=point, sign=STOP))
    assert asleep.stopped
    shop.transform("run")
    woken = nursery.wake(asleep.stopped)
    assert woken.error.startswith("BranchMoved: "), "its rows are beside those of its successor"
    with pytest.raises(BranchMoved, match="an earlier try of this run wrote to its branch too"):
        check.plan(shop.feed, lake=shop.lake, run="run")
    work.go()
    assert shop.clean() == [{"id": each, "revision": 1} for each in "abc"]
