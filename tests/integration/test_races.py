"""Races: two extracts at once, and one that sleeps and wakes; one wins, the other starts over, nothing is doubled."""

import signal
import threading
from collections.abc import Callable, Iterator

import pytest
from nursery import Nursery, Outcome, errand
from orphans import check_no_orphans
from workshop import Record, Workshop

from headrace.stages import verify

Make = Callable[..., Workshop]

ONE_PARTITION = {"key": ["id"], "order": ["revision"], "topic": {"partitions": 1}}
COLLISIONS = 3


@pytest.fixture(scope="module")
def nurseries() -> Iterator[tuple[Nursery, Nursery]]:
    with Nursery() as one, Nursery() as other:
        yield one, other


def check_equal(shop: Workshop) -> int:
    """Every record of the topic is archived once, as it is, and upkeep leaves no orphan; how many these are."""
    done = verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka)
    assert done.is_equal, [str(each) for account in done.accounts for each in account.findings]
    assert not any(account.lag for account in done.accounts)
    check_no_orphans(shop)
    return sum(account.equal for account in done.accounts)


def test_two_extracts_that_race_archive_each_record_once(workshop: Make, nurseries: tuple[Nursery, Nursery]) -> None:
    shop, ended = workshop(), threading.Event()
    shop.publish(Record(b"first"))

    def produce() -> None:
        while not ended.is_set():
            shop.publish(*(Record(b"x" * 100, partition=number % 3) for number in range(30)))

    producing = threading.Thread(target=produce)
    producing.start()
    outcomes: list[Outcome] = []
    try:
        while sum(each.restarts for each in outcomes) < COLLISIONS:
            for each in nurseries:
                each.ask(errand(shop, times=5))
            outcomes += [each.hear() for each in nurseries]
            assert len(outcomes) < 40, "they hardly ever met"
    finally:
        ended.set()
        producing.join()
    # One that came second three times in a row leaves it to its next try.
    assert {each.error.partition(":")[0] for each in outcomes} <= {"", "MovedError"}
    last = shop.extract().records
    assert check_equal(shop) == sum(each.records for each in outcomes) + last


# Asleep with a file put, and asleep with everything done but the statement that tells the catalog.
@pytest.mark.parametrize(
    ("point", "seconds"), [(("s3.PutObject", 0, "after"), 60), (("file.close", -1, "after"), 0)], ids=["minute", "wink"]
)
def test_one_that_sleeps_while_another_commits_starts_over(
    workshop: Make, nurseries: tuple[Nursery, Nursery], point: tuple[str, int, str], seconds: float
) -> None:
    shop, (sleeper, other) = workshop(ONE_PARTITION), nurseries
    calls = warmed(shop, other)
    name, number, when = point
    if number < 0:
        number += sum(call == name for call, *_ in calls)
    shop.publish(Record(b"for both"))
    asleep = sleeper.run(errand(shop, point=(name, number, when), sign=signal.SIGSTOP))
    assert asleep.stopped
    assert other.run(errand(shop)).records == 1
    shop.publish(Record(b"after the other"))
    threading.Event().wait(seconds)  # Time itself is what this is about.
    woken = sleeper.wake(asleep.stopped)
    assert (woken.restarts, woken.records, woken.error) == (1, 1, "")
    assert check_equal(shop) == 4


def warmed(shop: Workshop, nursery: Nursery) -> list[tuple[str, float, float]]:
    """What a second extract calls, once the first has made the table."""
    for _ in range(2):
        shop.publish(Record(b"before"))
        outcome = nursery.run(errand(shop))
        assert outcome.records == 1
    return list(outcome.calls)


def test_one_that_sleeps_within_its_commit_is_shut_out_by_the_catalog(
    workshop: Make, nurseries: tuple[Nursery, Nursery]
) -> None:
    shop, (sleeper, other) = workshop(ONE_PARTITION), nurseries
    warmed(shop, other)
    shop.publish(Record(b"for both"))
    asleep = sleeper.run(errand(shop, point=("sql.commit", 0, "before"), sign=signal.SIGSTOP))
    assert asleep.stopped
    # The sleeper holds the lock of the catalog's row; the database ends its transaction, and the other goes on.
    assert other.run(errand(shop)).records == 1
    woken = sleeper.wake(asleep.stopped)
    assert woken.error.startswith("ServiceAway")
    assert shop.extract().records == 0
    assert check_equal(shop) == 3


def test_one_that_sleeps_longer_than_a_run_may_take_does_not_commit(
    workshop: Make, nurseries: tuple[Nursery, Nursery]
) -> None:
    shop, (sleeper, _) = workshop({**ONE_PARTITION, "runs": {"time_limit": "8s"}}), nurseries
    shop.publish(Record(b"x"))
    asleep = sleeper.run(errand(shop, point=("s3.PutObject", 0, "after"), sign=signal.SIGSTOP))
    assert asleep.stopped
    threading.Event().wait(8)  # Time itself is what this is about.
    woken = sleeper.wake(asleep.stopped)
    assert woken.error.startswith("PlanExpired")
    assert shop.extract().records == 1
    assert check_equal(shop) == 1
