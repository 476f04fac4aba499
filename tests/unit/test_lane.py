"""A lane: how far it runs ahead, and what becomes of errors."""

import threading

import pytest

from headrace.lane import Lane


def test_calls_of_one_thread_are_made_in_order_and_all_of_them() -> None:
    done: list[int] = []
    with Lane(ahead=10) as lane:
        for number in range(50):
            lane.call(done.append, number, bytes_=3)
    assert done == list(range(50))


def test_a_caller_waits_while_too_many_bytes_are_under_way() -> None:
    go, entered = threading.Event(), threading.Event()
    with Lane(ahead=10) as lane:
        lane.call(go.wait, 30, bytes_=8)

        def second() -> None:
            lane.call(entered.set, bytes_=8)

        caller = threading.Thread(target=second)
        caller.start()
        assert not entered.wait(0.2), "the second call must not have been taken in"
        assert caller.is_alive()
        go.set()
        caller.join(30)
    assert entered.is_set()


def test_one_call_alone_may_be_larger_than_all_that_is_allowed() -> None:
    done: list[str] = []
    with Lane(ahead=10) as lane:
        lane.call(done.append, "large", bytes_=1000)
        lane.call(done.append, "larger", bytes_=2000)
    assert done == ["large", "larger"]


def test_what_a_call_raises_reaches_the_caller_at_the_latest_at_the_end() -> None:
    with pytest.raises(ZeroDivisionError), Lane(ahead=10) as lane:
        lane.call(divmod, 1, 0, bytes_=1)


def test_after_an_error_nothing_more_is_begun() -> None:
    done: list[int] = []
    go = threading.Event()

    def half_way() -> None:
        with Lane(ahead=100) as lane:
            lane.call(go.wait, 30, bytes_=1)
            lane.call(done.append, 1, bytes_=1)
            threading.Timer(0.2, go.set).start()
            raise KeyError("reader")

    with pytest.raises(KeyError, match="reader"):
        half_way()
    assert done == []
