"""The type reference: every construct of Avro and JSON Schema, and what it becomes in each store.

What the stores have is told by the code that makes their tables: `python -m headrace.type_reference` writes the tables
of `docs/types.md` anew.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pyiceberg.types import IcebergType

from headrace.arrow import arrow_type
from headrace.columns import JsonText, columns
from headrace.constructs import CONSTRUCTS, DEFINITIONS, REFUSED, Construct
from headrace.errors import FeedError
from headrace.feed import Feed, SchemaType, parse
from headrace.warehouses import postgres_types, redshift_types

PAGE = "types.md"
BEGIN, END = "<!-- made by python -m headrace.type_reference -->\n", "<!-- end -->\n"
HEADER = ("construct", "example", "Arrow", "Iceberg", "Postgres", "Redshift", "remark")


def schema(schema_type: SchemaType, constructs: Iterable[Construct]) -> dict[str, Any]:
    """A schema with a key, and one field for each construct."""
    if schema_type == "AVRO":
        fields = [{"name": each.field, "type": each.schema} for each in constructs]
        return {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "string"}, *fields]}
    properties = {"id": {"type": "string"}, **{each.field: each.schema for each in constructs}}
    return {"type": "object", "required": ["id"], "properties": properties, "$defs": DEFINITIONS}


def feed(schema_type: SchemaType, constructs: Iterable[Construct]) -> Feed:
    file, attribute = ("types.avsc", "feed") if schema_type == "AVRO" else ("types.json", "x-feed")
    return parse(file, json.dumps({**schema(schema_type, constructs), attribute: {"key": ["id"]}}))


def table(schema_type: SchemaType) -> Iterator[str]:
    """The table of what is supported, line by line."""
    yield from _head(HEADER)
    constructs = CONSTRUCTS[schema_type]
    found = {column.name: column.type for column in columns(feed(schema_type, constructs))}
    for construct in constructs:
        stores = (f"`{each}`" for each in in_stores(found[construct.field]))
        yield _line([construct.name, f"`{json.dumps(construct.schema)}`", *stores, construct.remark])


def in_stores(type_: IcebergType) -> tuple[str, str, str, str]:
    """What a type is called in Arrow, Iceberg, Postgres and Redshift."""
    arrow = str(arrow_type(type_)).replace("large_", "").replace("extension<arrow.uuid>", "uuid")
    iceberg = re.sub(r"0: (\w+): optional ", r"\1: ", str(type_)) + (" (JSON)" if isinstance(type_, JsonText) else "")
    return arrow, iceberg, postgres_types.column_type(type_), redshift_types.column_type(type_)


def refusals(schema_type: SchemaType) -> Iterator[str]:
    """The table of what is refused, and what is told about it."""
    yield from _head(("construct", "example", "told"))
    for construct in REFUSED[schema_type]:
        yield _line([construct.name, f"`{json.dumps(construct.schema)}`", refusal(schema_type, construct)])


def refusal(schema_type: SchemaType, construct: Construct) -> str:
    try:
        columns(feed(schema_type, [construct]))
    except FeedError as error:
        return str(error)
    raise AssertionError(f"{construct.name} is not refused")


def _head(names: Sequence[str]) -> tuple[str, str]:
    return _line(names), "|" + "---|" * len(names)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def renewed(page: str) -> str:
    """The page with the tables between its marks written anew: what is supported, then what is refused."""
    made = (make(schema_type) for make in (table, refusals) for schema_type in CONSTRUCTS)
    before, *parts = page.split(BEGIN)
    after = [part.partition(END)[2] for part in parts]
    return before + "".join(
        f"{BEGIN}{chr(10).join(lines)}\n{END}{rest}" for lines, rest in zip(made, after, strict=True)
    )


def write(docs: Path) -> None:
    page = docs / PAGE
    page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write(Path("docs"))
