"""Kills: an extract is killed before and after every call that leaves its process, then run again.

The points come from a run that was watched: whatever passed a door and went over the wire. A call that goes around the
doors, or that only some later run makes, fails the tests.
"""

import difflib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from nursery import PLANTS, Nursery, Outcome, Point, errand
from orphans import check_no_orphans
from planting import archive_table
from spark_reading import asked_of, deadly_cluster_of
from wiretap import Wiretap
from workshop import Record, Workshop

from headrace.stages import extract, verify

Make = Callable[..., Workshop]

HOUR_MS = 3_600_000
ONE_PARTITION = {"key": ["id"], "order": ["revision"], "topic": {"partitions": 1}}
LOCAL = "127.0.0.1"
EVERY = 10
"""After how many kills the whole archive is held against the whole topic."""
ON_THE_WIRE = {"s3": ("s3.", "file."), "catalog": ("sql.",)}
"""By service: the doors that lead to it. Kafka's clients talk whenever they like: there every call counts."""
WAITS = {"kafka.AdminClient.poll"}
"""What passes the time while a broker has no leader for a partition: only some runs do."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as opened:
        yield opened


@dataclass
class Recording:
    """One watched run."""

    outcome: Outcome
    sent: dict[str, list[tuple[float, bytes]]]

    @property
    def bypasses(self) -> list[str]:
        """What went around the doors."""
        return [*self.outcome.bypasses, *(f"{service}: {begun!r}" for service, begun in self._outside())]

    def _outside(self) -> Iterator[tuple[str, bytes]]:
        for service, chunks in self.sent.items():
            doors = [call for call in self.outcome.calls if call[0].startswith(ON_THE_WIRE[service])]
            for moment, begun in chunks:
                if not any(start <= moment <= end for _, start, end in doors):
                    yield service, begun

    @property
    def external(self) -> list[tuple[str, int]]:
        """The calls that left the process, by name and number, in their order."""
        numbers: dict[str, int] = {}
        found = []
        for name, start, end in self.outcome.calls:
            number = numbers.setdefault(name, 0)
            numbers[name] += 1
            if name.startswith("kafka.") or self._spoke(name, start, end):
                found.append((name, number))
        return found

    def _spoke(self, name: str, start: float, end: float) -> bool:
        return any(
            start <= moment <= end
            for service, chunks in self.sent.items()
            if name.startswith(ON_THE_WIRE[service])
            for moment, _ in chunks
        )


def recorded(shop: Workshop, nursery: Nursery, **more: Any) -> Recording:
    """Extract once, watched from within and on the wire."""
    asked = errand(shop, **more)
    s3, catalog = Wiretap(urlsplit(asked.lake.storage.endpoint).port), Wiretap(asked.lake.database.port)
    lake = replace(
        asked.lake,
        storage=replace(asked.lake.storage, endpoint=f"http://{LOCAL}:{s3.port}"),
        database=replace(asked.lake.database, port=catalog.port),
    )
    broker = shop.kafka["bootstrap.servers"].rpartition(":")
    peers = frozenset({(broker[0], int(broker[2])), (LOCAL, s3.port), (LOCAL, catalog.port)})
    outcome = nursery.run(replace(asked, lake=lake, peers=peers))
    assert (outcome.records, outcome.error) == (2, "")
    s3.close()
    catalog.close()
    return Recording(outcome, {"s3": s3.sent, "catalog": catalog.sent})


def publish(shop: Workshop) -> None:
    """Records of two hours: an extract puts two files, each in a thread."""
    now = int(time.time() * 1000)
    shop.publish(Record(b"now", key="a", timestamp=now), Record(b"before", key="b", timestamp=now - HOUR_MS))


def check_equal(shop: Workshop, told: object) -> None:
    done = verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka)
    assert done.is_equal, (told, [str(each) for account in done.accounts for each in account.findings])
    assert [account.lag for account in done.accounts] == [0], told
    assert [account.equal for account in done.accounts] == [done.accounts[0].head], told


def kill(shop: Workshop, nursery: Nursery, point: Point, **more: Any) -> Outcome:
    """Kill an extract at a point, then run it again."""
    publish(shop)
    killed = nursery.run(errand(shop, point=point, **more))
    assert not killed.error, killed.error
    if not killed.signal:
        # The clients' own pace decides how often some calls are made; this run made fewer.
        assert sum(name == point[0] for name, *_ in killed.calls) <= point[1], point
    shop.extract()
    return killed


def points(calls: list[tuple[str, int]]) -> list[Point]:
    return [(name, number, when) for name, number in calls for when in ("before", "after")]


def test_killed_before_and_after_every_call_nothing_is_lost_or_doubled(workshop: Make, nursery: Nursery) -> None:
    shop = workshop(ONE_PARTITION)
    publish(shop)
    nursery.run(errand(shop))
    forget_soon(shop)
    publish(shop)
    recording = recorded(shop, nursery)
    assert recording.bypasses == []
    calls = recording.external
    wanted = {"s3.PutObject", "sql.commit", "kafka.Consumer.consume", "file.close", "file.delete"}
    assert wanted <= {name for name, _ in calls}
    reached = set()
    for number, point in enumerate(points(calls)):
        if kill(shop, nursery, point).signal:
            reached.add(point[0])
        # Nothing heals: what a kill had spoilt would still be there.
        if number % EVERY == 0:
            check_equal(shop, point)
    assert nursery.run(errand(shop)).records == 0
    assert {name for name, _ in calls} - WAITS <= reached, "each call was killed at least once"
    publish(shop)
    later = recorded(shop, nursery)
    assert later.bypasses == []
    assert {name for name, _ in later.external} - WAITS <= reached, "a table with a longer past makes another call"
    check_no_orphans(shop)
    check_equal(shop, "after upkeep")


def forget_soon(shop: Workshop) -> None:
    """Let each commit delete the metadata of an earlier one, as it does once a table has had fifty."""
    with archive_table(shop).transaction() as transaction:
        transaction.set_properties({"write.metadata.previous-versions-max": "1"})


def added(calls: list[tuple[str, int]], known: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Those calls that are not in a run that is known, each taken for the one at its place."""
    matching = difflib.SequenceMatcher(
        a=[name for name, _ in calls], b=[name for name, _ in known], autojunk=False
    ).get_matching_blocks()
    same = {block.a + step for block in matching for step in range(block.size)}
    return [call for at, call in enumerate(calls) if at not in same]


