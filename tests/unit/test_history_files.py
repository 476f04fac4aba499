"""Files as a source of history: every row numbered, those that cannot be read told, nothing left behind."""

import fcntl
import gzip
import io
import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import feed as feeds
from headrace import scratch
from headrace.errors import HistoryError
from headrace.feed import Feed
from headrace.history import file_source, sorting
from headrace.history.encoding import Encoder
from headrace.history.file_source import Csv, FileSource
from headrace.history.folder import Disk, _matches
from headrace.history.mapping import map_columns
from headrace.history.rejected import Rejected

NANOS = {"type": "long", "logicalType": "timestamp-nanos"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def feed_of(*fields: Mapping[str, Any]) -> Feed:
    schema = {
        "type": "record",
        "name": "R",
        "feed": {"key": ["id"]},
        "fields": [{"name": "id", "type": "long"}, *fields],
    }
    return feeds.parse("t.avsc", json.dumps(schema))


WORDS = feed_of({"name": "word", "type": ["null", "string"]})


def read(source: FileSource, feed: Feed = WORDS) -> tuple[list[str], list[tuple[str, int, str, str]]]:
    """The keys of the rows that are records, and what is told of the others."""
    keys: list[str] = []
    rejected: list[Rejected] = []
    with source.reading() as reading:
        mapping = map_columns(feed, reading.columns, renames={}, is_open=reading.is_open)
        encoder = Encoder(feed, mapping, 1, 10**6)
        for rows in reading.rows(mapping.columns):
            done = encoder.encode(rows, position=1)
            keys += [key.decode() for key in done.records.column("key").to_pylist()]
            rejected += done.rejected
    return keys, [(Path(each.origin).name, each.row, each.fault.value, each.field) for each in rejected]


def source(path: Path, **options: Any) -> FileSource:
    return FileSource(str(path), Disk(), **options)


def test_lines_that_are_no_json_objects_are_told_by_their_number_and_stop_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": 1}\n\nnot json\n[2]\n{"id": 3, "word": "\xff"}\n{"id": "x"}\n{"id": 5}\nNaN\n')
    keys, rejected = read(source(path))
    assert keys == ["1", "5"]
    unreadable = [("a.jsonl", number, "unreadable", "") for number in (3, 4, 5, 8)]
    assert sorted(rejected) == sorted([*unreadable, ("a.jsonl", 6, "unfit", "id")])


def test_a_line_that_is_only_a_text_is_told_without_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('"anna@example.org"\n{"id": 1}\n')
    with source(path).reading() as reading:
        (rows,) = reading.rows(["id"])
    assert (rows.numbers, rows.unread) == ([2], {1: "no JSON object"})


def test_lines_and_values_are_read_from_gzip_too(tmp_path: Path) -> None:
    for name, text in (("a.jsonl.gz", '{"id": 1}\n{"id": 2}\n'), ("a.csv.gz", "id\n1\n2\n")):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
        assert read(source(tmp_path / name)) == (["1", "2"], [])


def test_a_file_that_is_cut_off_or_holds_something_else_is_named(tmp_path: Path) -> None:
    whole = io.BytesIO()
    fastavro.writer(whole, {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}, [{"id": 1}])
    contents = {
        "cut.avro": whole.getvalue()[:-20],
        "no.avro": b"nothing of the kind",
        "cut.jsonl.gz": gzip.compress(b'{"id": 1}')[:-4],
        "no.parquet": b"nothing of the kind",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(HistoryError, match=f"{name}: it cannot be read"):
            read(source(tmp_path / name))


def test_long_lines_come_in_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_source, "BATCH_BYTES", 1000)
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"id": {n}, "word": "{"x" * 400}"}}\n' for n in range(10)))
    with source(path).reading() as reading:
        assert [len(rows.numbers) for rows in reading.rows(["id"])] == [3, 3, 3, 1]


@pytest.mark.parametrize(
    ("name", "pattern", "is_one"),
    [
        ("old/a.csv", "old/*.csv", True),
        ("old/2020/a.csv", "old/*.csv", False),
        ("old/2020/a.csv", "old/*/a.csv", True),
        ("old/2020/01/a.csv", "old/**/*.csv", True),
        ("old/a.csv", "old/**/*.csv", True),
        ("new/a.csv", "old/**", False),
    ],
)
def test_a_pattern_means_the_same_on_s3_as_on_a_disk(tmp_path: Path, name: str, pattern: str, is_one: bool) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).touch()
    assert bool(Disk().find(str(tmp_path / pattern))) == is_one
    assert _matches(name.split("/"), pattern.split("/")) == is_one


@pytest.mark.parametrize("header", [True, False])
def test_rows_of_csv_with_too_few_or_too_many_values_are_told_by_their_number(tmp_path: Path, header: bool) -> None:
    path = tmp_path / "a.csv"
    path.write_text(("id,word\n" if header else "") + '1,a\n2\n3,"b\nc"\n4,d,e\nx,f\n6,\n')
    keys, rejected = read(source(path, csv=Csv(header=() if header else ("id", "word"))))
    assert keys == ["1", "3", "6"]
    assert sorted(rejected) == [
        ("a.csv", 2, "unreadable", ""),
        ("a.csv", 4, "unreadable", ""),
        ("a.csv", 5, "unfit", "id"),
    ]


def test_a_text_that_is_no_utf8_is_told_and_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,word\n1,ok\n2,\xff\n3,ok\n")
    assert read(source(path)) == (["1", "3"], [("a.csv", 2, "unfit", "word")])


