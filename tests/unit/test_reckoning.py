"""Reckoning: every loss, double and alteration is found, at the depth that can find it, and named; nothing else is."""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.declaration import Partition
from headrace.errors import ServiceAway
from headrace.reckoning import Keys, Shape, Side, reckon

MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema([
    ("id", pa.string()), ("no", pa.int64()), ("price", pa.decimal128(12, 2)), ("weight", pa.float64()),
    ("made", pa.timestamp("us", "UTC")), ("note", pa.string()),
])  # fmt: skip
SHAPE = Shape(SCHEMA, ("id",), ("no", "price", "weight"), Partition(field="made"))
Row = dict[str, Any]


def rows(count: int = 200) -> list[Row]:
    return [
        {
            "id": f"{number:03d}",
            "no": number,
            "price": Decimal(number) / 4,
            "weight": number / 7,
            "made": MADE + timedelta(hours=number),
            "note": None if number % 3 else "",
        }
        for number in range(count)
    ]


def side(content: list[Row], schema: pa.Schema = SCHEMA, *, size: int = 50) -> Side:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from pa.Table.from_pylist(content, schema=schema).to_batches(max_chunksize=size)

    return batches


def changed(number: int, **values: Any) -> Callable[[list[Row]], list[Row]]:
    return lambda all_: [{**row, **values} if at == number else row for at, row in enumerate(all_)]


def swapped(all_: list[Row]) -> list[Row]:
    one, two = all_[1]["price"], all_[2]["price"]
    return changed(2, price=one)(changed(1, price=two)(all_))


MUTATIONS: dict[str, tuple[Callable[[list[Row]], list[Row]], dict[str, Any]]] = {
    "lost": (lambda all_: all_[:7] + all_[8:], {"count": False, "lost": ("007",)}),
    "doubled": (lambda all_: [*all_, all_[7]], {"count": False, "doubled": ("007",)}),
    "doubled and lost": (
        lambda all_: [*all_[:9], *all_[10:], all_[7]],
        {"count": False, "doubled": ("007",), "lost": ("009",)},
    ),
    "surplus": (lambda all_: [*all_, {**all_[7], "id": "x"}], {"count": False, "surplus": ("x",)}),
    "a cent": (changed(7, price=Decimal("1.76")), {"count": True, "sums": False, "altered": ("007",), "in": "price"}),
    "a microsecond": (
        changed(7, made=MADE + timedelta(hours=7, microseconds=1)),
        {"count": True, "sums": True, "altered": ("007",), "in": "made"},
    ),
    "null for nothing": (changed(3, note=None), {"count": True, "sums": True, "altered": ("003",), "in": "note"}),
    "two rows' values": (swapped, {"count": True, "sums": True, "altered": ("001", "002"), "in": "price"}),
    "a column": (
        lambda all_: [{**row, "note": "x"} for row in all_],
        {"count": True, "sums": True, "altered": 200, "in": "note"},
    ),
    "a partition": (lambda all_: [row for row in all_ if row["made"].day != 4], {"count": False, "lost": 24}),
}


@pytest.mark.parametrize("partitioned", [True, False])
@pytest.mark.parametrize("name", MUTATIONS)
def test_every_mutation_is_found_at_the_depth_that_can_and_named(name: str, partitioned: bool) -> None:
    mutate, told = MUTATIONS[name]
    shape = SHAPE if partitioned else Shape(SCHEMA, SHAPE.key, SHAPE.sums)
    verdict = reckon(shape, expected=side(rows()), found=side(list(reversed(mutate(rows())))))
    depths = verdict.depths
    assert not depths["checksum"], "the last depth finds everything"
    assert {depth: depths[depth] for depth in ("count", "sums") if depth in told} == {  # type: ignore[index]
        depth: told[depth] for depth in ("count", "sums") if depth in told
    }
    for kind in ("lost", "surplus", "doubled", "altered"):
        keys = verdict.keys.get(kind, Keys(0, ()))  # type: ignore[call-overload]
        wanted = told.get(kind, ())
        assert keys.count == (wanted if isinstance(wanted, int) else len(wanted))
        assert isinstance(wanted, int) or keys.listed == wanted
    if "in" in told:
        assert list(verdict.columns) == [told["in"]]
    assert bool(verdict.partitions) is partitioned


def test_partitions_that_differ_are_named_and_no_other() -> None:
    verdict = reckon(SHAPE, expected=side(rows()), found=side(changed(7, note="x")(rows())))
    assert verdict.partitions == ("2026-03-01",)


def test_no_more_keys_are_listed_than_asked_for() -> None:
    verdict = reckon(SHAPE, expected=side(rows()), found=side([]), listed=3)
    assert verdict.keys["lost"] == Keys(200, ("000", "001", "002"))
    assert verdict.found.rows == 0


def test_equal_rows_agree_in_whatever_order_and_batches_they_come() -> None:
    odd = [
        {"id": "nan", "no": -(2**63), "price": Decimal("-0.01"), "weight": math.nan, "made": None, "note": "\n"},
        {"id": "inf", "no": 2**63 - 1, "price": None, "weight": math.inf, "made": datetime(1, 1, 1, tzinfo=UTC)},
        {"id": "big", "no": None, "price": Decimal("9999999999.99"), "weight": 1e300, "note": "ü"},
        {"id": "end", "weight": -1e-300, "made": datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)},
    ]
    content = [*rows(), *odd]
    verdict = reckon(SHAPE, expected=side(content, size=1000), found=side(list(reversed(content)), size=7))
    assert verdict.agrees
    assert verdict.expected.unique == verdict.found.rows == 204
    assert verdict.expected.sums["price"] == Decimal("10000004974.98")
    assert verdict.expected.sums["no"] == sum(range(200)) - 1


def test_sums_of_the_widest_numbers_are_exact() -> None:
    schema = pa.schema([("id", pa.int64()), ("wide", pa.decimal128(38, 10)), ("whole", pa.decimal128(38, 0))])
    wide, whole = Decimal("9" * 28 + "." + "9" * 10), Decimal("-" + "9" * 38)
    content = [{"id": number, "wide": wide, "whole": whole} for number in range(1000)]
    verdict = reckon(
        Shape(schema, ("id",), ("wide", "whole")), expected=side(content, schema), found=side(content, schema)
    )
    assert verdict.agrees
    assert {name: str(total) for name, total in verdict.expected.sums.items()} == {
        "wide": f"{'9' * 31}.{'9' * 7}000",
        "whole": f"-{'9' * 38}000",
    }


def test_two_empty_stores_agree() -> None:
    assert reckon(SHAPE, expected=side([]), found=side([])).agrees


def test_a_side_that_cannot_be_read_is_told_as_it_is() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from side(rows())()
        raise ServiceAway("S3 does not answer")

    for sides in ({"expected": broken, "found": side(rows())}, {"expected": side(rows()), "found": broken}):
        with pytest.raises(ServiceAway, match=r"^S3 does not answer$"):
            reckon(SHAPE, **sides)
