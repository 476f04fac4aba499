"""How the clean table's files lie: sorted, and told apart by their keys, so that a look-up reads one per partition."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow.parquet as pq
import pytest
from keeping import clean_table, kept
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import And, EqualTo
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from workshop import ORDER, Record, Workshop

from headrace.stages import compaction
from spark_jobs import stretches

Make = Callable[..., Workshop]

DAY_MS = 86_400_000
FIRST = datetime(2026, 9, 4, tzinfo=UTC)
BY_DAY = {"partition": {"field": "created_at"}}
LIKE = "urn:shop:order:of-this-year:"
"""Longer than what Iceberg tells of a text by itself."""


@pytest.fixture(autouse=True)
def two_small_files_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "INPUTS", 2)


def orders(numbers: range, revision: int) -> list[Record]:
    """In no order of their keys; by number on one day or another."""
    dice = random.Random(revision)
    shuffled = dice.sample(numbers, k=len(numbers))
    return [
        Record(
            {
                "id": f"{LIKE}{number:06d}",
                "revision": revision,
                "status": "paid",
                "price": Decimal(number),
                "email": f"{dice.getrandbits(512):x}@example.org",
                "created_at": int(FIRST.timestamp()) * 1000 + number % 2 * DAY_MS,
            }
        )
        for number in shuffled
    ]


def files(table: Table) -> dict[str, list[DataFile]]:
    """By partition."""
    found: dict[str, list[DataFile]] = {}
    for task in table.scan().plan_files():
        found.setdefault(str(task.file.partition), []).append(task.file)
    return found


def bounds(table: Table, file: DataFile, name: str) -> tuple[Any, Any]:
    """The lowest and the highest value of a column, as the manifest has it."""
    field = table.schema().find_field(name)
    low, high = (side[field.field_id] for side in (file.lower_bounds, file.upper_bounds))
    return from_bytes(field.field_type, low), from_bytes(field.field_type, high)


def column(table: Table, file: DataFile, name: str) -> list[Any]:
    with table.io.new_input(file.file_path).open() as stream:
        return list(pq.read_table(stream, columns=[name])[name].to_pylist())


def is_disjoint(ranges: list[tuple[Any, Any]]) -> bool:
    return all(one[1] < next_[0] for one, next_ in pairwise(sorted(ranges)))


@pytest.mark.parametrize("declared", [BY_DAY, {}], ids=["by day", "no partitions"])
def test_a_look_up_by_key_reads_one_file_of_a_partition(workshop: Make, declared: dict[str, Any]) -> None:
    shop = workshop({**ORDER, **declared})
    shop.merge(*orders(range(0, 4000, 2), 1))
    with clean_table(shop).transaction() as transaction:
        transaction.set_properties({"write.target-file-size-bytes": "100000"})
    shop.merge(*orders(range(4000), 2))
    shop.merge(*orders(range(1000, 5000, 3), 3))
    kept(shop)

    table = clean_table(shop)
    lying = files(table)
    assert len(lying) == (2 if declared else 1)
    for parts in lying.values():
        assert len(parts) > 1
        assert is_disjoint([bounds(table, file, "id") for file in parts])
        for file in parts:
            ids = column(table, file, "id")
            assert ids == sorted(ids)
            assert bounds(table, file, "id") == (ids[0], ids[-1]), "whole, not only how they begin"
    for number in (0, 1, 1234, 3999):
        key, day = f"{LIKE}{number:06d}", (FIRST + timedelta(days=number % 2)).isoformat()
        wanted = And(EqualTo("id", key), EqualTo("created_at", day)) if declared else EqualTo("id", key)
        (found,) = table.scan(row_filter=wanted).plan_files()
        assert key in column(table, found.file, "id")
    assert len(shop.clean()) == 4000 + len(range(4000, 5000, 3))


def test_rows_lie_in_the_order_of_the_declared_sort_fields(workshop: Make) -> None:
    shop = workshop({**ORDER, **BY_DAY, "sort": ["price", "id"]})
    shop.merge(*orders(range(300), 1))
    shop.merge(*orders(range(100, 400), 2))
    for _ in range(2):
        table = clean_table(shop)
        for file in (file for parts in files(table).values() for file in parts):
            prices = column(table, file, "price")
            assert prices == sorted(prices)
            assert bounds(table, file, "price") == (prices[0], prices[-1])
        kept(shop)


def test_a_table_made_earlier_tells_its_keys_from_now_on(workshop: Make) -> None:
    shop = workshop({**ORDER, **BY_DAY})
    shop.merge(*orders(range(4), 1))
    name = "write.metadata.metrics.column.id"
    with clean_table(shop).transaction() as transaction:
        transaction.set_properties({"write.metadata.metrics.column.gone": "full", "write.distribution-mode": "none"})
        transaction.remove_properties(name)
    shop.merge(*orders(range(4), 2))
    properties = clean_table(shop).properties
    assert (properties[name], properties["write.distribution-mode"]) == ("full", "hash")
    assert "write.metadata.metrics.column.gone" not in properties


@pytest.mark.parametrize("looked_at", [0, 50_000])
@pytest.mark.parametrize("declared", [BY_DAY, {}], ids=["by day", "no partitions"])
def test_keys_far_apart_are_all_found(
    workshop: Make, monkeypatch: pytest.MonkeyPatch, declared: dict[str, Any], looked_at: int
) -> None:
    monkeypatch.setattr(stretches, "LOOKED_AT", looked_at)
    shop = workshop({**ORDER, **declared})
    shop.merge(*orders(range(0, 5000, 50), 1))
    moved = [replace(each, value={**each.value, "created_at": 0}) for each in orders(range(0, 5000, 700), 2)]  # type: ignore[dict-item]
    gone = Record(None, key=f"{LIKE}{2500:06d}")
    accounts = shop.merge(*moved, gone, *orders(range(1, 5001, 5000), 3))
    assert {name: accounts[name] for name in ("inserted", "updated", "deleted")} == {
        "inserted": 1, "updated": 8, "deleted": 1,
    }  # fmt: skip
    assert len(shop.clean()) == 100
