"""Extract, planned: what is read, and what is refused."""

import pytest

from headrace.errors import RecordsLost, TopicError
from headrace.heads import Heads
from headrace.kafka.plan import plan
from headrace.kafka.span import Span
from headrace.kafka.topic import Reach, Topic


def topic(**reaches: tuple[int, int]) -> Topic:
    return Topic("orders", "id-1", {int(name[1:]): Reach(*reach) for name, reach in reaches.items()})


def test_a_plan_reads_from_the_head_to_the_end_of_every_partition() -> None:
    planned = plan(Heads("id-1", {0: 5, 1: 7}), topic(p0=(0, 9), p1=(0, 7)), name="p")
    assert planned.spans == {0: Span(5, 9)}
    assert planned.heads == Heads("id-1", {0: 9, 1: 7})


def test_a_new_partition_is_read_from_its_start() -> None:
    planned = plan(Heads("id-1", {0: 5}), topic(p0=(0, 5), p1=(0, 3)), name="p")
    assert planned.spans == {1: Span(0, 3)}


def test_a_first_extract_starts_where_the_broker_still_has_records() -> None:
    planned = plan(Heads(), topic(p0=(100, 120)), name="p")
    assert planned.spans == {0: Span(100, 120)}


def test_where_the_archive_begins_is_noted_once() -> None:
    first = plan(Heads(), topic(p0=(100, 120), p1=(0, 5)), name="p").heads
    assert first == Heads("id-1", {0: 120, 1: 5}, first={0: 100})
    grown = plan(first, topic(p0=(110, 130), p1=(3, 5), p2=(0, 9)), name="p").heads
    assert grown.first == {0: 100}


def test_a_plan_is_limited_in_equal_parts_and_the_next_one_goes_on() -> None:
    found = topic(p0=(0, 80), p1=(0, 20), p2=(0, 0))
    limited = plan(Heads(), found, name="p").limited(50)
    assert limited.spans == {0: Span(0, 40), 1: Span(0, 10)}
    assert limited.heads == Heads("id-1", {0: 40, 1: 10, 2: 0})
    assert plan(limited.heads, found, name="p").spans == {0: Span(40, 80), 1: Span(10, 20)}
    assert plan(Heads(), found, name="p").limited(100) == plan(Heads(), found, name="p")


def test_while_the_drained_topic_is_not_read_to_its_end_the_own_one_waits() -> None:
    own, old = topic(p0=(3, 9)), Topic("old", "id-0", {0: Reach(0, 100)})
    planned = plan(Heads(), own, name="p", drained=old)
    limited = planned.limited(60)
    assert (limited.spans, limited.drained) == ({}, {0: Span(0, 60)})
    assert limited.heads == Heads("id-1", {0: 3, -1: 60}, "id-0", first={0: 3})
    more = plan(limited.heads, own, name="p", drained=old).limited(43)
    assert (more.spans, more.drained) == ({0: Span(3, 6)}, {0: Span(60, 100)})


def test_what_an_empty_topic_got_and_lost_again_is_a_loss() -> None:
    head = plan(Heads(), topic(p0=(0, 0)), name="p").heads
    assert head == Heads("id-1", {0: 0})
    with pytest.raises(RecordsLost, match=r"up to 4 records .* partition 0 offsets 0 to 3"):
        plan(head, topic(p0=(4, 6)), name="p")


def test_a_topic_that_never_had_a_record_may_be_made_again_or_grow() -> None:
    assert plan(Heads("id-0", {0: 0}), topic(p0=(2, 3)), name="p").spans == {0: Span(2, 3)}
    assert plan(Heads("id-1", {0: 0}), topic(p0=(0, 0), p1=(0, 3)), name="p", ordered=False).spans == {1: Span(0, 3)}


def test_records_that_the_broker_deleted_before_us_stop_the_feed_with_their_count() -> None:
    with pytest.raises(RecordsLost, match=r"up to 30 records .* partition 1 offsets 10 to 39"):
        plan(Heads("id-1", {0: 5, 1: 10}), topic(p0=(0, 9), p1=(40, 50)), name="p")