def test_a_field_that_is_first_met_after_a_thousand_lines_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"id": {n}}}\n' for n in range(1500)) + '{"id": 1500, "word": 1.5}\n')
    keys, rejected = read(source(path))
    assert (len(keys), rejected) == (1500, [("a.jsonl", 1501, "unfit", "word")])


def test_nanoseconds_are_kept_or_refused_never_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    stamps = pa.array([1_000_000, 1_000_001, None], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"id": [1, 2, 3], "at": stamps}), path)
    assert read(source(path), feed_of({"name": "at", "type": ["null", MILLIS]})) == (
        ["1", "3"],
        [("a.parquet", 2, "unfit", "at")],
    )
    assert read(source(path), feed_of({"name": "at", "type": ["null", NANOS]}))[0] == ["1", "2", "3"]


def test_files_that_differ_in_a_columns_type_are_each_read_by_its_own(tmp_path: Path) -> None:
    for number, ids in enumerate([pa.array([1], pa.int32()), pa.array(["2"]), pa.array([3], pa.int64())]):
        pq.write_table(pa.table({"id": ids}), tmp_path / f"{number}.parquet")
    assert read(source(tmp_path / "*.parquet")) == (["1", "2", "3"], [])


def test_a_file_that_lacks_a_column_or_changes_meanwhile_ends_the_import(tmp_path: Path) -> None:
    for number, columns in enumerate([{"id": [1], "word": ["a"]}, {"id": [2]}]):
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    with pytest.raises(HistoryError, match=r"1.parquet: it has no column word, which the first file has"):
        read(source(tmp_path / "*.parquet"))
    changing = tmp_path / "a.jsonl"
    changing.write_text('{"id": 1}\n')
    with source(changing).reading() as reading:
        changing.write_text('{"id": 1}\n{"id": 2}\n')
        with pytest.raises(HistoryError, match="changed while it was read"):
            list(reading.rows(["id"]))


def test_a_folder_whose_process_died_is_removed_by_the_next(tmp_path: Path) -> None:
    dead, alive = tmp_path / f"{scratch.PREFIX}dead", tmp_path / f"{scratch.PREFIX}alive"
    for left in (dead, alive):
        left.mkdir()
        (left / "lock").touch()
        os.utime(left, (time.time() - 3600,) * 2)
    with (alive / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with scratch.folder(tmp_path) as mine:
            assert {each.name for each in tmp_path.iterdir()} == {alive.name, mine.name}
    assert [each.name for each in tmp_path.iterdir()] == [alive.name]


def test_more_than_memory_holds_is_sorted_on_disk_nulls_first(tmp_path: Path) -> None:
    schema = pa.schema(
        [("sort_0", pa.int64()), ("sort_1", pa.float64()), ("position", pa.int64()), ("value", pa.binary())]
    )

    def batches() -> Any:
        for start in range(0, 100_000, 10_000):
            keys = [None if n % 1000 == 0 else 100_000 - n for n in range(start, start + 10_000)]
            odd = [[math.nan, None, 1.5][n % 3] for n in range(start, start + 10_000)]
            columns = [keys, odd, range(start, start + 10_000), [os.urandom(1000)] * 10_000]
            yield pa.record_batch(columns, schema=schema)

    found = pa.Table.from_batches(sorting.in_order(batches(), schema, scratch=tmp_path, memory=20_000_000))
    assert found.column_names == ["position", "value"]
    places = found.column("position").to_pylist()
    nulls = range(0, 100_000, 1000)
    assert places[:100] == [*nulls[1::3], *nulls[0::3], *nulls[2::3]], "null, no number, numbers"
    assert places[100:] == [n for n in range(99_999, 0, -1) if n % 1000]
    assert len(list(tmp_path.iterdir())) == 10, "in many runs"


def test_what_a_source_raises_comes_out_of_the_sort_as_it_was(tmp_path: Path) -> None:
    schema = pa.schema([("sort_0", pa.int64()), ("position", pa.int64())])

    def broken() -> Any:
        yield pa.record_batch([[1], [1]], schema=schema)
        raise HistoryError("the source went away")

    with pytest.raises(HistoryError, match="the source went away"):
        list(sorting.in_order(broken(), schema, scratch=tmp_path))


def test_rows_of_csv_that_cannot_be_read_are_told_with_their_block_and_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    filler = "x" * 100
    good, bad = f"1,{filler}\n", f"{filler}\n"
    # Longer than two blocks each: good and bad in turn, only bad ones, then good ones again.
    path.write_text("id,word\n" + (good + bad) * 50_000 + bad * 100_000 + good * 100_000)
    numbers: list[int] = []
    unread: list[int] = []
    most = 0
    with source(path).reading() as reading:
        for rows in reading.rows(["id", "word"]):
            numbers += rows.numbers
            unread += rows.unread
            most = max(most, len(rows.unread))
    assert numbers == [*range(1, 100_000, 2), *range(200_001, 300_001)]
    assert unread == [*range(2, 100_001, 2), *range(100_001, 200_001)]
    assert most < 150_000, "not all of them at the end"


def test_a_disk_that_is_full_is_told_with_the_option_that_names_another(tmp_path: Path) -> None:
    schema = pa.schema([("sort_0", pa.int64()), ("position", pa.int64())])
    (tmp_path / "run_0").symlink_to("/dev/full")
    batches = iter([pa.record_batch([range(1000), range(1000)], schema=schema)])
    with pytest.raises(HistoryError, match=rf"{tmp_path}: there is no room left .* --scratch FOLDER"):
        list(sorting.in_order(batches, schema, scratch=tmp_path))


def test_a_folder_to_work_in_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="nowhere: there is no such folder"), scratch.folder(tmp_path / "nowhere"):
        pass
