"""A slice: how it is told, and which records it means."""

import numpy as np
import pyarrow as pa
import pytest

from headrace.errors import SliceError
from headrace.slice import Slice, key, moment, spans


def test_offsets_name_the_first_and_the_last() -> None:
    assert spans(["0:100-199", "2:5-5", "0:7-8"]) == {0: ((100, 200), (7, 9)), 2: ((5, 6),)}


@pytest.mark.parametrize("text", ["", "0", "0:5", "0:9-", "a:1-2", "-1:1-2"])
def test_offsets_that_are_told_otherwise_are_refused(text: str) -> None:
    with pytest.raises(SliceError, match="PARTITION:FIRST-LAST"):
        spans([text])


def test_offsets_that_end_before_they_begin_are_refused() -> None:
    with pytest.raises(SliceError, match="end before they begin"):
        spans(["0:9-8"])


def test_a_time_is_utc_where_it_says_nothing_else() -> None:
    assert (
        moment("1970-01-01T00:00:01") == moment("1970-01-01T01:00:01+01:00") == moment("1970-01-01T00:00:01Z") == 1000
    )
    assert moment("1790000000000") == 1_790_000_000_000
    assert moment(None) is moment(" ") is None
    with pytest.raises(SliceError, match="is not ISO 8601"):
        moment("yesterday")


@pytest.mark.parametrize("last", [2**63 - 1, 99999999999999999999])
def test_offsets_and_times_that_kafka_cannot_have_are_refused(last: int) -> None:
    with pytest.raises(SliceError, match="beyond any that Kafka has"):
        spans([f"0:0-{last}"])
    with pytest.raises(SliceError, match="later than any that Kafka has"):
        moment(str(last + 1))
    assert spans([f"0:0-{2**63 - 2}"]) == {0: ((0, 2**63 - 1),)}


def placed(*places: tuple[int, int]) -> Slice:
    """What lies in quarantine, at these places."""
    partitions, offsets = zip(*places, strict=True) if places else ((), ())
    return Slice(quarantine="").at(np.array(partitions, np.int32), np.array(offsets, np.int64))


RECORDS = [(0, 100, b"a"), (1, 200, b"b"), (2, None, b"a"), (3, 300, None), (4, 400, b"a")]
SLICES = [
    (Slice(), [0, 1, 2, 3, 4]),
    (Slice(since=200), [1, 3, 4]),
    (Slice(until=300), [0, 1]),
    (Slice(offsets={0: ((1, 2), (3, 9))}), [1, 3, 4]),
    (Slice(keys=frozenset([b"a"])), [0, 2, 4]),
    (Slice(keys=frozenset([b"a"]), since=150), [4]),
    (Slice(partitions=frozenset([1])), []),
    (Slice(partitions=frozenset([0]), offsets={0: ((1, 2),)}), [1]),
    (Slice(partitions=frozenset([0]), offsets={1: ((0, 9),)}), []),
    (Slice(drained=True), []),
    (Slice(offsets={0: ((0, 2**63 - 1),)}, until=2**63 - 1), [0, 1, 3, 4]),
    (placed((0, 99), (-1, 3), (0, 2), (1, 1)), [2]),
    (placed(), []),
]


@pytest.mark.parametrize(("slice_", "meant"), SLICES)
def test_one_record_and_many_at_once_are_judged_alike(slice_: Slice, meant: list[int]) -> None:
    assert [at for at, time, key in RECORDS if slice_.has(0, at, timestamp=time, key=key)] == meant
    offsets, times, keys = zip(*RECORDS, strict=True)
    numbers = {"offset": pa.array(offsets, pa.int64()), "timestamp": pa.array(times, pa.int64())}
    batch = pa.record_batch({**numbers, "key": pa.array(keys, pa.binary())})
    found = batch.filter(slice_.mask(batch, 0))["offset"].to_pylist() if slice_.has_partition(0) else []
    assert found == meant
    assert slice_.may_hold(0, offsets=(0, 4), times=(100, 400)) or not meant


def test_files_that_hold_nothing_of_it_are_left_out() -> None:
    assert not Slice(since=500).may_hold(0, offsets=(0, 4), times=(100, 400))
    assert not Slice(until=100).may_hold(0, offsets=(0, 4), times=(100, 400))
    assert not Slice(offsets={0: ((5, 9),)}).may_hold(0, offsets=(0, 4), times=(100, 400))
    assert Slice(since=500).may_hold(0, offsets=(0, 4), times=(None, None))
    assert Slice(drained=True, partitions=frozenset([2])).may_hold(-3, offsets=(0, 4), times=(None, None))
    assert not Slice(partitions=frozenset([2])).may_hold(-3, offsets=(0, 4), times=(None, None))
    assert placed((0, 4)).may_hold(0, offsets=(0, 4), times=(None, None))
    assert not placed((0, 5), (1, 2)).may_hold(0, offsets=(0, 4), times=(None, None))


def test_the_same_slice_to_the_same_place_has_the_same_name_and_tells_no_key() -> None:
    def name(slice_: Slice, to: str = "t", *, same: bool = False) -> str:
        return slice_.identity(feed="orders", topic_id="id", to=to, same_partitions=same, secret=b"secret")

    keyed = Slice(keys=frozenset([b"anna@example.org", b"ben@example.org"]))
    assert name(keyed) == name(Slice(keys=frozenset([b"ben@example.org", b"anna@example.org"])))
    others = [
        Slice(),
        Slice(since=1),
        Slice(until=1),
        Slice(drained=True),
        Slice(quarantine=""),
        Slice(quarantine="forged"),
    ]
    assert len({name(each) for each in (*others, keyed)} | {name(Slice(), to="other")}) == len(others) + 2
    assert name(Slice(), same=True) != name(Slice())
    assert name(placed((0, 1))) == name(Slice(quarantine=""))
    assert "example.org" not in repr(keyed)


def test_a_key_is_told_as_text_or_as_its_bytes() -> None:
    assert [key("o-1"), key("hex:00FF"), key("hex:")] == [b"o-1", b"\x00\xff", b""]
    with pytest.raises(SliceError, match="pairs of hexadecimal digits") as raised:
        key("hex:ada@example.org")
    assert "ada" not in str(raised.value)
