"""What is forgotten: keys as they are typed, the hold list, blanked records, and the search for what is left."""

import io
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow

from headrace import blanking, forgotten, imprint, record, shown
from headrace.archive_file import Encoder
from headrace.comparison import compare
from headrace.errors import SettingsError
from headrace.forgotten import Entry
from headrace.heads import Heads
from headrace.kafka.limits import Limits
from headrace.provenance import SigningKey
from headrace.reckoning import Shape, reckon
from headrace.scrubbing import scrubber
from headrace.stages import absence, retained

KEY = SigningKey(b"new", (b"old",))
HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))


def entry(digest: str, next_: dict[int, int], *, secret: bytes = b"new", topic: str = "t") -> Entry:
    return Entry(digest, forgotten.fingerprint(secret), Heads(topic, next_, "drained"))


def envelopes(offsets: list[int]) -> pa.Table:
    count = len(offsets)
    return pa.table(
        {
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array(range(count), pa.int64()),
            "timestamp_type": pa.array(["create"] * count, pa.string()),
            "key": pa.array([b"k%d" % each for each in offsets], pa.binary()),
            "value": pa.array([b"v%d" % each for each in offsets], pa.binary()),
            "headers": pa.array([[{"name": "h", "value": b"x"}]] * count, HEADERS),
        }
    )


def test_a_single_key_is_its_text_and_several_fields_are_a_json_object() -> None:
    assert forgotten.parsed(["4711", "{x}"], key=["id"]) == [["4711"], ["{x}"]]
    composite = ['{"b": 12345678901234567890, "a": "x"}', '{"a": true, "b": 1.50}']
    assert forgotten.parsed(composite, key=["a", "b"]) == [["x", "12345678901234567890"], ["true", "1.50"]]
    assert forgotten.parsed(["hex:00FF"], key=["id"], binary=["id"]) == [["00ff"]]


@pytest.mark.parametrize(
    ("text", "key", "binary"),
    [("secret", ["a", "b"], ()), ('{"a": "secret"}', ["a", "b"], ()), ('{"a": null, "b": "secret"}', ["a", "b"], ()),
     ("secret", ["a"], ["a"])],
)  # fmt: skip
def test_an_error_tells_which_key_and_never_what_it_is(text: str, key: list[str], binary: list[str]) -> None:
    with pytest.raises(SettingsError, match="key number 2") as raised:
        forgotten.parsed([_good(key), text], key=key, binary=binary)
    assert "secret" not in str(raised.value)


def _good(key: list[str]) -> str:
    return "00" if len(key) == 1 else json.dumps(dict.fromkeys(key, "x"))


def test_of_a_key_that_was_forgotten_twice_the_farther_heads_count() -> None:
    listed = [entry("a", {0: 5, 1: 9}), entry("a", {0: 7}), entry("a", {0: 3}, secret=b"old")]
    held = forgotten.held(listed, feed="f", signing=KEY, now=Heads("t", {}, "drained"))
    assert [(each.digest, each.secret, each.next) for each in held] == [("a", 0, {0: 7, 1: 9}), ("a", 1, {0: 3})]
    assert forgotten.reach(listed).next == {0: 7, 1: 9}


def test_in_a_topic_that_was_made_anew_everything_came_later() -> None:
    held = forgotten.held([entry("a", {0: 5, -1: 4})], feed="f", signing=KEY, now=Heads("other", {}, "drained"))
    assert [each.next for each in held] == [{-1: 4}]


def test_a_hold_list_whose_secret_is_gone_stops_the_run() -> None:
    with pytest.raises(SettingsError, match="no longer has"):
        forgotten.held([entry("a", {}, secret=b"lost")], feed="f", signing=KEY, now=Heads())


def test_a_blanked_record_keeps_its_coordinates_and_timestamps_alone() -> None:
    rows, count = blanking.blanked(envelopes([3, 4, 5]), [4, 9])
    assert count == 1
    one = rows.to_pylist()[1]
    assert (one["offset"], one["timestamp"], one["key"], one["value"]) == (4, 1, None, None)
    assert one["headers"] == [{"name": forgotten.MARK, "value": None}]
    assert forgotten.is_blank(one["key"], one["value"], [(forgotten.MARK, None)])
    assert [row["key"] for row in rows.to_pylist()] == [b"k3", None, b"k5"]


def test_a_file_from_before_a_column_was_added_gets_it_with_nulls() -> None:
    schema = envelopes([]).schema.append(pa.field("sequence", pa.string()))
    assert blanking.conformed(envelopes([1]), schema).to_pylist()[0]["sequence"] is None


@pytest.mark.parametrize(("before", "kinds"), [(10, (1, 1, 0)), (4, (1, 0, 1))])
def test_a_blanked_record_is_no_difference_where_somebody_was_forgotten(before: int, kinds: tuple[int, ...]) -> None:
    rows, _ = blanking.blanked(envelopes([3, 4]), [4])
    topic, archive = imprint.imprints(envelopes([3, 4])), imprint.imprints(rows)
    done = compare(topic, archive, listed=5, blank_before=before)
    assert (done.equal, len(done.forgotten), len(done.altered)) == kinds


