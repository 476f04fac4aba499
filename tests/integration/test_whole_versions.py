"""Whole versions: whoever reads while runs are published sees every row of one run, and never an earlier run again."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from shelf import published
from workshop import Workshop

from headrace import layout
from headrace.airflow import connections
from headrace.lake import spark_properties
from headrace.stages.transform import spark_name
from spark_jobs.session import session

Make = Callable[..., Workshop]
Seen = Mapping[int, int]
"""What one read has found: how many rows of which revision."""

KEYS, DAYS, PUBLISHES = 200, 4, 50
PACE = 5
"""After so many publishes all readers must have read once more."""
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": "int"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
DECLARED = {"key": ["id"], "order": ["revision"], "partition": {"field": "at", "by": "day"}}


@pytest.fixture
def shop(workshop: Make) -> Workshop:
    """A feed whose rows lie in several partitions, all of revision 0."""
    made = workshop(DECLARED, fields=FIELDS)
    published(made, *rows(0))
    return made


def rows(revision: int, *, upto: int = KEYS) -> list[dict[str, Any]]:
    """All rows, those up to a number of this revision, and others of the one before."""
    return [
        {"id": f"k{n:03}", "revision": revision - (n >= upto), "at": FIRST + timedelta(days=n % DAYS)}
        for n in range(KEYS)
    ]


@pytest.fixture
def spark(shop: Workshop) -> Iterator[Any]:
    with session(connections.spark_remote(), properties=spark_properties(shop.lake)) as opened:
        yield opened


def by_pyiceberg(shop: Workshop) -> Seen:
    table = shop.lake.catalog.load_table(layout.clean_table(shop.feed.name))
    found = table.scan(row_filter="_hidden = false", selected_fields=("revision",)).to_arrow()
    return Counter(found["revision"].to_pylist())


def by_spark(shop: Workshop, spark: Any) -> Seen:
    table = spark.table(spark_name(shop.lake.name, layout.clean_table(shop.feed.name)))
    counted = table.where("not _hidden").groupBy("revision").count().collect()
    return {row["revision"]: row["count"] for row in counted}


@dataclass
class Reader:
    """Reads all the time, in a thread."""

    read: Callable[[], Seen]
    seen: list[Seen] = field(default_factory=list)
    error: Exception | None = None
    _news: threading.Condition = field(default_factory=threading.Condition)

    def go(self, ended: threading.Event) -> None:
        while not ended.is_set() and not self.error:
            try:
                self.seen.append(self.read())
            except Exception as error:  # noqa: BLE001
                self.error = error
            with self._news:
                self._news.notify_all()

    def reads_once_more(self) -> None:
        """Wait for a read that began after this call."""
        wanted = len(self.seen) + 2
        with self._news:
            assert self._news.wait_for(lambda: self.error or len(self.seen) >= wanted, timeout=120)
        assert self.error is None


@contextmanager
def reading(*readers: Reader) -> Iterator[None]:
    ended = threading.Event()
    threads = [threading.Thread(target=reader.go, args=(ended,)) for reader in readers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def assert_whole(seen: Sequence[Seen]) -> None:
    """Every read found all rows, of one revision, and none an earlier one than the read before it."""
    assert all(list(each.values()) == [KEYS] for each in seen), seen
    revisions = [revision for each in seen for revision in each]
    assert revisions == sorted(revisions)


def test_who_reads_during_many_publishes_sees_only_whole_versions(shop: Workshop, spark: Any) -> None:
    readers = [Reader(lambda: by_pyiceberg(shop)), Reader(lambda: by_spark(shop, spark))]
    with reading(*readers):
        for revision in range(1, PUBLISHES + 1):
            published(shop, *rows(revision))
            if revision % PACE == 0:
                for reader in readers:
                    reader.reads_once_more()
    for reader in readers:
        assert reader.error is None
        assert_whole(reader.seen)
        assert len({revision for each in reader.seen for revision in each}) >= PUBLISHES // PACE
        assert reader.seen[-1] == {PUBLISHES: KEYS}


def test_a_switch_in_two_commits_would_be_noticed_by_either_reader(shop: Workshop, spark: Any) -> None:
    published(shop, *rows(1, upto=KEYS // 2))
    for between in (by_pyiceberg(shop), by_spark(shop, spark)):
        with pytest.raises(AssertionError):
            assert_whole([between])
    published(shop, *rows(1))
    assert_whole([{0: KEYS}, by_pyiceberg(shop), by_spark(shop, spark)])


@pytest.mark.parametrize(
    "seen", [[{1: KEYS - 1}], [{1: KEYS + 1}], [{1: KEYS - 1, 2: 1}], [{}], [{2: KEYS}, {1: KEYS}]], ids=str
)
def test_what_is_no_whole_version_or_an_earlier_one_fails(seen: Sequence[Seen]) -> None:
    with pytest.raises(AssertionError):
        assert_whole(seen)
