"""An extract of a stream, planned: where each shard is read on, and what is refused."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from headrace.declaration import Kinesis
from headrace.errors import RecordsLost, TopicError
from headrace.heads import Heads, ShardHead, Shards
from headrace.kinesis.plan import Plan, gaps, is_worth_noting, plan, reached, without_gaps
from headrace.kinesis.shard import Position, rank
from headrace.kinesis.stream import Shard, Stream, number

HOUR = 3_600_000
NOW = 1_800_000_000_000
TRIM_HORIZON, LATEST = Kinesis(), Kinesis(start="LATEST")


def shard(number_: int, *parents: int, closed: bool = False) -> Shard:
    return Shard(number_, f"shardId-{number_:012d}", parents, closed)


def stream(*shards: Shard, at: int = NOW, hours: int = 24) -> Stream:
    return Stream("orders", "arn@1", at, hours * HOUR, {each.number: each for each in shards})


def heads(*, at: int = NOW, **shards: ShardHead) -> Heads:
    known = {int(name[1:]): head for name, head in shards.items()}
    return Heads("arn@1", dict.fromkeys(known, 5), shards=Shards(known, listed=at))


def planned(head: Heads, found: Stream, *, declared: Kinesis = TRIM_HORIZON) -> Plan:
    return plan(head, found, name="p", feed="orders", declared=declared)


def test_sequence_numbers_order_as_numbers_whatever_their_length() -> None:
    ascending = ["", "9", "10", "9" * 55, "1" + "0" * 55, "49590338271490256608559692538361571095921575989136588898"]
    assert sorted(ascending, key=rank) == ascending
    assert all(rank(low) < rank(high) for low, high in pairwise(ascending))


def test_a_shard_is_known_by_the_number_in_its_id() -> None:
    assert number("shardId-000000000007") == 7


def test_a_first_start_reads_every_shard_from_its_oldest_record() -> None:
    found = planned(Heads(), stream(shard(0), shard(1)))
    assert found.positions == {0: Position(shard(0)), 1: Position(shard(1))}


def test_a_first_start_at_latest_is_pinned_to_its_moment_by_the_services_clock() -> None:
    first = planned(Heads(), stream(shard(0)), declared=LATEST)
    assert first.positions[0].since == NOW
    after = reached(first, {0: replace(first.positions[0], caught_up=True)})
    later = planned(after, stream(shard(0), shard(1), at=NOW + HOUR), declared=LATEST)
    assert [position.since for position in later.positions.values()] == [NOW, NOW]
    assert is_worth_noting(first, after)


def test_a_shard_is_read_on_after_its_last_archived_record() -> None:
    found = planned(heads(s0=ShardHead("41", NOW), s1=ShardHead("42", NOW, ended=True)), stream(shard(0), shard(1)))
    assert found.positions == {0: Position(shard(0), 5, "41")}


def test_a_stream_that_was_made_again_is_refused() -> None:
    with pytest.raises(TopicError, match=r"it is arn@1, but the archive was copied from arn@0: .*made again"):
        planned(Heads("arn@0"), stream(shard(0)))


def test_a_child_that_is_numbered_below_its_parent_is_refused() -> None:
    with pytest.raises(TopicError, match=r"shard 1 is numbered below its parents \[2\]"):
        planned(Heads(), stream(shard(1, 2), shard(2, closed=True)))


@pytest.mark.parametrize("unread", [{"s0": ShardHead("41", NOW)}, {"s0": ShardHead("", NOW)}])
def test_a_shard_that_nobody_read_for_longer_than_the_stream_keeps_records_stops_the_feed(unread: Any) -> None:
    assert planned(heads(**unread), stream(shard(0), at=NOW + 24 * HOUR))
    with pytest.raises(RecordsLost, match=r"shard 0 after 2027-01-15T08:00:00\+00:00.*headrace accept-loss orders"):
        planned(heads(**unread), stream(shard(0), at=NOW + 24 * HOUR + 1))


def test_a_page_is_late_when_records_before_it_may_be_gone_that_were_there_when_the_run_began() -> None:
    found = planned(heads(s0=ShardHead("41", NOW)), stream(shard(0), at=NOW + 23 * HOUR))
    position = found.positions[0]
    assert not found.is_late(position, NOW + 24 * HOUR)
    assert found.is_late(position, NOW + 24 * HOUR + 1)
    assert not found.is_late(replace(position, arrived=NOW + HOUR), NOW + 25 * HOUR)
    first = planned(Heads(), stream(shard(0)))
    assert not first.is_late(first.positions[0], NOW + 99 * HOUR), "nothing was promised yet"


def test_a_longer_retention_leaves_more_time() -> None:
    assert planned(heads(s0=ShardHead("41", NOW)), stream(shard(0), at=NOW + 48 * HOUR, hours=72))


def test_a_shard_that_came_and_went_unread_is_a_loss_too() -> None:
    with pytest.raises(RecordsLost, match="shard 0"):
        planned(heads(s0=ShardHead("41", NOW)), stream(shard(1, 0)))


def test_a_shard_that_came_since_is_a_loss_only_when_it_may_be_older_than_the_retention() -> None:
    ended = heads(s0=ShardHead("41", NOW, ended=True))
    assert planned(ended, stream(shard(1, 0), at=NOW + 24 * HOUR)).positions == {1: Position(shard(1, 0))}
    with pytest.raises(RecordsLost, match="shard 1"):
        planned(ended, stream(shard(1, 0), at=NOW + 25 * HOUR))


def test_what_a_first_run_did_not_get_to_was_not_promised_yet() -> None:
    first = planned(Heads(), stream(shard(0), shard(1)))
    after = reached(first, {0: Position(shard(0), 3, "7", caught_up=True), 1: first.positions[1]})
    later = stream(shard(0), shard(1), at=NOW + 23 * HOUR)
    assert planned(after, later).positions[1] == Position(shard(1))


def test_a_shard_that_aws_no_longer_lists_keeps_its_offset_only() -> None:
    known = heads(s0=ShardHead("41", NOW, ended=True), s1=ShardHead("44", NOW))
    found = planned(known, stream(shard(1)))
    after = reached(found, {1: Position(shard(1), 6, "45", caught_up=True)})
    assert (after.next, set(after.shards.heads if after.shards else ())) == ({0: 5, 1: 6}, {1})


def test_how_far_nothing_is_missing_moves_on_only_as_far_as_was_read() -> None:
    known = heads(at=NOW - HOUR, s0=ShardHead("41", NOW - HOUR), s1=ShardHead("42", NOW - HOUR))
    found = planned(known, stream(shard(0), shard(1), shard(2)))
    short = replace(found.positions[1], arrived=NOW - 10, sequence="50")
    after = reached(found, {**found.positions, 0: replace(found.positions[0], caught_up=True), 1: short})
    assert after.shards is not None
    assert {number: head.until for number, head in after.shards.heads.items()} == {0: NOW, 1: NOW - 10, 2: NOW - HOUR}


def test_a_closed_shard_is_done_only_at_its_end() -> None:
    caught_up = Position(shard(0, closed=True), caught_up=True, arrived=NOW + 1)
    assert not caught_up.is_done(NOW)
    assert replace(caught_up, ended=True).is_done(NOW)
    assert not Position(shard(0), arrived=NOW + 999).is_done(NOW)
    assert Position(shard(0), arrived=NOW + 1000).is_done(NOW)


def test_a_quiet_stream_is_noted_now_and_then_and_not_in_every_run() -> None:
    known = heads(s0=ShardHead("41", NOW))
    noted = []
    for hours in (1, 2, 4):
        found = planned(known, stream(shard(0), at=NOW + hours * HOUR))
        after = reached(found, {0: replace(found.positions[0], caught_up=True)})
        noted.append(is_worth_noting(found, after))
    assert noted == [False, False, True]


def test_a_shard_that_came_or_ended_is_noted_at_once() -> None:
    known = heads(s0=ShardHead("41", NOW))
    for found, ended in ((stream(shard(0), shard(1, 0)), False), (stream(shard(0, closed=True)), True)):
        these = planned(known, found)
        positions = {**these.positions, 0: replace(these.positions[0], caught_up=True, ended=ended)}
        assert is_worth_noting(these, reached(these, positions))


def test_an_accepted_loss_lets_every_shard_go_on_and_waits_for_none_that_is_gone() -> None:
    known = heads(s0=ShardHead("41", NOW), s1=ShardHead("42", NOW), s2=ShardHead("43", NOW, ended=True))
    found = stream(shard(1), shard(3, 0, 2), shard(4, 0), at=NOW + 30 * HOUR)
    assert set(gaps(known, found)) == {0, 1, 3, 4}
    after = without_gaps(known, found)
    assert not gaps(after, found)
    assert not gaps(after, replace(found, at=found.at + 2 * HOUR)), "the next run may come a little later"
    assert set(gaps(after, replace(found, at=found.at + 4 * HOUR))) == {1, 3, 4}
    assert planned(after, found).positions == {
        1: Position(shard(1), 5, "42"),
        3: Position(shard(3, 0, 2)),
        4: Position(shard(4, 0)),
    }
