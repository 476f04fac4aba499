"""Losses: the broker deletes before we read; the feed stops, an operator accepts it, and everything goes on."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from run_context import run_context
from typer.testing import CliRunner
from workshop import Record, Workshop

from headrace import layout
from headrace.airflow import tasks
from headrace.cli import app
from headrace.errors import MovedError, RecordsLost
from headrace.kafka.span import Span
from headrace.lake import heads_of
from headrace.losses import SNAPSHOT, losses_of
from headrace.stages import loss, progress

Make = Callable[..., Workshop]


def order(number: int, revision: int = 1) -> dict[str, Any]:
    made = {"id": f"o{number}", "revision": revision, "status": "paid"}
    return {**made, "price": Decimal("1.00"), "email": None, "created_at": 0}


def delete_before(shop: Workshop, offset: int, *, topic: str | None = None, partition: int = 0) -> None:
    """Make the broker delete a partition's records before an offset, as its retention would."""
    gone = TopicPartition(topic or shop.feed.topic, partition, offset)
    admin = AdminClient(dict(shop.kafka))  # one that nobody holds on to is gone before it is answered
    (answer,) = admin.delete_records([gone]).values()
    assert answer.result(30).low_watermark == offset


def archive(shop: Workshop) -> Any:
    return shop.lake.find(layout.archive_table(shop.feed.name))


def run(shop: Workshop, *arguments: str, folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str = "") -> Any:
    (folder / shop.feed.file).write_text(json.dumps(shop.feed.schema))
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(folder))
    return CliRunner().invoke(app, arguments, input=answer, catch_exceptions=False)