def test_a_first_extract_that_is_killed_anywhere_leaves_a_table_or_none(workshop: Make, nursery: Nursery) -> None:
    first, later = workshop(ONE_PARTITION), workshop(ONE_PARTITION)
    publish(first)
    begun = recorded(first, nursery)
    publish(later)
    nursery.run(errand(later))
    publish(later)
    follow = recorded(later, nursery)
    assert begun.bypasses == []
    only_first = added(begun.external, follow.external)
    assert any(name == "file.create" for name, _ in only_first), "a first extract makes the table"
    killed = {point: workshop(ONE_PARTITION) for point in points(only_first)}
    for point, shop in killed.items():
        kill(shop, nursery, point)
        check_equal(shop, point)
    for shop in killed.values():
        check_no_orphans(shop)


@pytest.mark.parametrize("event", ["before-call", "after-call"])
def test_a_worker_of_spark_that_is_killed_around_its_put_loses_and_doubles_nothing(
    workshop: Make, caplog: pytest.LogCaptureFixture, event: str
) -> None:
    shop = workshop(ONE_PARTITION)
    publish(shop)
    cluster, limits = deadly_cluster_of(shop, event), extract.Limits(1000, 1 << 20)
    done = extract.extract(shop.feed, lake=shop.lake, kafka=shop.kafka, limits=limits, cluster=cluster)
    assert done.records == 2
    assert "Spark gave up" in caplog.text
    check_no_orphans(shop)
    check_equal(shop, event)


@pytest.fixture(scope="module")
def spark_nursery() -> Iterator[Nursery]:
    with Nursery(["spark_jobs.extract", "pyspark.sql.connect.session"]) as opened:
        yield opened


def test_killed_before_and_after_every_call_to_spark_nothing_is_lost_or_doubled(
    workshop: Make, spark_nursery: Nursery
) -> None:
    shop = workshop(ONE_PARTITION)
    spark = asked_of(shop)
    publish(shop)
    spark_nursery.run(errand(shop, spark=spark))
    publish(shop)
    watched = spark_nursery.run(errand(shop, spark=spark))
    assert (watched.records, watched.error) == (2, "")
    counts = Counter(name for name, *_ in watched.calls if name.startswith("grpc."))
    assert {"grpc.ExecutePlan", "grpc.ExecutePlan.answer"} <= counts.keys()
    # The first call of each kind, one amid them and the last.
    calls = [(name, number) for name, count in counts.items() for number in {0, count // 2, count - 1}]
    reached = set()
    for point in points(sorted(calls)):
        if kill(shop, spark_nursery, point, spark=spark).signal:
            reached.add(point[0])
        check_equal(shop, point)
    assert reached == counts.keys()
    check_no_orphans(shop)
    check_equal(shop, "after upkeep")


NOTICED = {
    "urllib": "a connection of Python's",
    "arrow": "s3: b'",
    "psycopg": "catalog: b'",
    "librdkafka": "a Kafka client",
    "stranger": "a connection to ('127.0.0.1'",
    "process": "another process",
}


@pytest.mark.parametrize("plant", sorted(PLANTS))
def test_a_call_that_goes_around_the_doors_is_noticed(workshop: Make, nursery: Nursery, plant: str) -> None:
    shop = workshop(ONE_PARTITION)
    publish(shop)
    noticed = recorded(shop, nursery, plant=plant).bypasses
    assert any(each.startswith(NOTICED[plant]) for each in noticed), noticed
