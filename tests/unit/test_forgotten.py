"""What is forgotten: keys as they are typed, the hold list, blanked records, and the search for what is left."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import blanking, forgotten, imprint
from headrace.comparison import compare
from headrace.errors import SettingsError
from headrace.forgotten import Entry
from headrace.heads import Heads
from headrace.kafka.limits import Limits
from headrace.provenance import SigningKey
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


@pytest.mark.parametrize(
    ("retention", "compacted", "told"),
    [(86_400_000, False, "2026-11-19 12:00 UTC"), (None, False, "for ever"), (None, True, "publish a tombstone")],
)
def test_the_report_says_until_when_the_topic_holds_them(retention: int | None, compacted: bool, told: str) -> None:
    limits = Limits(1, retention, None, compacted, True, None, None)
    assert told in retained.until(limits, topic="t", now=datetime(2026, 11, 18, 12, tzinfo=UTC))