def test_a_blanked_record_with_another_timestamp_is_a_difference() -> None:
    rows, _ = blanking.blanked(envelopes([4]), [4])
    moved = rows.set_column(1, "timestamp", pa.array([99], pa.int64()))
    done = compare(imprint.imprints(envelopes([4])), imprint.imprints(moved), listed=5, blank_before=10)
    assert (done.altered.tolist(), done.differing) == ([4], {4: ("timestamp",)})
    assert done.forgotten.dtype == np.int64


def test_keys_are_taken_out_of_lists_and_nothing_else_is_changed() -> None:
    scrubbed = scrubber({"a/1", "ü"})
    assert scrubbed('{"x":  [1]}') == '{"x":  [1]}'
    assert json.loads(scrubbed('{"keys": ["a/1", "a/10"], "b": {"c": ["\\u00fc"]}, "n": "a/1"}')) == {
        "keys": ["a/10"], "b": {"c": []}, "n": "a/1",
    }  # fmt: skip


def _written(**options: object) -> bytes:
    table = pa.table({"plain": ["needle-1"], "nested": [[{"x": {"y": "a needle-2 b"}}]], "number": [5]})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_statistics=False, **options)
    return sink.getvalue()


def _manifest() -> bytes:
    schema = {"type": "record", "name": "e", "fields": [{"name": "bounds", "type": {"type": "map", "values": "bytes"}}]}
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), [{"bounds": {"1": b"needle-1"}}], codec="deflate")
    return sink.getvalue()


def found(key: str, body: bytes, *needles: bytes) -> Iterator[str]:
    return absence.search(key, body, needles)


def test_nothing_hides_behind_compression_nesting_or_statistics() -> None:
    body = _written(store_schema=False)
    assert "column plain" in set(found("a.parquet", body, b"needle-1"))
    assert "column nested" in set(found("a.parquet", body, b"needle-2"))
    assert list(found("a.parquet", body, b"needle-3")) == []
    assert "a manifest's entries" in set(found("a.avro", _manifest(), b"needle-1"))
    assert list(found("a.avro", _manifest(), b"needle-2")) == []
    assert list(found("a.json", b'["needle-1"]', b"needle-1")) == ["its bytes"]
    assert absence.forms("ü") == {"ü".encode(), b"\\u00fc"}


def test_what_is_short_is_not_found_by_mere_chance() -> None:
    body = _written(store_schema=False)
    by_chance = [body[at : at + 6] for at in range(4, len(body) - 6)]
    assert not [needle for needle in by_chance if "its bytes" in found("a.parquet", body, needle)]
    manifest = _manifest()
    assert list(found("a.avro", manifest, manifest[-24:-18])) == []
    metadata = b'{"last-updated-ms": 1795061234567, "total-records": "1795", "size": 1795}'
    assert list(found("x/00001-a.metadata.json", metadata, b"1795")) == []
    assert list(found("x/00001-a.metadata.json", metadata, b"last-updated-ms")) == ["its bytes"]
    assert list(found("r.json", b'{"at": "1795-01-01", "n": 179500, "of": 0.1795}', b"1795")) == []
    for body in (b'{"keys": ["1795"]}', b'{"keys":[1795]}', b"1795"):
        assert list(found("r.json", body, b"1795")) == ["its bytes"]
    texts = pa.table({"listed": ['["1795"]', None], "checksums": ["81795061", "-1795"], "alone": ["1795", "9"]})
    sink = io.BytesIO()
    pq.write_table(texts, sink)
    assert list(found("a.parquet", sink.getvalue(), b"1795")) == ["column listed", "column alone"]


def _archived(rows: pa.Table) -> bytes:
    """As extract, blanking and Spark's workers write them."""
    encoder = Encoder(rows.schema)
    encoder.write(rows)
    return encoder.close()[0]


def test_payloads_of_an_archive_file_are_looked_through() -> None:
    said = {"key": b"key-0815", "value": b"\0 Grace Hopper", "headers": [{"name": "h", "value": b"Arlington"}]}
    lies = {"partition": 0, "timestamp": 1, "timestamp_type": "create", "hour": datetime(2026, 1, 1, tzinfo=UTC)}
    schema = schema_to_pyarrow(record.SCHEMA)
    rows = pa.Table.from_pylist([{**lies, **said, "offset": offset} for offset in range(500)], schema=schema)
    for column, needle in (("key", b"key-0815"), ("value", b"Grace Hopper"), ("headers", b"Arlington")):
        assert f"column {column}" in set(found("a.parquet", _archived(rows), needle))
    blank, count = blanking.blanked(rows, range(500))
    assert count == 500
    assert list(found("a.parquet", _archived(blank), b"key-0815", b"Grace Hopper", b"Arlington")) == []


