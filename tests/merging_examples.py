"""The examples of docs/merging.md: what each declares, the records that come and the rows that they make."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workshop import Record

PAGE = Path(__file__).parents[1] / "docs" / "merging.md"
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
    made: list[Cells]
    quarantine: dict[tuple[int, int], str]

    @property
    def sent(self) -> list[Record]:
        return [_record(cells) for cells in self.records]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What readers see."""
        return sorted((_row(cells) for cells in self.made), key=str)


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


def _row(cells: Cells) -> dict[str, Any]:
    town, floor = cells.get("place.town") or None, int(cells["place.floor"]) if cells.get("place.floor") else None
    return {
        "id": cells["id"],
        "revision": int(cells["revision"]),
        "state": cells["state"] or None,
        "place": {"town": town, "floor": floor} if town or floor else None,
    }


def _record(cells: Cells) -> Record:
    return Record(None if cells["revision"] == TOMBSTONE else _row(cells), key=cells["id"])
