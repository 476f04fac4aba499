"""Comparison: of two sides' imprints, what is missing, doubled or altered, and where."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.comparison import compare, holes, runs
from headrace.imprint import PARTS, Imprints, imprints

HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))


def side(*rows: tuple[int, int]) -> Imprints:
    """Records by offset and content."""
    offsets, contents = zip(*rows, strict=True) if rows else ((), ())
    return Imprints(np.array(offsets, np.int64), {name: np.array(contents, np.uint64) for name in PARTS})


def batch(**columns: Sequence[object]) -> pa.Table:
    blank = {"offset": [0], "key": [None], "value": [None], "headers": [[]], "timestamp": [1], "timestamp_type": ["x"]}
    types = {
        "offset": pa.int64(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": HEADERS,
        "timestamp": pa.int64(),
    }
    return pa.table({name: pa.array(each, types.get(name)) for name, each in {**blank, **columns}.items()})


def test_what_differs_is_told_by_its_kind() -> None:
    found = compare(side((1, 1), (2, 2), (3, 3), (5, 5)), side((5, 5), (1, 1), (3, 9), (5, 5), (7, 7)), listed=9)
    assert found.equal == 2
    assert found.missing.tolist() == [2]
    assert found.doubled.tolist() == [5]
    assert found.altered.tolist() == [3]
    assert found.surplus.tolist() == [7]
    assert found.differing == {3: PARTS}


def test_of_two_rows_of_one_record_each_is_compared() -> None:
    found = compare(side((1, 1)), side((1, 1), (1, 2)), listed=9)
    assert (found.altered.tolist(), found.doubled.tolist(), found.equal) == ([1], [1], 0)


@given(st.sets(st.integers(0, 60)), st.lists(st.integers(0, 60)))
def test_it_says_what_sets_say(topic: set[int], archive: list[int]) -> None:
    found = compare(side(*((each, 0) for each in sorted(topic))), side(*((each, 0) for each in archive)), listed=9)
    assert set(found.missing.tolist()) == topic - set(archive)
    assert set(found.surplus.tolist()) == set(archive) - topic
    assert len(found.doubled) == len(archive) - len(set(archive))
    assert found.equal == len(topic & set(archive))
    assert not len(found.altered)


@given(st.sets(st.integers(0, 60)))
def test_runs_and_holes_together_are_everything(offsets: set[int]) -> None:
    known = np.array(sorted(offsets), np.int64)
    covered = [each for span in (*runs(known), *holes(known, reached=0, upto=61)) for each in range(*span)]
    assert sorted(covered) == list(range(61))
    assert {each for span in runs(known) for each in range(*span)} == offsets


def parts(**columns: Sequence[object]) -> tuple[int, ...]:
    found = imprints(batch(**columns))
    return tuple(int(found.parts[name][0]) for name in PARTS)


def test_a_null_an_empty_value_and_a_byte_are_three_things() -> None:
    for name in ("key", "value"):
        assert len({parts(**{name: [value]}) for value in (None, b"", b"\0", b"\0\0")}) == 4


def test_headers_differ_by_name_value_number_and_order() -> None:
    one, two = {"name": "a", "value": b"1"}, {"name": "b", "value": b"2"}
    several = [[], [one], [two], [one, two], [two, one], [one, one], [{"name": "a", "value": None}]]
    assert len({parts(headers=[headers]) for headers in [*several, [{"name": "a", "value": b""}]]}) == 8


def test_no_headers_are_no_headers_however_they_are_told() -> None:
    assert parts(headers=[[]]) == parts(headers=[None])


def test_timestamps_and_their_types_count() -> None:
    assert len({parts(timestamp=[1]), parts(timestamp=[2]), parts(timestamp=[None]), parts(timestamp_type=["y"])}) == 4


def test_a_checksum_tells_two_records_that_swapped_a_part_and_no_order() -> None:
    offsets, hashes = np.array([4, 5, 6]), np.array([7, 8, 9], np.uint64)
    whole = Imprints(offsets, dict.fromkeys(PARTS, hashes))
    assert whole.checksum == whole.where(np.array([2, 0, 1])).checksum
    swapped = Imprints(offsets, {**whole.parts, "value": hashes[[1, 0, 2]]})
    assert swapped.checksum != whole.checksum
    result = compare(whole, swapped, listed=9)
    assert (result.checksum + result.apart) % 2**64 == whole.checksum, "what should be there, whatever is"
    doubled = whole.where(np.array([0, 0, 2]))
    result = compare(whole, doubled, listed=9)
    assert (result.checksum + result.apart) % 2**64 == whole.checksum
