"""Replay against a real broker and archive: any slice goes back whole, once, and changes no clean row."""

import json
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from stream_shop import kinesis_server, stream_shop
from typer.testing import CliRunner
from workshop import Record, Workshop, registered

from headrace import feed as feeds
from headrace import layout, provenance
from headrace.airflow import replay as replays
from headrace.cli import app
from headrace.errors import (
    CheckError,
    DeliveryFenced,
    DeliveryRefused,
    FeedError,
    SliceError,
    TopicError,
    TopicMissing,
)
from headrace.kafka import topic
from headrace.kafka.pace import Rate
from headrace.lake import heads_of
from headrace.slice import Slice
from headrace.stages import replay

Make = Callable[..., Workshop]
NOW = int(time.time() * 1000)
HOUR = 3_600_000
FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": ["null", "long"], "default": None},
    {"name": "state", "type": "string"},
]


def row(id_: str, revision: int | None, state: str = "here", **others: Any) -> Record:
    return Record({"id": id_, "revision": revision, "state": state}, key=id_, **{"timestamp": NOW, **others})


def gone(id_: str, **others: Any) -> Record:
    return Record(None, key=id_, **{"timestamp": NOW, **others})


def signing() -> Any:
    from headrace.airflow import connections

    return connections.signing_key()


def planned(shop: Workshop, slice_: Slice, *, to: str | None = None, same_partitions: bool = False) -> replay.Replay:
    return replay.plan(
        shop.feed, lake=shop.lake, kafka=shop.kafka, slice_=slice_, to=to, same_partitions=same_partitions,
        signing=signing(),
    )  # fmt: skip


def send(
    shop: Workshop, slice_: Slice = Slice(), *, again: bool = False, anyway: bool = False, **options: Any
) -> replay.Tally:
    found = planned(shop, slice_, **options)
    wish = random.getrandbits(50) if again else None
    return replay.run(found, lake=shop.lake, kafka=shop.kafka, now=NOW, rate=Rate(), again=wish, anyway=anyway)


def whole(shop: Workshop) -> list[dict[str, Any]]:
    """Every row of the clean table with its hidden columns."""
    rows = shop.lake.find(layout.clean_table(shop.feed.name)).scan().to_arrow().to_pylist()
    return sorted(rows, key=str)


def states(shop: Workshop) -> dict[str, str]:
    return {row["id"]: row["state"] for row in shop.clean()}


