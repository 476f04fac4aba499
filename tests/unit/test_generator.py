"""The generator: what it publishes is the same every time, means what its labels say, and holds every hazard."""

import json
import struct
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zlib import crc32

import jsonschema  # type: ignore[import-untyped]
import pytest

from demo.damage import UNKNOWN_IDS
from demo.feed import EXAMPLES, Feed, read_feed
from demo.generator import meanings, round_counts, round_records
from demo.record import Corrupt, Record, Tombstone, Version, placed
from demo.stories import stories
from demo.wire import UNDECODABLE, avro_row

IDS = {"orders": 11, "calls": 12, "customers": 300_000}
FEEDS = [read_feed(example) for example in EXAMPLES]
TWO_ROUNDS = {
    feed.name: [record for number in (0, 1) for record in round_records(feed, number=number, ids=IDS, size=300)]
    for feed in FEEDS
}


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_the_same_seed_gives_the_same_records_and_another_seed_others(feed: Feed) -> None:
    first = round_records(feed, seed=5, number=1, ids=IDS, size=100)
    assert first == round_records(feed, seed=5, number=1, ids=IDS, size=100)
    assert first != round_records(feed, seed=6, number=1, ids=IDS, size=100)


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_the_label_of_every_record_is_what_its_bytes_say(feed: Feed) -> None:
    for record in TWO_ROUNDS[feed.name]:
        assert read(feed, record) == label(record), f"{record.story}: {record.value!r}"


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_two_small_rounds_tell_every_story_to_its_end(feed: Feed) -> None:
    told = Counter(record.story for record in TWO_ROUNDS[feed.name] if b"-0-" in (record.key or b"-0-"))
    assert {story.name for story in stories(feed)} == set(told)
    for story in stories(feed):
        assert told[story.name] >= len(story.now) + len(story.later)


@pytest.mark.parametrize("size", [1, 500])
@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_a_round_of_any_size_has_every_story(feed: Feed, size: int) -> None:
    told = {record.story for record in round_records(feed, number=1, ids=IDS, size=size)}
    assert told == {story.name for story in stories(feed)}


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_a_story_is_told_in_its_order(feed: Feed) -> None:
    for story in stories(feed):
        revisions = [getattr(step, "revision", None) for step in story.now + story.later]
        index = stories(feed).index(story)
        own = [record for record in TWO_ROUNDS[feed.name] if _is_life(record, index)]
        sent = [_revision(feed, record) for record in own]
        expected = [revision for revision in revisions if revision is not None]
        assert [revision for revision in sent if revision is not None] == (
            expected if "revision" in feed.fields else []
        )


def test_every_reason_but_conflict_is_given_to_some_record() -> None:
    reasons = {r.meaning.reason for rs in TWO_ROUNDS.values() for r in rs if isinstance(r.meaning, Corrupt)}
    assert reasons == {"unframed", "unknown_id", "undecodable", "invalid", "keyless"}


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_a_record_goes_to_the_partition_of_its_key(feed: Feed) -> None:
    for record in TWO_ROUNDS[feed.name]:
        assert record.partition == crc32(record.key or b"") % feed.partitions


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_the_counts_of_a_round_are_those_of_its_records(feed: Feed) -> None:
    records = round_records(feed, number=1, ids=IDS, size=150)
    assert round_counts(feed, number=1, size=150) == Counter(record.partition for record in records)


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_what_the_oracle_hears_is_what_is_published(feed: Feed) -> None:
    published = [(place, record.meaning) for place, record in placed(TWO_ROUNDS[feed.name])]
    assert list(meanings(feed, rounds=2, size=300)) == published


def test_offsets_count_each_partition_from_zero_across_rounds() -> None:
    coordinates = [place for place, _ in placed(TWO_ROUNDS["orders"])]
    ends = Counter(record.partition for record in TWO_ROUNDS["orders"])
    assert sorted(coordinates) == [(p, offset) for p in sorted(ends) for offset in range(ends[p])]


