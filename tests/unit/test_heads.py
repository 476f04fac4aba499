"""Heads: progress lives in the snapshot that holds the rows."""

import pytest

from headrace import heads
from headrace.errors import HeadsError
from headrace.heads import Heads

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