def made_topic(shop: Workshop, partitions: int = 3, **config: str) -> str:
    name, admin = f"r_{uuid.uuid4().hex[:10]}", AdminClient(dict(shop.kafka))
    settings = {option.replace("_", "."): value for option, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(30)
    return name


def configure(shop: Workshop, name: str, **config: str) -> None:
    """Change a topic's settings."""
    entries = [
        ConfigEntry(option.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for option, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
    admin = AdminClient(dict(shop.kafka))  # kept until it has answered
    admin.incremental_alter_configs([resource])[resource].result(30)


def read(kafka: Mapping[str, Any], name: str) -> list[Message]:
    """Every record that a reader of committed ones sees, by partition and offset."""
    consumer = Consumer({**kafka, "group.id": "t", "isolation.level": "read_committed", "enable.partition.eof": True})
    reach = topic.describe(kafka, name).partitions
    waiting = {number for number, found in reach.items() if found.end > found.start}
    consumer.assign([TopicPartition(name, number, 0) for number in waiting])
    found: list[Message] = []
    while waiting:
        for message in consumer.consume(1000, timeout=1.0):
            if message.error() is not None:
                waiting.discard(message.partition() or 0)
            else:
                found.append(message)
    consumer.close()
    return sorted(found, key=lambda message: (message.partition() or 0, message.offset() or 0))


def contents(messages: list[Message]) -> list[tuple[Any, ...]]:
    """What must be the same in a copy."""
    return [
        (each.partition(), each.key(), each.value(), each.timestamp(), [
            header for header in each.headers() or () if not provenance.is_ours(header)
        ])
        for each in messages
    ]  # fmt: skip


def test_a_topic_comes_back_byte_for_byte_with_its_coordinates_signed(workshop: Make) -> None:
    shop = workshop()
    headers = [("trace", b"\x00\xff"), ("trace", None), ("empty", b"")]
    shop.publish(
        Record(b"\x00\x01", key="k", headers=headers, timestamp=NOW - HOUR),
        Record(None, key="k", timestamp=NOW - 3 * HOUR, partition=2),
        Record(b"", timestamp=NOW, partition=2),
        *(Record(bytes([n]), key=str(n), timestamp=NOW - n % 5 * HOUR, partition=1) for n in range(50)),
    )
    shop.extract()
    copy = made_topic(shop)
    tally = send(shop, to=copy, same_partitions=True)
    sent, got = read(shop.kafka, shop.feed.topic), read(shop.kafka, copy)
    assert (tally.records, contents(got)) == (53, contents(sent))
    topic_id = topic.describe(shop.kafka, shop.feed.topic).id
    for original, message in zip(sent, got, strict=True):
        proven = provenance.read(message.headers() or (), key=message.key(), value=message.value(), signing=signing())
        assert proven.origin == provenance.Origin(topic_id, original.partition(), original.offset())


def test_slices_are_taken_by_time_offsets_partitions_and_keys(workshop: Make) -> None:
    shop = workshop()
    shop.publish(
        *(Record(b"v", key=f"k{number % 3}", timestamp=NOW - (9 - number) * HOUR, partition=number % 2)
          for number in range(10))
    )  # fmt: skip
    shop.extract()

    def count(slice_: Slice) -> int:
        return replay.survey(planned(shop, slice_), now=NOW, lake=shop.lake).records

    assert count(Slice()) == 10
    assert count(Slice(since=NOW - 4 * HOUR)) == 5
    assert count(Slice(since=NOW - 4 * HOUR, until=NOW - HOUR)) == 3
    assert count(Slice(offsets={0: ((1, 3),), 1: ((4, 99),)})) == 3
    assert count(Slice(partitions=frozenset([1]))) == 5
    assert count(Slice(partitions=frozenset([2]))) == 0
    assert count(Slice(keys=frozenset([b"k0", b"k2"]))) == 7
    assert count(Slice(keys=frozenset([b"k0"]), partitions=frozenset([0]), since=NOW - 5 * HOUR)) == 1


def test_a_dry_run_counts_by_partition_and_hour_and_sends_nothing(workshop: Make) -> None:
    shop = workshop()
    shop.publish(
        Record(b"12345", key="k", timestamp=NOW), Record(b"12345", key="k", timestamp=NOW),
        Record(b"1", timestamp=NOW - HOUR, partition=1), Record(b"1", timestamp=1, partition=1),
    )  # fmt: skip
    shop.extract()
    tally = replay.survey(planned(shop, Slice()), now=NOW, lake=shop.lake)
    hour = NOW // HOUR
    assert {place: count for place, (count, _) in tally.hours.items()} == {(0, hour): 2, (1, hour - 1): 1, (1, None): 1}
    assert tally.bytes > 4 * 64, "our own header counts too"
    assert tally.expired == 1
    assert len(read(shop.kafka, shop.feed.topic)) == 4


def test_a_copy_is_replayed_as_its_original_and_left_out_where_that_goes_itself(workshop: Make) -> None:
    shop = workshop()
    shop.publish(*(Record(bytes([number]), key="k", timestamp=NOW) for number in range(5)))
    shop.extract()
    assert send(shop).records == 5
    shop.extract()
    again = send(shop, again=True)
    assert (again.records, again.copies) == (5, 5)
    copy = made_topic(shop, 1)
    only = send(shop, Slice(offsets={0: ((5, 10),)}), to=copy)
    assert (only.records, only.copies) == (5, 0)
    origins = [
        provenance.read(each.headers() or (), key=each.key(), value=each.value(), signing=signing()).origin
        for each in read(shop.kafka, copy)
    ]
    assert [origin.offset for origin in origins if origin] == list(range(5))


def test_a_copy_that_the_broker_stamped_does_not_tell_when_its_original_came(workshop: Make) -> None:
    shop = workshop()
    configure(shop, shop.feed.topic, message_timestamp_type="LogAppendTime")
    shop.publish(Record(b"v", key="k"))
    shop.extract()
    send(shop)
    shop.extract()
    first, second = (each.timestamp()[1] for each in read(shop.kafka, shop.feed.topic))
    assert first < second
    tally = replay.survey(planned(shop, Slice(since=second)), now=NOW, lake=shop.lake)
    assert (tally.records, tally.copies) == (1, 0)


def test_the_same_replay_again_sends_only_what_is_new_in_the_slice(workshop: Make) -> None:
    shop = workshop()
    copy = made_topic(shop)
    shop.publish(*(Record(bytes([number]), key=str(number), timestamp=NOW) for number in range(5)))
    shop.extract()
    assert send(shop, to=copy).records == 5
    assert send(shop, to=copy).records == 0
    shop.publish(Record(b"new", key="n", timestamp=NOW))
    shop.extract()
    assert send(shop, to=copy).records == 1
    assert send(shop, to=copy, again=True).records == 6
    assert len(read(shop.kafka, copy)) == 12


KILLED = """
import os, signal, sys
from pathlib import Path
from headrace import feed as feeds
from headrace.airflow import connections
from headrace.kafka import delivery
from headrace.kafka.pace import Rate
from headrace.settings import Settings
from headrace.slice import Slice
from headrace.stages import replay

name, text, to, stop = sys.argv[1:5]
feed, lake, kafka = feeds.parse(name, text), connections.lake(Settings()), connections.kafka()
delivery.BATCH_RECORDS = 10
commit = delivery.Delivery._commit

def dying(self):
    dying.count += 1
    if dying.count == 4 and stop == "die":
        self._producer.flush(30)
        os.kill(os.getpid(), signal.SIGKILL)
    commit(self)

dying.count = 0
delivery.Delivery._commit = dying
planned = replay.plan(feed, lake=lake, kafka=kafka, slice_=Slice(), to=to or None, same_partitions=True,
                      signing=connections.signing_key())
print(replay.run(planned, lake=lake, kafka=kafka, now=0, rate=Rate()).records)
"""


@pytest.mark.parametrize("own", [False, True], ids=["to another topic", "to its own"])
def test_killed_in_the_middle_and_started_again_each_record_is_there_once(workshop: Make, own: bool) -> None:
    shop = workshop({"key": ["id"]}, fields=FIELDS)
    shop.publish(*(row(str(number), number, partition=number % 3) for number in range(95)))
    if own:
        shop.run()
        before = whole(shop)
    else:
        shop.extract()
    copy = "" if own else made_topic(shop)
    command = [sys.executable, "-c", KILLED, f"{shop.feed.name}.avsc", json.dumps(shop.feed.schema), copy]
    killed = subprocess.run([*command, "die"], check=False, capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr
    done = subprocess.run([*command, "live"], check=True, capture_output=True, text=True)
    assert int(done.stdout.split()[-1]) == 95 - 30
    if own:
        found = read(shop.kafka, shop.feed.topic)
        originals, copies = ([each for each in found if bool(each.headers()) == is_copy] for is_copy in (False, True))
        assert contents(copies) == contents(originals)
        assert len(found) == 190
        assert shop.run()["replayed"] == 95
        assert whole(shop) == before
    else:
        assert contents(read(shop.kafka, copy)) == contents(read(shop.kafka, shop.feed.topic))


def test_of_one_replay_that_is_started_twice_at_once_one_is_shut_out_and_each_record_is_there_once(
    workshop: Make,
) -> None:
    shop = workshop()
    shop.publish(*(Record(b"%d" % each, key=str(each), timestamp=NOW, partition=each % 3) for each in range(900)))
    shop.extract()
    copy = made_topic(shop)

    def start(_: int) -> replay.Tally | None:
        found = planned(shop, Slice(), to=copy, same_partitions=True)
        try:
            return replay.run(found, lake=shop.lake, kafka=shop.kafka, now=NOW, rate=Rate(records=300))
        except DeliveryFenced:
            return None

    with ThreadPoolExecutor(2) as pool:
        tallies = list(pool.map(start, range(2)))
    assert tallies.count(None) == 1
    assert contents(read(shop.kafka, copy)) == contents(read(shop.kafka, shop.feed.topic))


def test_a_new_signing_key_does_not_start_a_replay_over(workshop: Make) -> None:
    shop = workshop()
    copy = made_topic(shop)
    shop.publish(Record(b"v", key="k", timestamp=NOW))
    shop.extract()
    assert send(shop, to=copy).records == 1
    rotated = provenance.SigningKey(b"a new one", signing().all)
    found = replay.plan(
        shop.feed, lake=shop.lake, kafka=shop.kafka, slice_=Slice(), to=copy, same_partitions=False, signing=rotated
    )
    assert replay.run(found, lake=shop.lake, kafka=shop.kafka, now=NOW, rate=Rate()).records == 0
    assert planned(shop, Slice(), to=copy, same_partitions=True).name != found.name


def test_progress_comes_to_its_end_though_few_records_are_meant(workshop: Make) -> None:
    shop = workshop()
    shop.publish(*(Record(b"v", key=str(number), timestamp=NOW - number * HOUR) for number in range(5)))
    shop.extract()
    found = planned(shop, Slice(keys=frozenset([b"1"])), to=made_topic(shop))
    told: list[tuple[int, int]] = []
    replay.run(found, lake=shop.lake, kafka=shop.kafka, now=NOW, rate=Rate(), progress=lambda *each: told.append(each))
    assert told == [(number, 5) for number in range(1, 6)]


def test_the_command_sends_what_lies_in_quarantine(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop({"key": ["id"]}, fields=FIELDS)
    shop.merge(row("a", 1), Record(b"bad", key="x", timestamp=NOW), row("b", 1), Record(None, timestamp=NOW))
    assert shop.quarantine() == {(0, 1): "unframed", (0, 3): "keyless"}
    (tmp_path / shop.feed.file).write_text(json.dumps(shop.feed.schema))
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    copy = made_topic(shop, message_timestamp_type="LogAppendTime")

    def command(*options: str) -> Any:
        words = ["replay", shop.feed.name, "--to", copy, "--json", *options]
        return CliRunner().invoke(app, words, catch_exceptions=False)

    done = command("--quarantine", "--reason", "unframed")
    assert (done.exit_code, json.loads(done.stdout)["records"]) == (0, 1)
    assert "stamps records itself" in done.stderr
    assert [each.value() for each in read(shop.kafka, copy)] == [b"bad"]
    assert json.loads(command("--quarantine").stdout)["records"] == 2
    refused = command("--offsets", "0:0-99999999999999999999")
    assert (refused.exit_code, "beyond" in refused.stderr) == (2, True)


def test_a_streams_records_go_to_a_topic_that_is_named(stack: Any) -> None:
    from headrace.airflow import connections

    with kinesis_server() as url:
        shop = replace(stream_shop(url, {"key": ["id"]}, fields=FIELDS, shards=2), kafka=connections.kafka())
        shop.publish(*(row(str(number), number) for number in range(20)))
        shop.extract()
    with pytest.raises(FeedError, match="--to"):
        send(shop)
    copy = made_topic(shop, 2)
    assert send(shop, to=copy, same_partitions=True).records == 20
    rows, got = shop.archived(), read(shop.kafka, copy)
    assert [(row["partition"], row["key"], row["value"], row["timestamp"]) for row in rows] == [
        (each.partition(), each.key(), each.value(), each.timestamp()[1]) for each in got
    ]
    stream = heads_of(shop.lake.find(layout.archive_table(shop.feed.name))).topic_id
    for original, message in zip(rows, got, strict=True):
        proven = provenance.read(message.headers() or (), key=message.key(), value=message.value(), signing=signing())
        assert proven.origin == provenance.Origin(stream, original["partition"], original["offset"])
    assert send(shop, to=copy, same_partitions=True).records == 0


def test_what_cannot_be_done_is_told(workshop: Make) -> None:
    shop = workshop()
    with pytest.raises(SliceError, match="nothing of it is archived yet"):
        send(shop)
    shop.publish(Record(b"v", key="k", partition=2))
    shop.extract()
    with pytest.raises(TopicMissing, match="no_such_topic: the broker has no such topic, and a replay makes none"):
        send(shop, to="no_such_topic")
    with pytest.raises(TopicError, match="it has 1 partitions, but records lie in partitions up to 2"):
        send(shop, to=made_topic(shop, 1), same_partitions=True)
    with pytest.raises(SliceError, match="holds no drained topic's records"):
        send(shop, Slice(drained=True))
    shop.run()
    with pytest.raises(SliceError, match='nothing is ever quarantined as "bad"'):
        send(shop, Slice(quarantine="bad"))


def test_a_topic_that_stamps_records_itself_is_known(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(b"v", key="k", timestamp=NOW - HOUR))
    shop.extract()
    copy = made_topic(shop, message_timestamp_type="LogAppendTime")
    assert "stamps records itself" in " ".join(replays.cautions(planned(shop, Slice(), to=copy)))


def test_a_topic_that_keeps_what_came_last_is_known(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(b"v", key="k"))
    shop.extract()
    compacted = planned(shop, Slice(), to=made_topic(shop, cleanup_policy="compact"))
    assert "is compacted" in " ".join(replays.cautions(compacted))
    assert not replays.cautions(planned(shop, Slice()))


def test_a_feeds_own_compacted_topic_takes_a_replay_only_if_that_is_wanted(workshop: Make) -> None:
    shop = workshop({"key": ["id"], "topic": {"compaction": True}}, fields=FIELDS)
    shop.publish(row("a", 1))
    shop.extract()
    with pytest.raises(TopicError, match=r"may lose by this.* is compacted.*--anyway") as raised:
        send(shop)
    assert not raised.value.retry
    assert len(read(shop.kafka, shop.feed.topic)) == 1, "nothing was sent"
    assert replay.survey(planned(shop, Slice()), now=NOW, lake=shop.lake).records == 1
    assert send(shop, anyway=True).records == 1


def test_what_the_feeds_own_topic_would_not_keep_is_refused_before_anything_is_sent(workshop: Make) -> None:
    shop = workshop()
    shop.publish(Record(b"old", key="k", timestamp=NOW - 30 * HOUR), Record(b"new", key="k", timestamp=NOW))
    shop.extract()
    configure(shop, shop.feed.topic, retention_ms=str(24 * HOUR))
    with pytest.raises(TopicError, match=r"older than topic .* keeps any \(retention.ms\).*--anyway"):
        send(shop)
    assert len(read(shop.kafka, shop.feed.topic)) == 2, "nothing was sent"
    assert send(shop, Slice(since=NOW - HOUR)).records == 1
    elsewhere = made_topic(shop, retention_ms=str(24 * HOUR))
    assert "keeps any (retention.ms)" in " ".join(replays.cautions(planned(shop, Slice(), to=elsewhere)))
    assert send(shop, to=elsewhere).expired == 1
    assert send(shop, anyway=True).records == 2


def test_what_lies_in_quarantine_is_not_refused_for_the_age_of_other_records(workshop: Make) -> None:
    shop = workshop({"key": ["id"]}, fields=FIELDS)
    shop.merge(row("old", 1, timestamp=NOW - 30 * HOUR), Record(b"bad", key="x", timestamp=NOW))
    configure(shop, shop.feed.topic, retention_ms=str(24 * HOUR))
    assert send(shop, Slice(quarantine="unframed")).records == 1


def test_what_a_topic_refuses_is_counted_and_told_and_sent_once_the_topic_takes_it(workshop: Make) -> None:
    shop, now = workshop(), int(time.time() * 1000)  # the broker's clock counts, and NOW may be long ago
    shop.publish(
        Record(b"now", timestamp=now), Record(b"behind", timestamp=now - 3 * HOUR, partition=1),
        Record(b"ahead", timestamp=now + HOUR // 2, partition=2),
    )  # fmt: skip
    shop.extract()
    near = {"message_timestamp_before_max_ms": str(HOUR), "message_timestamp_after_max_ms": str(HOUR // 10)}
    copy = made_topic(shop, **near)
    found = planned(shop, Slice(), to=copy)
    tally = replay.survey(found, now=now, lake=shop.lake)
    assert (tally.records, tally.refused) == (3, 2)
    assert "2 records are older or newer" in " ".join(replays.remarks(found, tally))
    assert [said.split()[-2] for said in replays.cautions(found)] == [
        "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
    ]  # fmt: skip
    with pytest.raises(DeliveryRefused, match=r"message\.timestamp\.before\.max\.ms") as raised:
        send(shop, to=copy)
    assert not raised.value.retry
    configure(shop, copy, **dict.fromkeys(near, str(24 * HOUR)))
    assert send(shop, to=copy).records == 2
    assert sorted(each.value() for each in read(shop.kafka, copy)) == [b"ahead", b"behind", b"now"]


STORY = [
    row("twice", 1, "a"), row("twice", 1, "b"), row("late", 3, "new"), row("late", 2, "old"),
    row("deleted", 2), gone("deleted"), row("deleted", 1), gone("unknown"),
    row("revived", 1), gone("revived"), row("revived", 2, "back"),
    row("null", None), row("null", 0, "zero"), row("none", None), gone("none"),
    row("moved", 1, "p0"), row("moved", 1, "p1", partition=1), gone("moved"),
    gone("again"), row("again", 1), gone("again"),
    Record(b"bad", key="x", timestamp=NOW), row("closed", 1), row("closed", 3, "closed"), row("closed", 2, "late"),
    gone("deleted"), row("last", 9),
]  # fmt: skip
CLOSES = {"delete": {"field": "state", "one_of": ["closed"]}}
KINDS: dict[str, dict[str, Any]] = {
    "ordered": {"key": ["id"], "order": ["revision"], **CLOSES},
    "by offset": {"key": ["id"], **CLOSES},
    "first": {"key": ["id"], "order": ["revision"], "merge": "first"},
    "append": {"key": ["id"], "merge": "append"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_replaying_any_slice_any_number_of_times_changes_no_row(workshop: Make, kind: str) -> None:
    shop, chance = workshop(KINDS[kind], fields=FIELDS), random.Random(kind)
    half = len(STORY) // 2
    shop.merge(*STORY[:half])
    shop.merge(*STORY[half:])
    before, rejected = whole(shop), shop.quarantine()
    assert before
    slices = [Slice()]
    for _ in range(4):
        first = chance.randrange(len(STORY))
        slices.append(Slice(offsets={0: ((first, first + chance.randrange(1, 12)),)}))
    slices.append(Slice(keys=frozenset([b"deleted", b"moved", b"x"])))
    copies = 0
    for batch in (slices[:1], slices[1:3], slices[3:]):
        copies += sum(send(shop, each, again=True).records for each in (*batch, batch[0]))
        assert shop.run()["replayed"] > 0
        assert whole(shop) == before
        assert shop.quarantine() == rejected
    assert copies > 2 * len(STORY)


def test_a_bad_record_and_its_copies_in_one_batch_are_quarantined_once(workshop: Make) -> None:
    shop = workshop({"key": ["id"]}, fields=FIELDS)
    shop.publish(Record(b"bad", key="x", timestamp=NOW), row("a", 1))
    shop.extract()
    for _ in range(2):
        send(shop, again=True)
    assert shop.run()["read"] == 6
    assert shop.quarantine() == {(0, 0): "unframed"}


def test_a_replay_that_mixes_with_newer_records_takes_nothing_from_them(workshop: Make) -> None:
    shop = workshop({"key": ["id"]}, fields=FIELDS)
    shop.merge(row("a", 1, "old"), row("b", 1, "old"), row("c", 1, "old"))
    shop.publish(row("a", 0, "new"), gone("b"))
    send(shop)
    shop.publish(row("d", 1, "new"), gone("c"))
    shop.run()
    assert states(shop) == {"a": "new", "d": "new"}


def test_a_header_that_is_not_ours_sends_a_record_to_quarantine(workshop: Make) -> None:
    shop = workshop({"key": ["id"]}, fields=FIELDS)
    value = shop.encoded(row("a", 1).value)
    own = topic.describe(shop.kafka, shop.feed.topic).id
    origin = provenance.Origin(own, 0, 0)
    forger = provenance.SigningKey(b"guessed")
    forged = provenance.replayed(origin, key=b"a", value=value, signing=forger)
    moved = provenance.replayed(origin, key=b"other", value=value, signing=signing())
    good = provenance.replayed(origin, key=b"a", value=value, signing=signing())
    said = [[forged], [moved], [good, good], [(provenance.IMPORT, b"x")], [(provenance.REPLAY, None)], [good, forged]]
    accounts = shop.merge(row("a", 1, "first"), *(row("a", 1, headers=headers) for headers in said))
    assert shop.quarantine() == dict.fromkeys([(0, number) for number in range(1, 7)], "forged")
    assert (accounts["read"], accounts["quarantined"], accounts["inserted"]) == (7, 6, 1)
    assert states(shop) == {"a": "first"}
    # Nothing of them goes out with the rest; by their own reason an operator takes them for good.
    tally = send(shop)
    assert (tally.records, tally.forged) == (1, 6)
    assert send(shop, Slice(quarantine="forged")).records == 6
    shop.run()
    assert states(shop) == {"a": "here"}


def imported(shop: Workshop, id_: str, revision: int | None, state: str, **others: Any) -> Record:
    plain = row(id_, revision, state, **others)
    header = provenance.imported("spring", key=id_.encode(), value=shop.encoded(plain.value), signing=signing())
    return replace(plain, headers=[header])


def test_what_was_imported_still_is_after_its_key_was_mended(workshop: Make) -> None:
    shop = workshop({"key": ["id"]}, fields=FIELDS)
    history = row("a", 1, "history")
    lost = provenance.SigningKey(b"forgotten in headrace_signing")
    header = provenance.imported("spring", key=b"a", value=shop.encoded(history.value), signing=lost)
    shop.merge(replace(history, headers=[header]))
    assert shop.quarantine() == {(0, 0): "forged"}
    mended = provenance.SigningKey(signing().secret, (lost.secret,))
    found = replay.plan(
        shop.feed, lake=shop.lake, kafka=shop.kafka, slice_=Slice(quarantine="forged"), to=None, same_partitions=False,
        signing=mended,
    )  # fmt: skip
    assert replay.run(found, lake=shop.lake, kafka=shop.kafka, now=NOW, rate=Rate()).records == 1
    copy = read(shop.kafka, shop.feed.topic)[-1]
    proven = provenance.read(copy.headers() or (), key=copy.key(), value=copy.value(), signing=mended)
    assert (proven.import_id, proven.origin and proven.origin.offset) == ("spring", 0)


@pytest.mark.parametrize("split", [False, True], ids=["at once", "bit by bit"])
@pytest.mark.parametrize("order", [[], ["revision"]], ids=["by offset", "ordered"])
def test_imported_records_rank_below_live_ones_unless_order_decides(
    workshop: Make, order: list[str], split: bool
) -> None:
    shop = workshop({"key": ["id"], "order": order}, fields=FIELDS)
    records = [
        row("live", 5, "live"), imported(shop, "live", 4, "history"), imported(shop, "newer", 9, "history"),
        row("newer", 5, "live"), imported(shop, "only", 1, "history"), imported(shop, "gone", 7, "history"),
        row("gone", 3, "live"), gone("gone"), imported(shop, "gone", 6, "late history"),
        imported(shop, "deleted", 5, "history"), gone("deleted"), gone("deleted"),
    ]  # fmt: skip
    for batch in (records[:1], records[1:3], records[3:8], records[8:11], records[11:]) if split else (records,):
        shop.merge(*batch)
    assert states(shop) == {"live": "live", "newer": "history" if order else "live", "only": "history"}
    before = whole(shop)
    send(shop)
    assert shop.run()["replayed"] == 12
    assert whole(shop) == before


def test_what_was_mended_comes_back_from_quarantine_and_stays_deleted_where_it_was(workshop: Make) -> None:
    from headrace.airflow import connections

    shop = workshop({"key": ["id"], "order": ["revision"], "warehouses": {"finance": {}}}, fields=FIELDS)
    fields = [*FIELDS, {"name": "note", "type": ["null", "string"], "default": None}]
    later = feeds.parse(f"{shop.feed.name}.avsc", json.dumps({**shop.feed.schema, "fields": fields}))
    elsewhere = connections.registry().register(f"{shop.feed.name}-other-value", "AVRO", text=json.dumps(later.schema))
    ahead = replace(shop, feed=later, schema_id=int(elsewhere.id))
    unknown = ahead.encoded({"id": "a", "revision": 5, "state": "mended", "note": "n"})
    doomed = ahead.encoded({"id": "b", "revision": 5, "state": "mended", "note": None})
    shop.merge(
        row("a", 4, "before"), Record(unknown, key="a"), Record(doomed, key="b"), gone("b"), Record(b"bad", key="c")
    )
    assert shop.quarantine() == {(0, 1): "unknown_id", (0, 2): "unknown_id", (0, 4): "unframed"}
    replace(shop, feed=later).merge()
    replace(shop, feed=later).load()
    mended = replace(shop, feed=later, schema_id=registered(connections.registry(), later))
    assert mended.schema_id == ahead.schema_id
    assert send(mended, Slice(quarantine="unknown_id")).records == 2
    run = uuid.uuid4().hex
    mended.extract()
    mended.transform(run)
    assert mended.check(run) == []
    mended.publish_run(run)
    assert states(mended) == {"a": "mended"}
    loaded = mended.load()
    assert (loaded.whole, loaded.staged) == (False, 1)
    assert mended.reconcile().figures.rows == 1
    assert mended.quarantine() == {(0, 4): "unframed"}  # the others are told by their replayed copies


def test_checks_look_at_the_rows_that_a_replay_brought_back_and_at_no_others(workshop: Make) -> None:
    checks = [{"column": "state", "one_of": ["fine"]}]
    shop = workshop({"key": ["id"], "checks": checks}, fields=FIELDS)
    unsigned = row("d", 1, "unfit", headers=[(provenance.IMPORT, b"x")])
    shop.merge(row("a", 1, "fine"), row("b", 1, "fine"), row("c", 1, "unfit"), unsigned)  # merged unchecked
    send(shop)
    shop.extract()
    shop.transform("run")
    assert shop.check("run") == []
    shop.publish_run("run")
    send(shop, Slice(quarantine="forged"))
    shop.extract()
    shop.transform("next")
    with pytest.raises(CheckError, match=r"state: one of fine .*1 of 1 rows; key d"):
        shop.check("next")


def test_in_append_a_copy_of_the_standing_record_is_no_conflict_after_a_new_version(workshop: Make) -> None:
    shop = workshop({"key": ["id"], "merge": "append"}, fields=FIELDS)
    shop.merge(row("a", 1))
    later = shop.changed(*FIELDS, {"name": "note", "type": "string", "default": "none"})
    send(later)
    assert later.run()["replayed"] == 1
    assert later.quarantine() == {}


def test_another_topics_records_rank_below_live_ones_and_a_live_tombstone_deletes_them(workshop: Make) -> None:
    declared = {"key": ["id"], "order": ["revision"]}
    old, new = workshop(declared, fields=FIELDS), workshop(declared, fields=FIELDS)
    new = replace(new, schema_id=registered_as(new, old))
    old.publish(
        row("a", 5, "old"), row("b", 5, "old"), row("c", 5, "old"), gone("c"), row("d", 5, "old"), row("d", 5, "tie")
    )
    old.extract()
    send(old, to=new.feed.topic, same_partitions=True)
    new.publish(gone("a"), row("b", 5, "live"))
    new.run()
    assert states(new) == {"b": "live", "d": "tie"}
    before = whole(new)
    send(old, to=new.feed.topic, same_partitions=True, again=True)
    new.run()
    assert whole(new) == before


def test_slices_of_another_topic_may_come_in_any_order(workshop: Make) -> None:
    declared = {"key": ["id"], "order": ["revision"]}
    old, new = workshop(declared, fields=FIELDS), workshop(declared, fields=FIELDS)
    new = replace(new, schema_id=registered_as(new, old))
    old.publish(row("a", 5), gone("a"), row("b", 5))
    old.extract()
    for span in ((1, 2), (0, 3)):
        send(old, Slice(offsets={0: (span,)}), to=new.feed.topic)
        new.run()
    assert states(new) == {"b": "here"}


def registered_as(shop: Workshop, other: Workshop) -> int:
    """Let the one feed's subject know the other's schema too."""
    from headrace.airflow import connections

    text = json.dumps(other.feed.schema)
    return int(connections.registry().register(shop.feed.subject, "AVRO", text=text).id)


def test_a_drained_topics_records_come_back_as_what_they_were(workshop: Make) -> None:
    old = workshop({"key": ["id"], "order": ["revision"]}, fields=FIELDS)
    drains = {"topic": old.feed.topic, "fields": {"status": "state"}}
    fields = [*FIELDS[:2], {"name": "status", "type": "string"}]
    new = workshop({"key": ["id"], "order": ["revision"], "topic": {"drains": drains}}, fields=fields)
    old.publish(row("a", 1, "old"), row("b", 2, "old"), gone("b"), row("c", 1, "old"), row("c", 2, "old"))
    new.run()
    new.publish(Record({"id": "c", "revision": 2, "status": "new"}, key="c"), gone("a"), Record(None, key="none"))
    new.run()
    before = whole(new)
    assert {row["id"]: row["status"] for row in new.clean()} == {"c": "new"}
    assert send(new, Slice(drained=True)).records == 5
    assert send(new).records == 3
    assert new.run()["replayed"] == 8
    assert whole(new) == before


def test_no_plan_that_spark_shows_tells_the_signing_key(workshop: Make) -> None:
    from headrace.airflow import connections
    from headrace.lake import spark_properties
    from headrace.stages import transform
    from spark_jobs import envelopes, origins
    from spark_jobs.session import session

    shop = workshop({"key": ["id"]}, fields=FIELDS)
    shop.publish(row("a", 1))
    shop.extract()
    key = signing()
    writers = connections.registry().writers(shop.feed.subject)
    plan = transform.plan(shop.feed, lake=shop.lake, writers=writers, drained={}, signing=key, run="r")
    assert plan is not None
    assert key.secret.hex() not in repr(plan)
    pads = [pad.hex() for secret in key.all for pad in provenance.pads(secret)]
    with session(connections.spark_remote(), properties=spark_properties(shop.lake)) as spark:
        frame = origins.placed(envelopes.asked(spark, plan), plan, spark)
        shown = frame._explain_string(extended=True).lower()
        assert "sha2" in shown
        assert not any(secret in shown for secret in (*pads, key.secret.hex(), key.secret.decode()))
        assert [each.rank_offset for each in frame.collect()] == [0]