def test_a_feed_without_order_fields_stops_when_its_topic_grows() -> None:
    head, grown = Heads("id-1", {0: 5}), topic(p0=(0, 5), p1=(0, 3))
    with pytest.raises(TopicError, match=r"grown the partitions \[1\]"):
        plan(head, grown, name="p", ordered=False)
    assert plan(Heads(), grown, name="p", ordered=False).spans


def test_a_topic_that_was_made_again_is_refused() -> None:
    with pytest.raises(TopicError, match="deleted and made again"):
        plan(Heads("id-0", {0: 5}), topic(p0=(0, 9)), name="p")


def test_a_topic_that_is_shorter_than_its_archive_is_refused() -> None:
    with pytest.raises(TopicError, match="partition 0 ends at 7, not 9"):
        plan(Heads("id-1", {0: 9}), topic(p0=(0, 7)), name="p")


def older(**reaches: tuple[int, int]) -> Topic:
    return Topic("orders_old", "id-0", {int(name[1:]): Reach(*reach) for name, reach in reaches.items()})


def test_a_plan_covers_the_drained_topic_and_the_own_one() -> None:
    planned = plan(Heads(), topic(p0=(0, 2)), name="p", drained=older(p0=(3, 9), p1=(0, 4)))
    assert planned.spans == {0: Span(0, 2)}
    assert planned.drained == {0: Span(3, 9), 1: Span(0, 4)}
    assert planned.heads == Heads("id-1", {0: 2, -1: 9, -2: 4}, "id-0", first={-1: 3})


def test_late_records_of_a_drained_topic_still_count() -> None:
    head = Heads("id-1", {0: 2, -1: 9}, "id-0")
    planned = plan(head, topic(p0=(0, 2)), name="p", drained=older(p0=(0, 11)))
    assert (planned.spans, planned.drained) == ({}, {0: Span(9, 11)})
    assert planned.heads == Heads("id-1", {0: 2, -1: 11}, "id-0")


def test_a_drained_topic_that_is_gone_keeps_its_heads() -> None:
    head = Heads("id-1", {0: 2, -1: 9}, "id-0")
    planned = plan(head, topic(p0=(0, 3)), name="p")
    assert planned.heads == Heads("id-1", {0: 3, -1: 9}, "id-0")


def test_a_feed_may_begin_to_drain_after_it_has_followed_its_own_topic() -> None:
    planned = plan(Heads("id-1", {0: 2}), topic(p0=(0, 2)), name="p", ordered=False, drained=older(p0=(5, 9)))
    assert planned.drained == {0: Span(5, 9)}


@pytest.mark.parametrize(
    ("own", "drained", "told"),
    [
        (topic(p0=(0, 5)), Topic("orders_old", "id-9", {0: Reach(0, 9)}), "topic orders_old: its id is id-9"),
        (topic(p0=(0, 5)), older(p0=(0, 7)), "topic orders_old: it is shorter .* partition 0 ends at 7, not 9"),
        (topic(p0=(0, 5)), older(p0=(12, 20)), "topic orders_old: .* up to 3 records .* offsets 9 to 11"),
        (topic(p0=(0, 5)), older(p0=(0, 9), p1=(0, 1)), r"topic orders_old: it has grown the partitions \[1\]"),
        (topic(p0=(0, 5), p1=(0, 1)), older(p0=(0, 9)), r"topic orders: it has grown the partitions \[1\]"),
        (topic(p0=(0, 3)), older(p0=(0, 9)), "topic orders: it is shorter .* partition 0 ends at 3, not 5"),
    ],
    ids=["made again", "shrunk", "lost", "grown", "own one grown", "own one shrunk"],
)
def test_each_of_the_two_topics_is_refused_by_its_own_heads(own: Topic, drained: Topic, told: str) -> None:
    with pytest.raises(TopicError, match=told):
        plan(Heads("id-1", {0: 5, -1: 9}, "id-0"), own, name="p", ordered=False, drained=drained)


def test_partitions_of_the_one_topic_are_no_growth_of_the_other() -> None:
    head = Heads("id-1", {0: 5, -1: 9, -2: 3}, "id-0")
    planned = plan(head, topic(p0=(0, 5)), name="p", ordered=False, drained=older(p0=(0, 9), p1=(0, 3)))
    assert (planned.spans, planned.drained) == ({}, {})
