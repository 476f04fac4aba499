"""Upkeep beside a feed's runs: commit after commit, nothing is lost, nothing grows, and nobody becomes slow."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from confluent_kafka import Producer
from keeping import clean_table, is_equal, kept, of, row
from planting import archive_table
from shelf import added
from workshop import Record, Workshop

from headrace import layout
from headrace.lake import heads_of
from headrace.layout import Identifier
from headrace.lease import Leases, turn
from headrace.stages import carrying, compaction
from headrace.stages.upkeep import Upkeep

Make = Callable[..., Workshop]

COMMITS, COMPARED = 500, 50
"""How many extracts, and how many of the first and of the last are compared."""
PUBLISHES, RUNS = 100, 6
"""How many that only add a row, and how many that merge."""
ROUNDS = 4
"""How often those who commit let upkeep go through once: who gets how many turns by chance, the machine decides."""
OLD = 9
"""After so many days nobody needs the clean table's snapshots of now."""
CREATED = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = timedelta(seconds=30)


@dataclass
class Meanwhile:
    """Upkeep that goes on beside a test."""

    done: list[Upkeep] = field(default_factory=list)
    _again: threading.Condition = field(default_factory=threading.Condition)

    def add(self, upkeep: Upkeep) -> None:
        with self._again:
            self.done.append(upkeep)
            self._again.notify_all()

    def go_through(self) -> None:
        """Wait until it has gone through everything once more; what is under way may have looked before."""
        with self._again:
            wanted = len(self.done) + 2
            assert self._again.wait_for(lambda: len(self.done) >= wanted, timeout=300)


@contextmanager
def kept_meanwhile(shop: Workshop, *, days: int = 3) -> Iterator[Meanwhile]:
    """Upkeep again and again, as it will be in some days, when all of now is old."""
    meanwhile = Meanwhile()
    over = threading.Event()

    def keep() -> None:
        while not over.is_set():
            meanwhile.add(kept(shop, days=days, patience=SECONDS / 6))
            over.wait(1)

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield meanwhile
    finally:
        over.set()
        thread.join()


def check_it_only_gave_way(done: list[Upkeep]) -> None:
    """Whatever was left was so because a run had the turn: runs without a pause between them leave little room."""
    left = [reason for upkeep in done for table in upkeep.tables for reason in table.left]
    assert [reason for reason in left if " the turn " not in reason] == []


def in_turn(shop: Workshop, table: Identifier, work: Callable[[], object]) -> float:
    """Work as a run's task does, in its turn; how much work that was, in seconds of its own thread's.

    By the clock it would tell as much of the machine's other work.
    """
    begun = time.thread_time()
    with turn(Leases(shop.lake.database), layout.lease(table), holder="a run", doing="it", patience=SECONDS):
        work()
    return time.thread_time() - begun


def test_500_commits_with_upkeep_beside_lose_nothing_and_stay_quick(workshop: Make) -> None:
    shop, took = workshop({"key": ["id"], "topic": {"partitions": 1}}), []
    name = layout.archive_table(shop.feed.name)
    producer = Producer({**shop.kafka, "acks": "all", "linger.ms": 0})
    with kept_meanwhile(shop) as meanwhile:
        for number in range(COMMITS):
            producer.produce(shop.feed.topic, b"%d" % number, partition=0)
            assert producer.flush(30) == 0
            took.append(in_turn(shop, name, shop.extract))
            if (number + 1) % (COMMITS // ROUNDS) == 0:
                meanwhile.go_through()
    check_it_only_gave_way(meanwhile.done)
    assert sum(of(each, "archive").expired for each in meanwhile.done if each.tables) > COMMITS / 2
    assert is_equal(shop)
    table = archive_table(shop)
    assert heads_of(table).of(0) == COMMITS
    assert table.scan().to_arrow().num_rows == COMMITS
    kept(shop, days=3)
    table = archive_table(shop)
    assert len(carrying.manifests(table)) <= carrying.MANY + 1
    assert len(table.metadata.snapshots) <= 2
    assert statistics.median(took[-COMPARED:]) < 2 * statistics.median(took[:COMPARED])


def test_publish_after_publish_with_compaction_beside_loses_nothing_and_stays_quick(workshop: Make) -> None:
    shop, took = workshop(), []
    name = layout.clean_table(shop.feed.name)
    shop.merge(row("a", 1))
    given = row("", 1).value
    assert isinstance(given, Mapping)
    rows = [{**given, "id": f"k{number:03}", "created_at": CREATED} for number in range(PUBLISHES)]
    with kept_meanwhile(shop, days=OLD) as meanwhile:
        for number, each in enumerate(rows):
            took.append(in_turn(shop, name, partial(added, shop, each)))
            if (number + 1) % (PUBLISHES // ROUNDS) == 0:
                meanwhile.go_through()
    check_it_only_gave_way(meanwhile.done)
    cleaned = [of(each, "clean") for each in meanwhile.done]
    assert sum(each.compacted for each in cleaned) > PUBLISHES / 2
    assert sum(each.expired for each in cleaned) > PUBLISHES / 2
    assert shop.merge(row("z", 1))["inserted"] == 1
    assert [each["id"] for each in shop.clean()] == ["a", *(each["id"] for each in rows), "z"]
    kept(shop, days=OLD)
    table = clean_table(shop)
    assert (len(table.metadata.refs), len(list(table.scan().plan_files())) < compaction.INPUTS) == (1, True)
    quarter = PUBLISHES // 4
    assert statistics.median(took[-quarter:]) < 2 * statistics.median(took[:quarter])


def test_runs_with_upkeep_beside_publish_what_they_merge(workshop: Make) -> None:
    shop = workshop()
    name = layout.clean_table(shop.feed.name)

    def run(number: int) -> None:
        shop.transform(f"run {number}")
        shop.publish_run(f"run {number}")

    with kept_meanwhile(shop) as meanwhile:
        for number in range(RUNS):
            shop.publish(row(f"a{number}"), row("b", number), Record(b"broken"))
            in_turn(shop, layout.archive_table(shop.feed.name), shop.extract)
            in_turn(shop, name, lambda number=number: run(number))  # type: ignore[misc]
    check_it_only_gave_way(meanwhile.done)
    assert [each["id"] for each in shop.clean()] == [*(f"a{number}" for number in range(RUNS)), "b"]
    assert len(shop.quarantine()) == RUNS
    assert is_equal(shop)
    kept(shop, days=3)
    assert len(clean_table(shop).metadata.refs) == 1
