"""Which plans are too small to be compiled: told from what snapshots say of themselves."""

from pyiceberg.table.snapshots import Operation, Snapshot, Summary

from headrace import effort


def snapshot(**summary: str) -> Snapshot:
    told = Summary(Operation.APPEND, **summary)
    return Snapshot(snapshot_id=1, sequence_number=1, timestamp_ms=1, manifest_list="", summary=told)


def sized(bytes_: int) -> Snapshot:
    return snapshot(**{"total-files-size": str(bytes_)})


def test_tables_are_small_together() -> None:
    half = effort.SMALL // 2
    assert effort.is_small([None, sized(half), sized(half)])
    assert not effort.is_small([sized(half), sized(half + 1)])


def test_a_size_that_nobody_noted_may_be_any() -> None:
    assert not effort.is_small([snapshot()])


def test_few_records_are_few_whatever_their_archive_unless_it_is_very_large() -> None:
    spans = [(0, effort.FEW // 2), (10, 10 + effort.FEW // 2)]
    assert effort.is_few(spans, archive=sized(effort.LARGE - 1))
    assert not effort.is_few(spans, archive=sized(effort.LARGE))
    assert not effort.is_few([*spans, (0, 1)], archive=sized(1))
