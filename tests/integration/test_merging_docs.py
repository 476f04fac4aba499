"""The examples of docs/merging.md: each goes through real Kafka and Spark, in one run and split into two."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from workshop import Record, Workshop

PAGE = Path(__file__).parents[2] / "docs" / "merging.md"
TOMBSTONE = "tombstone"
TEXT = ["null", "string"]
PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [
        {"name": "town", "type": TEXT, "default": None},
        {"name": "floor", "type": ["null", "int"], "default": None},
    ],
}
FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": "int"},
    {"name": "state", "type": TEXT, "default": None},
    {"name": "place", "type": ["null", PLACE], "default": None},
]

Cells = dict[str, str]


@dataclass(frozen=True)
class Example:
    """One section: a declaration, the records, the rows that they make and what is rejected."""

    title: str
    declared: dict[str, Any]
    records: list[Cells]
    rows: list[Cells]
    quarantine: dict[tuple[int, int], str]


def examples() -> Iterator[Example]:
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        declared = re.search(r"```json\n(.*?)\n```", section, re.DOTALL)
        if declared is None:
            continue
        tables = {next(iter(table[0])): table for table in _tables(section)}
        yield Example(
            section.partition("\n")[0],
            json.loads(declared[1]),
            tables["record"],
            tables["row"],
            {_place(row["quarantine"]): row["reason"] for row in tables.get("quarantine", [])},
        )


def _tables(section: str) -> Iterator[list[Cells]]:
    for block in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        titles, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines())
        yield [dict(zip(titles, row, strict=True)) for row in rows]


def _place(text: str) -> tuple[int, int]:
    partition, offset = text.split("/")
    return int(partition), int(offset)


def row(cells: Cells) -> dict[str, Any]:
    town, floor = cells.get("place.town") or None, int(cells["place.floor"]) if cells.get("place.floor") else None
    return {
        "id": cells["id"],
        "revision": int(cells["revision"]),
        "state": cells["state"] or None,
        "place": {"town": town, "floor": floor} if town or floor else None,
    }


def record(cells: Cells) -> Record:
    return Record(None if cells["revision"] == TOMBSTONE else row(cells), key=cells["id"])


def test_the_page_has_an_example_of_every_rule() -> None:
    assert {example.declared["merge"] for example in examples()} == {"latest", "first", "patch", "append"}


@pytest.mark.parametrize("split", [False, True], ids=["one run", "two runs"])
@pytest.mark.parametrize("example", examples(), ids=lambda example: example.title)
def test_the_records_make_the_rows(workshop: Callable[..., Workshop], example: Example, split: bool) -> None:
    assert [cells["record"] for cells in example.records] == [f"0/{place}" for place in range(len(example.records))]
    shop = workshop({**example.declared, "topic": {"partitions": 1}}, fields=FIELDS)
    records = [record(cells) for cells in example.records]
    half = len(records) // 2 if split else len(records)
    for batch in (records[:half], records[half:]):
        if batch:
            shop.merge(*batch)
    assert shop.clean() == sorted((row(cells) for cells in example.rows), key=str)
    assert shop.quarantine() == example.quarantine
