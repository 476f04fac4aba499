"""Filing: what goes into which file, where files end, and what waits in memory."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import schema_to_pyarrow

from headrace import archive, filing, record
from headrace.archive_file import ArchiveFile
from headrace.filing import Filing, Limits
from headrace.kafka import envelopes
from headrace.placing import Placing, mirrored_batch

SCHEMA = schema_to_pyarrow(record.SCHEMA)
HOUR = 3_600_000
NOON = int(datetime(2026, 11, 17, 12, tzinfo=UTC).timestamp() * 1000)


def batch(rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    defaults = {"timestamp": NOON, "timestamp_type": "create", "key": None, "value": b"v", "headers": []}
    whole = [{**defaults, **row} for row in rows]
    return pa.RecordBatch.from_pylist(whole, schema=envelopes.SCHEMA)


class Shelf:
    """Files as they were put, read back by an ordinary Parquet reader."""

    def __init__(self, limits: Limits = Limits(1000, 1 << 20), **placing: Any) -> None:
        self.put: dict[str, bytes] = {}
        self.filing = Filing(
            SCHEMA, plan="feed.plan", limits=limits, placing=Placing("t", **placing), put=self.put.__setitem__
        )

    def file(self, *batches: pa.RecordBatch) -> list[ArchiveFile]:
        for each in batches:
            self.filing.add(each)
        return self.filing.close()

    def rows(self, key: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(self.put[key])).to_pylist()
        return rows


def test_files_are_cut_by_partition_and_hour_and_named_by_their_offsets() -> None:
    shelf = Shelf()
    rows = [
        {"partition": 0, "offset": 5},
        {"partition": 1, "offset": 7},
        {"partition": 0, "offset": 6, "timestamp": NOON + HOUR},
        {"partition": 0, "offset": 9},
        {"partition": 1, "offset": 8, "timestamp": 1},
    ]
    files = shelf.file(batch(rows))
    end = "feed.plan.parquet"
    assert sorted(file.key for file in files) == [
        f"t/0/2026-11-17/12/{5:020d}-{9:020d}-{end}",
        f"t/0/2026-11-17/13/{6:020d}-{6:020d}-{end}",
        f"t/1/2026-11-17/12/{7:020d}-{7:020d}-{end}",
        f"t/1/unknown/unknown/{8:020d}-{8:020d}-{end}",
    ]
    first = shelf.rows(f"t/0/2026-11-17/12/{5:020d}-{9:020d}-{end}")
    assert [row["offset"] for row in first] == [5, 9]
    assert {row["hour"] for row in first} == {datetime(2026, 11, 17, 12, tzinfo=UTC)}


@settings(deadline=None, max_examples=50)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 3), st.sampled_from([NOON, NOON + HOUR, -1, None]), st.none() | st.binary(max_size=40)
        ),
        max_size=60,
    ),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    limits=st.builds(Limits, st.integers(1, 20), st.integers(1, 2000)),
)
def test_however_batches_and_limits_fall_every_record_is_in_one_file_in_order(
    rows: list[tuple[int, int | None, bytes | None]], cuts: list[int], limits: Limits
) -> None:
    told = [
        {"partition": partition, "offset": offset, "timestamp": timestamp, "value": value}
        for offset, (partition, timestamp, value) in enumerate(rows)
    ]
    bounds = sorted({0, len(told), *(cut for cut in cuts if cut < len(told))})
    shelf = Shelf(limits)
    files = shelf.file(*(batch(told[start:stop]) for start, stop in pairwise(bounds)))
    read = [row for file in files for row in shelf.rows(file.key)]
    assert len(read) == len(told)
    assert {row["offset"]: (row["partition"], row["timestamp"], row["value"]) for row in read} == {
        row["offset"]: (row["partition"], row["timestamp"], row["value"]) for row in told
    }
    for file in files:
        own = shelf.rows(file.key)
        assert [row["offset"] for row in own] == sorted(row["offset"] for row in own)
        assert len({(row["partition"], row["hour"]) for row in own}) == 1
        assert len(own) == file.records <= limits.file_records
        sizes = [filing.RECORD_BYTES + len(row["value"] or b"") for row in own]
        assert len(own) == 1 or sum(sizes) <= limits.file_bytes


def test_small_batches_are_filed_together_and_come_out_as_one_by_one() -> None:
    rows = [{"partition": number % 2, "offset": number, "value": bytes(2**19)} for number in range(20)]
    batches = [batch([row]) for row in rows]
    together, singly = Shelf(Limits(3, 2**22)), Shelf(Limits(3, 2**22))
    gathered = [several for several, _ in archive.gathered(batches)]
    assert [len(several) for several in gathered] == [8, 8, 4]
    for several in gathered:
        together.filing.add(*several)
    assert {file.key for file in together.filing.close()} == {file.key for file in singly.file(*batches)}
    assert {key: together.rows(key) for key in together.put} == {key: singly.rows(key) for key in singly.put}


def test_a_value_larger_than_a_file_gets_a_file_of_its_own() -> None:
    rows = [{"partition": 0, "offset": number, "value": bytes(size)} for number, size in enumerate([10, 5000, 10, 10])]
    files = Shelf(Limits(1000, 1000)).file(batch(rows))
    assert [file.records for file in files] == [1, 1, 2]


def test_headers_count_to_a_file_s_bytes() -> None:
    large = [{"name": "h", "value": bytes(900)}, {"name": "h", "value": None}]
    rows = [{"partition": 0, "offset": number, "headers": large} for number in range(4)]
    assert [file.records for file in Shelf(Limits(1000, 1000)).file(batch(rows))] == [1, 1, 1, 1]


def test_what_waits_for_its_file_stays_bounded_however_many_partitions_and_hours_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filing, "HELD_BYTES", 1 << 20)
    shelf, offset, most = Shelf(Limits(10_000, 1 << 20)), 0, 0
    for _ in range(20):
        rows = [
            {"partition": number % 40, "offset": offset + number, "timestamp": NOON + number // 40 * HOUR}
            | {"value": bytes(2000)}
            for number in range(200)
        ]
        shelf.filing.add(batch(rows))
        offset += 200
        most = max(most, shelf.filing._held)
    files = shelf.filing.close()
    assert most <= 1 << 20
    assert sum(file.records for file in files) == 4000


def test_parts_of_a_batch_do_not_keep_the_rest_of_it_in_memory() -> None:
    rows = [{"partition": 0, "offset": number, "value": bytes(1 << 16)} for number in range(64)]
    rows.append({"partition": 1, "offset": 0})
    before = pa.total_allocated_bytes()
    parts = dict(filing.cut(batch(rows)))
    small = parts[1, NOON // HOUR]
    del parts
    assert small.num_rows == 1
    assert pa.total_allocated_bytes() - before < 1 << 16


def test_row_groups_are_closed_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filing, "GROUP_BYTES", 10_000)
    shelf = Shelf()
    (file,) = shelf.file(
        *(batch([{"partition": 0, "offset": number, "value": bytes(6000)}]) for number in range(5)),
    )
    assert [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)] == [2, 2, 1]
    assert file.metadata.num_rows == 5


def test_a_footer_tells_the_reach_of_offsets_and_nothing_of_payloads() -> None:
    shelf = Shelf()
    (file,) = shelf.file(batch([{"partition": 0, "offset": number, "key": b"personal"} for number in (3, 4)]))
    group = file.metadata.row_group(0)
    told = {group.column(index).path_in_schema: group.column(index) for index in range(group.num_columns)}
    assert (told["offset"].statistics.min, told["offset"].statistics.max) == (3, 4)
    assert not [path for path in told if path.startswith(("key", "value", "headers")) and told[path].is_stats_set]
    assert b"personal" not in file.footer


def test_an_own_tombstone_notes_how_far_the_drained_topic_was() -> None:
    after = pa.field("after", pa.map_(pa.int32(), pa.int64()))
    placing = Placing("t", "old", {-1: 7})
    own = batch([{"partition": 0, "offset": 0, "value": None}, {"partition": 0, "offset": 1}])
    assert placing.placed(own, after=after)["after"].to_pylist() == [[(-1, 7)], None]
    old = mirrored_batch(batch([{"partition": 0, "offset": 0, "value": None}]))
    assert old["partition"].to_pylist() == [-1]
    assert placing.placed(old, after=after)["after"].to_pylist() == [None]
    assert (placing.origin(-1), placing.origin(2)) == (("old", 0), ("t", 2))
