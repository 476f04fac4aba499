"""Clocks that jump: neither a producer's nor the machine's may lose, repeat or misplace a record."""

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka import Producer
from workshop import ORDER, Record, Workshop

from headrace import layout
from headrace.kafka.span import Span
from headrace.lake import heads_of
from headrace.stages import loss

Make = Callable[..., Workshop]
HOUR_S = 3600


def order(number: int) -> dict[str, Any]:
    made = {"id": f"o{number}", "revision": 1, "status": "paid"}
    return {**made, "price": Decimal("1.00"), "email": None, "created_at": 0}


def test_a_machine_whose_clock_is_set_back_between_extracts_goes_on(
    workshop: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, now = workshop(), time.time
    shop.merge(Record(order(0)))
    monkeypatch.setattr(time, "time", lambda: now() - 3 * HOUR_S)
    shop.publish(Record(order(1)))
    assert shop.extract().records == 1
    table = shop.lake.find(layout.archive_table(shop.feed.name))
    found = loss.Lost(shop.lake, table, heads_of(table), {0: Span(2, 2)})
    loss.accept(found, at="2026-01-01T00:00:00+00:00", by="a test", why="a commit of the other kind")
    monkeypatch.undo()
    shop.merge(Record(order(2)))  # Iceberg in Java opens no table whose snapshots go back in time
    assert [row["id"] for row in shop.clean()] == ["o0", "o1", "o2"]


def test_a_machine_whose_clock_jumps_while_it_reads_commits_what_it_planned(
    workshop: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, now = workshop(), time.time
    shop.publish(*(Record(order(number)) for number in range(20)))
    called = iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: now() + (HOUR_S if next(called) % 2 else -HOUR_S))
    assert shop.extract().records == 20
    monkeypatch.undo()
    assert shop.extract().records == 0
    assert next(called) > 0, "something asked the clock that jumped"


def test_a_producers_clock_may_say_anything(workshop: Make) -> None:
    # The broker keeps no record out, or deletes it at once, for what its timestamp says.
    shop = workshop({**ORDER, "topic": {"retention": "forever"}})
    stamps = [1, 946684800000 - 1, int(time.time() * 1000) - 400 * 24 * HOUR_S * 1000, int(time.time() * 1000) + 60_000]
    producer = Producer(dict(shop.kafka))
    for stamp in stamps:
        producer.produce(shop.feed.topic, value=b"x", partition=0, timestamp=stamp)
    assert producer.flush(30) == 0
    assert shop.extract().records == len(stamps)
    rows = shop.lake.find(layout.archive_table(shop.feed.name)).scan().to_arrow().to_pylist()
    rows.sort(key=lambda row: row["offset"])
    assert [row["timestamp"] for row in rows] == stamps, "kept as they came"
    assert [row["hour"] is None for row in rows] == [True, True, False, False], "filed apart when implausible"
