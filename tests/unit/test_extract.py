"""Extract, planned: what is read, and what is refused."""

import pytest

from headrace.errors import RecordsLost, TopicError
from headrace.heads import Heads
from headrace.kafka.span import Span
from headrace.kafka.topic import Reach, Topic
from headrace.stages.extract import plan


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