@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.name)
def test_a_key_never_moves_to_another_day(feed: Feed) -> None:
    field = "started_at" if feed.name == "calls" else "created_at"
    days: dict[Any, set[Any]] = {}
    for record in TWO_ROUNDS[feed.name]:
        if isinstance(record.meaning, Version):
            days.setdefault(record.key, set()).add(record.meaning.row[field])
    assert all(len(seen) == 1 for seen in days.values())


def test_values_reach_the_edges_of_what_is_allowed() -> None:
    orders, customers = rows("orders"), rows("customers")
    assert {Decimal("0.00"), Decimal("100000.00")} <= {row["price"] for row in orders}
    assert {None, "NULL", ""} <= {row["note"] for row in orders}
    assert {None, "112", "1234"} <= {row["phone"] for row in customers}
    assert any(row["created_at"].hour == 23 and row["created_at"].microsecond == 999_000 for row in orders)
    assert any(not row["customer_id"].isascii() for row in customers)


def test_a_null_field_of_a_call_is_told_both_as_null_and_as_nothing() -> None:
    texts = [r.value[5:] for r in TWO_ROUNDS["calls"] if r.value and isinstance(r.meaning, Version)]
    documents = [json.loads(text) for text in texts]
    assert any("caller" not in document for document in documents)
    assert any(document.get("caller", "") is None for document in documents)


def test_headers_have_repeated_names_null_and_binary_values() -> None:
    headers = [record.headers for record in TWO_ROUNDS["orders"] if record.headers]
    assert any(len({name for name, _ in some}) < len(some) for some in headers)
    assert {None, b"\x00\xff\xfe"} <= {value for some in headers for _, value in some}


def test_a_feed_under_another_name_tells_the_same_stories_with_its_own_id() -> None:
    other = replace(read_feed("orders"), name="orders_copy")
    records = round_records(other, number=0, ids={"orders_copy": 99}, size=50)
    assert [r.key for r in records] == [r.key for r in round_records(read_feed("orders"), number=0, ids=IDS, size=50)]
    assert any(r.value is not None and r.value[:5] == b"\x00\x00\x00\x00c" for r in records)


def read(feed: Feed, record: Record) -> Any:
    """What a reader makes of the bytes: a row, a deleted key, or the reason why there is neither."""
    if record.value is None:
        return "keyless" if record.key is None else record.key.decode()
    if len(record.value) < 5 or record.value[0] != 0:
        return "unframed"
    (schema_id,) = struct.unpack(">I", record.value[1:5])
    if schema_id != IDS[feed.name]:
        assert schema_id in UNKNOWN_IDS
        return "unknown_id"
    try:
        row = avro_row(feed, record.value[5:]) if feed.form == "avro" else json.loads(record.value[5:])
    except UNDECODABLE:
        return "undecodable"
    return row if feed.form == "avro" else _call(feed, row)


def _call(feed: Feed, document: Any) -> Any:
    if not jsonschema.Draft202012Validator(feed.schema).is_valid(document):
        return "invalid"
    values = {field: document.get(field) for field in feed.fields}
    return {**values, "started_at": datetime.fromisoformat(document["started_at"]).astimezone(UTC)}


def label(record: Record) -> Any:
    match record.meaning:
        case Version(row):
            return row
        case Tombstone(key):
            return key
        case Corrupt(reason):
            return reason


def rows(name: str) -> list[Any]:
    return [record.meaning.row for record in TWO_ROUNDS[name] if isinstance(record.meaning, Version)]


def _is_life(record: Record, index: int) -> bool:
    key = (record.key or b"").decode().removesuffix("-é日")
    return key.endswith(f"-0-{index}")


def _revision(feed: Feed, record: Record) -> Any:
    return record.meaning.row.get("revision") if isinstance(record.meaning, Version) else None
