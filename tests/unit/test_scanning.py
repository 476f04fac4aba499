"""Scanning: what is read ahead comes in order, and no more of it waits than there is room for."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace import scanning
from headrace.scanning import Ahead


def test_what_a_source_gives_comes_in_its_order_and_then_what_it_fails_with() -> None:
    def source() -> Iterator[str]:
        yield from ("a", "b", "c")
        raise OSError("S3 does not answer")

    assert list(scanning.ahead(lambda: iter("abc"), size=len, most=1)) == ["a", "b", "c"]
    items = scanning.ahead(source, size=len)
    assert [next(items) for _ in range(3)] == ["a", "b", "c"]
    with pytest.raises(OSError, match="S3 does not answer"):
        next(items)


@pytest.mark.parametrize(("most", "room"), [(2, 100), (8, 9)])
def test_no_more_waits_than_so_many_items_and_so_many_bytes(most: int, room: int) -> None:
    waiting = Ahead[str](most=most, room=room, size=len)
    assert waiting.put("aaaa")
    assert waiting.put("bbbb")
    with ThreadPoolExecutor(1) as pool:
        third = pool.submit(waiting.put, "cccc")
        items = iter(waiting)
        with pytest.raises(TimeoutError):
            third.result(timeout=0.05)
        assert next(items) == "aaaa"
        assert third.result(timeout=30)
        waiting.end()
        assert list(items) == ["bbbb", "cccc"]


def test_one_that_is_larger_than_the_room_waits_alone() -> None:
    waiting = Ahead[str](most=8, room=3, size=len)
    assert waiting.put("larger")
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(waiting.put, "b")
        assert next(iter(waiting)) == "larger"
        assert second.result(timeout=30)


def test_who_stops_asking_ends_the_source_too() -> None:
    closed = threading.Event()

    def source() -> Iterator[str]:
        try:
            while True:
                yield "a"
        finally:
            closed.set()

    items = scanning.ahead(source, size=len)
    assert next(items) == "a"
    items.close()  # type: ignore[attr-defined]
    assert closed.wait(30)
    assert not [thread for thread in threading.enumerate() if thread.name == "headrace-ahead"]