def test_a_feed_that_lost_records_goes_on_once_somebody_accepts_it(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop()
    shop.merge(*(Record(order(number)) for number in range(3)))
    shop.publish(*(Record(order(number)) for number in range(3, 8)))
    delete_before(shop, 6)
    command = f"headrace accept-loss {shop.feed.name}"
    with pytest.raises(RecordsLost, match=rf"up to 3 records .* partition 0 offsets 3 to 5.* {command}") as raised:
        shop.extract()
    assert not raised.value.retry, "no retry brings them back"

    def cli(*arguments: str, answer: str = "") -> Any:
        return run(shop, *arguments, folder=tmp_path, monkeypatch=monkeypatch, answer=answer)

    before = archive(shop).metadata_location
    refused = cli("accept-loss", shop.feed.name, "--why", "a test", answer="n\n")
    assert refused.exit_code == 1
    assert archive(shop).metadata_location == before
    done = cli("accept-loss", shop.feed.name, "--why", "retention was too short", "--by", "Ada", answer="y\n")
    assert done.exit_code == 0, done.output
    (row,) = [line.split() for line in done.output.splitlines() if line.strip().startswith(shop.feed.topic)]
    assert row == [shop.feed.topic, "0", "3", "5", "3"]
    table = archive(shop)
    (known,) = losses_of(table)
    assert (known.partition, known.first, known.next, known.by) == (0, 3, 6, "Ada")
    assert json.loads(table.current_snapshot().summary.additional_properties[SNAPSHOT])[0]["why"] == known.why

    again = cli("accept-loss", shop.feed.name, "--why", "a test", "--yes")
    assert (again.exit_code, again.stdout) == (0, f"feed {shop.feed.name}: nothing is lost, and nothing was done\n")
    assert archive(shop).metadata_location == table.metadata_location
    (shown,) = json.loads(cli("losses", shop.feed.name, "--json").stdout)
    assert shown == {**asdict(known), "topic": shop.feed.topic}
    assert (shown["first"], shown["next"], shown["why"]) == (3, 6, "retention was too short")
    shop.merge(Record(order(8)))
    assert [row["id"] for row in shop.clean()] == ["o0", "o1", "o2", "o6", "o7", "o8"]
    assert losses_of(archive(shop)) == (known,), "an extract keeps what is known to be lost"


def test_what_came_and_went_after_a_first_extract_of_an_empty_topic_is_a_loss(workshop: Make) -> None:
    shop = workshop()
    assert (shop.extract().records, shop.extract().records) == (0, 0)
    assert len(archive(shop).snapshots()) == 1, "only the first one says that the topic was looked at"
    assert not progress.is_behind(shop.feed, lake=shop.lake, warehouses=[], mask_key=b"key")
    shop.publish(*(Record(order(number)) for number in range(3)))
    delete_before(shop, 2)
    with pytest.raises(RecordsLost, match=r"up to 2 records .* partition 0 offsets 0 to 1"):
        shop.extract()


def test_a_clean_table_follows_an_accepted_loss_after_which_nothing_came(workshop: Make) -> None:
    shop = workshop()
    shop.merge(Record(order(0)))
    shop.publish(Record(order(1)))
    delete_before(shop, 2)
    accept(shop)
    assert shop.extract().records == 0
    shop.transform("after")
    shop.publish_run("after")
    clean = shop.lake.find(layout.clean_table(shop.feed.name))
    assert heads_of(clean).next[0] == 2
    shop.merge(Record(order(2)))
    assert [row["id"] for row in shop.clean()] == ["o0", "o2"]


def test_a_run_fails_at_once_and_shows_an_accepted_loss_to_who_looks(
    workshop: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shop = workshop()
    path = tmp_path / shop.feed.file
    path.write_text(json.dumps(shop.feed.schema))
    with run_context(shop.feed.name) as instance:
        _lose_and_accept(shop, path, shown=instance.told, caplog=caplog)


def _lose_and_accept(shop: Workshop, path: Path, *, shown: Mapping[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    shop.publish(Record(order(0)))
    assert tasks.extract(str(path))
    shop.publish(Record(order(1)))
    delete_before(shop, 2)
    with pytest.raises(AirflowFailException, match=f"headrace accept-loss {shop.feed.name}"):
        tasks.extract(str(path))
    assert shown == {}
    accept(shop)
    shop.publish(Record(order(2)))
    for level in ("WARNING", "INFO"):
        caplog.clear()
        with caplog.at_level("INFO", logger="headrace.losses"):
            tasks.extract(str(path))
        (told,) = [entry for entry in caplog.records if entry.name == "headrace.losses"]
        assert told.levelname == level, "a warning in the next run, a plain line from then on"
        assert "lacks what 1 accepted losses name, the last by a test" in told.getMessage()
    (entry,) = shown["losses"]
    assert (entry["partition"], entry["first"], entry["next"]) == (0, 1, 2)


def accept(shop: Workshop) -> loss.Lost:
    found = loss.find(shop.feed, lake=shop.lake, kafka=shop.kafka)
    assert found is not None
    loss.accept(found, at="2026-01-01T00:00:00+00:00", by="a test", why="a test")
    return found


def test_an_extract_that_landed_meanwhile_makes_it_look_again(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(order(0)))
    shop.extract()
    shop.publish(Record(order(1)))
    delete_before(shop, 2)
    ours = loss.find(shop.feed, lake=shop.lake, kafka=shop.kafka)
    assert ours is not None
    accept(shop)
    shop.publish(Record(order(2)))
    shop.extract()
    with pytest.raises(MovedError, match="no loss was accepted"):
        loss.accept(ours, at="2026-01-01T00:00:00+00:00", by="a test", why="a test")
    assert heads_of(archive(shop)).next[0] == 3
    assert len(losses_of(archive(shop))) == 1
    assert loss.find(shop.feed, lake=shop.lake, kafka=shop.kafka) is None


def test_a_loss_in_a_drained_topic_is_accepted_too(workshop: Make) -> None:
    old = workshop()
    shop = workshop({**dict(old.feed.schema["feed"]), "topic": {"drains": {"topic": old.feed.topic}}})
    old.publish(Record(order(0)))
    shop.extract()
    old.publish(*(Record(order(number)) for number in range(1, 4)))
    delete_before(shop, 3, topic=old.feed.topic)
    with pytest.raises(RecordsLost, match=f"topic {old.feed.topic}: .* partition 0 offsets 1 to 2"):
        shop.extract()
    assert accept(shop).spans == {-1: Span(1, 3)}
    assert shop.extract().records == 1
    assert losses_of(archive(shop))[0].partition == -1


def test_nothing_is_lost_where_nothing_was_archived(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(order(0)))
    delete_before(shop, 1)
    assert loss.find(shop.feed, lake=shop.lake, kafka=shop.kafka) is None
    assert shop.extract().records == 0
