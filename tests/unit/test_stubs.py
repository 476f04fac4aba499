"""The folder of stubs: what Airflow reads, whatever happens to the feed files."""

import json
import os
import runpy
import threading
from pathlib import Path

import pytest

from headrace.airflow.stubs import Stubs, fault_stub, feed_stub
from headrace.errors import FeedError

ORDERS = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "feed": {"key": ["id"]},
        "fields": [{"name": "id", "type": "string"}],
    }
)


@pytest.fixture
def stubs(tmp_path: Path) -> Stubs:
    made = Stubs(tmp_path / "bundle")
    made.prepare()
    return made


def test_an_accepted_feed_has_a_copy_and_a_stub_that_makes_its_dag(stubs: Stubs) -> None:
    stubs.accept("orders", suffix=".avsc", text=ORDERS)
    assert stubs.accepted("orders") == stubs.feeds / "orders.avsc"
    assert runpy.run_path(str(stubs.path / "orders_feed.py"))["dag"].dag_id == "orders"


def test_the_folder_can_be_moved_as_a_whole(stubs: Stubs, tmp_path: Path) -> None:
    stubs.accept("orders", suffix=".avsc", text=ORDERS)
    moved = stubs.folder.rename(tmp_path / "elsewhere")
    assert runpy.run_path(str(moved / "stubs" / "orders_feed.py"))["dag"].dag_id == "orders"


def test_a_fault_is_raised_word_for_word_and_leaves_the_dag_alone(stubs: Stubs) -> None:
    stubs.accept("orders", suffix=".avsc", text=ORDERS)
    before = (stubs.path / "orders_feed.py").stat().st_mtime_ns
    reason = 'orders.avsc: feed.key names "a\'b\\n", which is not a field.\nAnd {that} too.'
    stubs.blame("orders", reason)
    with pytest.raises(FeedError) as raised:
        runpy.run_path(str(stubs.path / "orders_fault.py"))
    assert str(raised.value) == reason
    assert (stubs.path / "orders_feed.py").stat().st_mtime_ns == before


def test_a_good_version_mends_the_fault(stubs: Stubs) -> None:
    stubs.blame("orders", "wrong")
    stubs.accept("orders", suffix=".avsc", text=ORDERS)
    assert stubs.names() == {"orders_feed.py"}


def test_the_same_version_again_gives_airflow_nothing_to_parse(stubs: Stubs) -> None:
    stubs.accept("orders", suffix=".avsc", text=ORDERS)
    os.utime(stubs.path / "orders_feed.py", (1, 1))
    stubs.accept("orders", suffix=".avsc", text=ORDERS)
    assert (stubs.path / "orders_feed.py").stat().st_mtime == 1


def test_another_version_moves_the_time_of_the_stub(stubs: Stubs) -> None:
    stubs.accept("orders", suffix=".avsc", text=ORDERS)
    os.utime(stubs.path / "orders_feed.py", (1, 1))
    stubs.accept("orders", suffix=".avsc", text=ORDERS + "\n")
    assert (stubs.path / "orders_feed.py").stat().st_mtime > 1


def test_a_stub_that_was_not_written_after_its_copy_is_written_the_next_time(stubs: Stubs) -> None:
    stubs.accept("orders", suffix=".avsc", text=ORDERS)
    os.utime(stubs.path / "orders_feed.py", (1, 1))
    (stubs.feeds / "orders.avsc").write_text(ORDERS + "\n")  # and then it was killed
    stubs.accept("orders", suffix=".avsc", text=ORDERS + "\n")
    assert (stubs.path / "orders_feed.py").stat().st_mtime > 1


def test_a_feed_that_changes_its_language_has_one_copy(stubs: Stubs) -> None:
    stubs.accept("orders", suffix=".avsc", text=ORDERS)
    stubs.accept("orders", suffix=".json", text='{"type": "object"}')
    assert [path.name for path in stubs.feeds.iterdir()] == ["orders.json"]
    assert "orders.json" in (stubs.path / "orders_feed.py").read_text()


def test_a_sweep_leaves_known_feeds_and_other_peoples_files(stubs: Stubs) -> None:
    for name in ("orders", "calls"):
        stubs.accept(name, suffix=".avsc", text=ORDERS)
    stubs.blame("calls", "wrong")
    (stubs.path / "mine.py").write_text("")
    stubs.sweep(["orders"])
    assert {path.name for path in stubs.path.iterdir()} == {"orders_feed.py", "mine.py"}
    assert [path.name for path in stubs.feeds.iterdir()] == ["orders.avsc"]


def test_what_is_no_name_of_a_feed_still_has_a_stub_for_its_fault(stubs: Stubs) -> None:
    names = ["My Orders!", "my_orders_", "x" * 200, "Ünïcode", "a\nb"]
    for name in names:
        stubs.blame(name, "wrong")
    assert len(stubs.names()) == len(names)
    assert all(len(fault_stub(name)) < 100 for name in names)


def test_only_one_process_at_a_time_changes_the_folder(stubs: Stubs) -> None:
    seen: list[bool] = []

    def other() -> None:
        with stubs.lock() as is_ours:
            seen.append(is_ours)

    with stubs.lock() as is_ours:
        assert is_ours
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    other()
    assert seen == [False, True]


def test_airflow_takes_both_kinds_of_stub_for_dag_files(stubs: Stubs) -> None:
    from airflow.utils.file import list_py_file_paths

    stubs.accept("orders", suffix=".avsc", text=ORDERS)
    stubs.blame("orders", "wrong")
    found = {Path(path).name for path in list_py_file_paths(stubs.path)}
    assert found == {feed_stub("orders"), fault_stub("orders")}