NEEDLE = b"needle-needle-16"
HOLDERS = [
    *(pa.array([value], type_) for value, type_ in (
        (NEEDLE.decode(), pa.string()), (NEEDLE.decode(), pa.large_string()), (NEEDLE.decode(), pa.string_view()),
        (NEEDLE, pa.binary()), (NEEDLE, pa.large_binary()), (NEEDLE, pa.binary_view()), (NEEDLE, pa.binary(16)),
        (NEEDLE, pa.uuid()), ([NEEDLE], pa.list_(pa.large_binary())), ([NEEDLE], pa.list_(pa.binary(16), 1)),
        ({"x": [NEEDLE]}, pa.struct([("x", pa.large_list(pa.binary(16)))])),
        ([(1, {"y": NEEDLE})], pa.map_(pa.int32(), pa.struct([("y", pa.large_binary())]))),
    )),
    pa.array([NEEDLE.decode()]).dictionary_encode(),
]  # fmt: skip


@pytest.mark.parametrize("values", HOLDERS, ids=lambda values: str(values.type))
def test_no_type_of_text_or_bytes_is_passed_over(values: pa.Array) -> None:
    assert absence.holds(values, [b"le-need"])
    assert not absence.holds(values, [b"other"])


def test_a_type_that_nobody_thought_of_proves_nothing() -> None:
    with pytest.raises(TypeError, match="union"):
        absence.holds(pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array(["x"])]), [b"x"])


def test_uuids_and_bytes_are_looked_for_as_they_lie() -> None:
    text = "0f8fad5b-d9cb-469f-a165-70867728950e"
    assert absence.forms(text) == {text.encode(), text.upper().encode(), uuid.UUID(text).bytes}
    assert absence.forms("hex:00ff00ff") == {b"hex:00ff00ff", b"\x00\xff\x00\xff"}
    assert absence.forms("hex:00ff") == {b"hex:00ff"}, "two bytes are in everything"


MOMENT = datetime(2026, 1, 2, 3, 4, 5, 1000, UTC)
ELSEWHERE = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "told"),
    [(True, "true"), (b"\x00\xff", "hex:00ff"), (Decimal("1E+3"), "1000"), ("ü/x", "ü/x"), (-7, "-7"),
     (MOMENT.replace(tzinfo=None), "2026-01-02 03:04:05.001"),
     (MOMENT.astimezone(ELSEWHERE), "2026-01-02 03:04:05.001"),
     (MOMENT.replace(microsecond=0), "2026-01-02 03:04:05"), (MOMENT.date(), "2026-01-02"),
     (MOMENT.time(), "03:04:05.001000"), (time(3, 4), "03:04:00.000000")],
)  # fmt: skip
def test_a_key_is_shown_in_one_way(value: object, told: str) -> None:
    assert shown.key([value, 1]) == f"{told}/1"


def test_a_listed_key_is_shown_the_same_by_a_comparison() -> None:
    values = {"at": MOMENT, "yes": True, "octets": b"\x00\xff", "n": Decimal("1.50"), "hour": time(3, 4)}
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("yes", pa.bool_()), ("octets", pa.binary()),
                        ("n", pa.decimal128(5, 2)), ("hour", pa.time64("us"))])  # fmt: skip
    there = pa.RecordBatch.from_pylist([values], schema=schema)
    done = reckon(Shape(schema, tuple(values)), expected=lambda: iter([there]), found=lambda: iter([there[:0]]))
    assert done.keys["lost"].listed == (shown.key(values.values()),)


@pytest.mark.parametrize(
    ("text", "value", "told"),
    [
        ("4711", Decimal(4711), True),
        ("4711.0", Decimal(4711), True),
        ("4711.6", Decimal(4712), False),
        ("4711", 4711, True),
        ("4711.0", 4711, False),
        ("2026-01-02", MOMENT.date(), True),
        ("2026", date(2026, 1, 1), False),
        ("2026-01-02T08:00", MOMENT.date(), False),
        ("2026-01-02 03:04:05.001", MOMENT.replace(tzinfo=None), True),
        ("2026-01-02T04:04:05.001000+01:00", MOMENT.replace(tzinfo=None), True),
        ("2026-01-02 03:04", MOMENT.replace(second=0, microsecond=0), True),
        ("2026-01-02 03:04:05.0010009", MOMENT, False),
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC), False),
        ("2026", datetime(2026, 1, 1, tzinfo=UTC), False),
        ("0001-01-01T00:00:00+01:00", MOMENT, False),
        ("anything", "anything", True),
        ("00ff", b"\x00\xff", True),
        ("no number", None, False),
    ],
)
def test_a_typed_key_says_a_value_exactly_or_not(text: str, value: object, told: bool) -> None:
    assert shown.says(text, value) is told


@pytest.mark.parametrize(
    ("retention", "compacted", "told"),
    [(86_400_000, False, "2026-11-19 12:00 UTC"), (None, False, "for ever"), (None, True, "publish a tombstone")],
)
def test_the_report_says_until_when_the_topic_holds_them(retention: int | None, compacted: bool, told: str) -> None:
    limits = Limits(1, retention, None, compacted, True, None, None)
    assert told in retained.until(limits, topic="t", now=datetime(2026, 11, 18, 12, tzinfo=UTC))
