"""Kafka, S3 or the catalog away: a clear error in a bounded time, nothing half done, and the next run goes on."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker import Broker, free_port
from confluent_kafka import Producer
from forwarder import Forwarder
from workshop import Workshop

from headrace import layout, storage
from headrace.errors import HeadraceError, ServiceAway, ServiceRefused, TopicSilent
from headrace.kafka import span, topic
from headrace.kafka.pace import Rate
from headrace.lake import heads_of
from headrace.slice import Slice
from headrace.stages import extract, loss, replay

Make = Callable[..., Workshop]


@pytest.fixture
def shop(workshop: Make) -> Workshop:
    """A feed with ten records archived, and ten more that are not."""
    made = workshop()
    produce(made, 10)
    assert made.extract().records == 10
    produce(made, 10)
    return made


def produce(shop: Workshop, count: int) -> None:
    producer = Producer(dict(shop.kafka))
    for number in range(count):
        producer.produce(shop.feed.topic, value=b"%d" % number, partition=0)
    assert producer.flush(30) == 0


def archived(shop: Workshop) -> list[int]:
    table = shop.lake.find(layout.archive_table(shop.feed.name))
    return sorted(table.scan(selected_fields=("offset",)).to_arrow()["offset"].to_pylist())


@pytest.fixture
def s3(shop: Workshop) -> Iterator[tuple[Workshop, Forwarder]]:
    """The feed, with S3 behind a forwarder."""
    forwarder = Forwarder(int(shop.lake.storage.endpoint.rpartition(":")[2]))
    reached = replace(shop.lake.storage, endpoint=f"http://127.0.0.1:{forwarder.port}")
    yield replace(shop, lake=replace(shop.lake, storage=reached)), forwarder
    forwarder.cut()


@pytest.fixture
def catalog(shop: Workshop) -> Iterator[tuple[Workshop, Forwarder]]:
    """The feed, with the catalog behind a forwarder."""
    forwarder = Forwarder(shop.lake.database.port)
    reached = replace(shop.lake.database, port=forwarder.port)
    yield replace(shop, lake=replace(shop.lake, database=reached)), forwarder
    forwarder.cut()


def told(error: HeadraceError, *, service: str, connection: str, kept: str = "Nothing was committed") -> None:
    """A clear error: which service and where, that nothing is half done, and what to look at."""
    text = str(error)
    assert text.startswith(service), text
    assert kept in text
    assert connection in text
    assert error.retry is isinstance(error, ServiceAway)


def test_a_broker_that_is_away_is_told_by_its_address(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic, "TIMEOUT_S", 1.0)
    server = f"127.0.0.1:{free_port()}"
    nowhere = replace(shop, kafka={"bootstrap.servers": server, "log_level": 0})
    with pytest.raises(ServiceAway, match="Connection refused") as raised:
        nowhere.extract()
    told(raised.value, service=f"Kafka at {server} does not answer", connection=layout.KAFKA_CONNECTION)
    assert shop.extract().records == 10


def test_s3_that_is_away_is_told_by_its_address(s3: tuple[Workshop, Forwarder]) -> None:
    shop, forwarder = s3
    forwarder.cut()
    with pytest.raises(ServiceAway, match="AWS Error") as raised:
        shop.extract()
    address = f"S3 at http://127.0.0.1:{forwarder.port} does not answer"
    told(raised.value, service=address, connection=layout.S3_CONNECTION)
    forwarder.restore()
    assert shop.extract().records == 10
    assert archived(shop) == list(range(20))


@pytest.mark.parametrize("sent", [b"PUT /headrace/archive/t_", b"PUT /headrace/archive/t_%s/metadata"])
def test_s3_that_goes_away_while_files_are_written_leaves_nothing_half_done(
    s3: tuple[Workshop, Forwarder], sent: bytes
) -> None:
    shop, forwarder = s3
    forwarder.before(sent.replace(b"t_%s", shop.feed.name.encode()))
    with pytest.raises(ServiceAway) as raised:
        shop.extract()
    told(raised.value, service="S3 at", connection=layout.S3_CONNECTION)
    forwarder.restore()
    assert archived(shop) == list(range(10))
    assert shop.extract().records == 10
    assert archived(shop) == list(range(20))


def test_s3_that_is_silent_is_given_up_in_a_bounded_time(
    s3: tuple[Workshop, Forwarder], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, forwarder = s3
    monkeypatch.setattr(storage, "READ_S", 1)
    assert shop.lake.catalog is not None, "it takes its time-outs when it is opened"
    held, woken = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        woken.wait(60)

    forwarder.before(b"PUT /headrace/archive/", hold)
    # One connection says nothing more; the client gives it up, asks again on another and is answered.
    assert shop.extract().records == 10
    assert held.is_set()
    assert archived(shop) == list(range(20))
    woken.set()


def test_a_file_whose_answer_was_lost_is_known_as_our_own(s3: tuple[Workshop, Forwarder]) -> None:
    shop, forwarder = s3
    shop.lake.s3.meta.events.register("needs-retry.s3.PutObject", lambda response, **_: answers.append(response))
    answers: list[Any] = []
    forwarder.lose_answer(b"PUT /headrace/archive/" + shop.feed.topic.encode())
    assert shop.extract().records == 10
    assert [answer and answer[0].status_code for answer in answers] == [None, 412], "it was there already"
    assert archived(shop) == list(range(20))


def test_a_replay_without_s3_tells_that_it_goes_on_where_it_stopped(s3: tuple[Workshop, Forwarder]) -> None:
    from headrace.airflow import connections

    shop, forwarder = s3
    planned = replay.plan(
        shop.feed, lake=shop.lake, kafka=shop.kafka, slice_=Slice(), to=None, same_partitions=False,
        signing=connections.signing_key(),
    )  # fmt: skip
    forwarder.cut()
    with pytest.raises(ServiceAway) as raised:
        replay.run(planned, lake=shop.lake, kafka=shop.kafka, now=0, rate=Rate())
    kept = "What was committed before stays, and the next try goes on from there."
    told(raised.value, service="S3 at", connection=layout.S3_CONNECTION, kept=kept)
    forwarder.restore()
    assert replay.run(planned, lake=shop.lake, kafka=shop.kafka, now=0, rate=Rate()).records == 10


def test_a_catalog_that_is_away_is_told_by_its_address(catalog: tuple[Workshop, Forwarder]) -> None:
    shop, forwarder = catalog
    forwarder.cut()
    with pytest.raises(ServiceAway) as raised:
        shop.extract()
    address = f"The catalog at 127.0.0.1:{forwarder.port}/catalog does not answer"
    told(raised.value, service=address, connection=layout.CATALOG_CONNECTION, kept="whole or not at all")
    assert shop.lake.database.password not in str(raised.value)
    forwarder.restore()
    assert shop.extract().records == 10


def test_a_catalog_that_goes_away_before_it_commits_has_committed_nothing(catalog: tuple[Workshop, Forwarder]) -> None:
    shop, forwarder = catalog
    forwarder.before(b"COMMIT")
    with pytest.raises(ServiceAway, match="whole or not at all"):
        shop.extract()
    forwarder.restore()
    assert archived(shop) == list(range(10))
    assert shop.extract().records == 10
    assert archived(shop) == list(range(20))


def test_a_commit_whose_answer_was_lost_is_seen_by_the_next_run(catalog: tuple[Workshop, Forwarder]) -> None:
    shop, forwarder = catalog
    forwarder.cut_after(b"COMMIT")
    with pytest.raises(ServiceAway, match="whole or not at all"):
        shop.extract()
    forwarder.restore()
    assert archived(shop) == list(range(20)), "it landed, though nobody was told"
    assert shop.extract().records == 0
    assert archived(shop) == list(range(20))


def test_a_wrong_password_of_the_catalog_is_told_without_it(shop: Workshop) -> None:
    wrong = replace(shop.lake.database, password="not-the-password")
    with pytest.raises(ServiceRefused, match="password authentication failed") as raised:
        replace(shop, lake=replace(shop.lake, database=wrong)).extract()
    told(raised.value, service="The catalog at", connection=layout.CATALOG_CONNECTION)
    assert "not-the-password" not in str(raised.value)


def test_wrong_keys_of_s3_are_told_without_them(shop: Workshop) -> None:
    wrong = replace(shop.lake.storage, secret_key="not-the-secret-key")
    with pytest.raises(ServiceRefused, match="refuses us") as raised:
        replace(shop, lake=replace(shop.lake, storage=wrong)).extract()
    told(raised.value, service="S3 at", connection=layout.S3_CONNECTION)
    assert "not-the-secret-key" not in str(raised.value)
    with pytest.raises(ServiceRefused):
        loss.find(shop.feed, lake=replace(shop.lake, storage=wrong), kafka=shop.kafka)


def test_a_broker_that_dies_while_it_is_read_loses_nothing(
    shop: Workshop, s3: tuple[Workshop, Forwarder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, forwarder = s3
    monkeypatch.setattr(span, "STALL_S", 3.0)
    broker = Broker(tmp_path)
    broker.start()
    try:
        other = replace(shop, kafka=broker.config, feed=replace(shop.feed, name=f"{shop.feed.name}_mortal"))
        lake = replace(shop.lake, storage=replace(shop.lake.storage, endpoint=f"http://127.0.0.1:{forwarder.port}"))
        topic.ensure(other.kafka, other.feed)
        produce_many(other, 60_000)
        limits = extract.Limits(1000, 1 << 20)
        # The first file is written while most of the topic is still to be read.
        forwarder.before(b"PUT /headrace/archive/", broker.kill)
        with pytest.raises((TopicSilent, ServiceAway)) as raised:
            extract.extract(other.feed, lake=lake, kafka=other.kafka, limits=limits)
        assert raised.value.retry
        table = shop.lake.find(layout.archive_table(other.feed.name))
        assert table.current_snapshot() is None
        broker.start()
        done = extract.extract(other.feed, lake=shop.lake, kafka=other.kafka, limits=extract.Limits(50_000, 1 << 24))
        assert done.records == 60_000
        assert heads_of(shop.lake.find(layout.archive_table(other.feed.name))).next[0] == 60_000
    finally:
        broker.kill()


def produce_many(shop: Workshop, count: int) -> None:
    producer = Producer({**shop.kafka, "linger.ms": 50, "queue.buffering.max.messages": 2 * count})
    for _ in range(count):
        producer.produce(shop.feed.topic, value=bytes(500), partition=0)
    assert producer.flush(60) == 0
