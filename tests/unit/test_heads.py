"""Heads: progress lives in the snapshot that holds the rows."""

import pytest

from headrace import heads
from headrace.errors import HeadsError
from headrace.heads import Heads, ShardHead, Shards

SOME = Heads("topic-1", {0: 10, 2: 7})


def test_heads_survive_the_snapshot_summary() -> None:
    assert Heads.from_json(SOME.to_json()) == SOME


def test_a_partition_that_was_never_read_starts_at_zero() -> None:
    assert SOME.of(1) == 0


def test_the_newest_ancestor_with_heads_counts() -> None:
    older = Heads("topic-1", {0: 1})
    summaries = [{"operation": "replace"}, {heads.PROPERTY: SOME.to_json()}, {heads.PROPERTY: older.to_json()}]
    assert heads.newest(summaries, table="archive.orders") == SOME


def test_a_table_without_snapshots_has_come_nowhere() -> None:
    assert heads.newest([], table="archive.orders") == Heads()


def test_a_table_with_snapshots_but_without_heads_is_an_error_and_never_a_start_at_zero() -> None:
    with pytest.raises(HeadsError, match=r"archive.orders: none of its 2 snapshots says how far it has come"):
        heads.newest([{}, {"operation": "append"}], table="archive.orders")


BOTH = Heads("new", {0: 5, -1: 9, -3: 4}, "old")


def test_two_topics_heads_survive_the_snapshot_summary_together() -> None:
    assert Heads.from_json(BOTH.to_json()) == BOTH


def test_heads_written_before_anything_was_drained_are_still_read() -> None:
    assert Heads.from_json('{"topic_id": "t", "next": {"0": 3}}') == Heads("t", {0: 3})


def test_each_topic_has_its_own_heads_by_its_own_partition_numbers() -> None:
    assert BOTH.own == Heads("new", {0: 5})
    assert BOTH.drained == Heads("old", {0: 9, 2: 4})
    assert Heads.joined(BOTH.own, BOTH.drained) == BOTH


def test_where_an_archive_begins_survives_too_and_belongs_to_its_topic() -> None:
    late = Heads("new", {0: 5, -1: 9}, "old", first={0: 2, -1: 8})
    assert Heads.from_json(late.to_json()) == late
    assert (late.own.first, late.drained.first) == ({0: 2}, {0: 8})
    assert Heads.joined(late.own, late.drained) == late


def test_mirrored_numbers_lie_below_every_own_partition_and_lead_back() -> None:
    for partition in range(5):
        assert heads.mirrored(partition) < 0
        assert heads.mirrored(heads.mirrored(partition)) == partition


SHARDS = {0: ShardHead("", 7, ended=True), 1: ShardHead(), 2: ShardHead("4957", 9), 3: ShardHead(until=9)}
STREAM = Heads("arn@2026", {0: 5}, shards=Shards(SHARDS, listed=9, since=3))


def test_a_streams_heads_survive_the_snapshot_summary() -> None:
    assert Heads.from_json(STREAM.to_json()) == STREAM


def test_heads_of_a_topic_are_written_as_they_were_before_there_were_streams() -> None:
    assert Heads("t", {0: 3}).to_json() == '{"topic_id": "t", "next": {"0": 3}}'
    assert Heads.from_json('{"topic_id": "t", "next": {"0": 3}}').shards is None
