"""An extract of a stream, killed or stopped around every call to Kinesis and S3: the archive equals the stream."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from nursery import Errand, Nursery, Point
from planting import plant
from stream_shop import StreamShop, kinesis_server, stream_shop

from headrace.stages import verify


@pytest.fixture(scope="module")
def shop(stack: Any) -> Iterator[StreamShop]:
    with kinesis_server() as url:
        yield stream_shop(url, shards=2)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as made:
        yield made


def errand(shop: StreamShop, *, point: Point | None = None, sign: int = signal.SIGKILL) -> Errand:
    feed = (shop.feed.file, json.dumps(shop.feed.schema))
    lake = replace(shop.lake)  # not opened, so that it can be sent
    return Errand(feed, {"kinesis": shop.url}, lake, (500_000, 1 << 27), point=point, sign=sign)


def put(shop: StreamShop) -> set[tuple[int, str]]:
    """A few records for each of both shards."""
    placed = {shop.put(str(number).encode(), key=f"key-{number}") for number in range(8)}
    assert {number for number, _ in placed} == {0, 1}
    return placed


def archived(shop: StreamShop) -> list[tuple[int, str]]:
    rows = shop.archived()
    for number in (0, 1):
        offsets = [row["offset"] for row in rows if row["partition"] == number]
        assert offsets == list(range(len(offsets)))
    return sorted((row["partition"], row["sequence"]) for row in rows)


def test_an_extract_that_is_killed_anywhere_leaves_no_gap_and_no_double(shop: StreamShop, nursery: Nursery) -> None:
    published = put(shop)
    assert nursery.run(errand(shop)).records == 8
    published |= put(shop)
    seen = nursery.run(errand(shop))
    assert seen.records == 8
    # The commit's own calls are killed with a topic's extract; those to Kinesis and its files are this one's.
    assert {name.partition(".")[0] for name, _, _ in seen.calls} == {"kinesis", "s3", "sql", "file"}
    calls = Counter(name for name, _, _ in seen.calls if name.startswith(("kinesis.", "s3.")))
    assert {"kinesis.DescribeStreamSummary", "kinesis.ListShards", "kinesis.GetRecords", "s3.PutObject"} <= calls.keys()
    points = [(name, number, when) for name in calls for number in range(calls[name]) for when in ("before", "after")]
    for point in points:
        published |= put(shop)
        assert nursery.run(errand(shop, point=point)).signal == signal.SIGKILL, point
        again = nursery.run(errand(shop))
        assert (again.error, again.records) == ("", 8), point
        assert archived(shop) == sorted(published), point


def test_an_extract_that_sleeps_while_another_commits_starts_over(shop: StreamShop, nursery: Nursery) -> None:
    known = set(archived(shop))
    published = put(shop)
    asleep = nursery.run(errand(shop, point=("kinesis.GetRecords", 0, "after"), sign=signal.SIGSTOP))
    assert asleep.stopped
    assert nursery.run(errand(shop)).records == 8
    woken = nursery.wake(asleep.stopped)
    assert (woken.error, woken.restarts, woken.records) == ("", 1, 0)
    assert archived(shop) == sorted(known | published)


@pytest.mark.parametrize(("kept", "gap"), [([1, 2, 3], (0, 1)), ([0, 2, 3], (1, 2)), ([0, 1, 2], (3, 4))])
def test_a_record_that_is_missing_anywhere_in_a_shard_is_a_gap(
    shop: StreamShop, kept: list[int], gap: tuple[int, int]
) -> None:
    one = stream_shop(shop.url)
    one.put_many(4)
    one.extract()
    assert verify.verify(one.feed, lake=one.lake, kafka={}).is_equal
    plant(one, lambda rows: rows.take(kept))
    (account,) = verify.verify(one.feed, lake=one.lake, kafka={}).accounts
    assert [(each.first, each.next) for each in account.findings if each.kind == "gap"] == [gap]
