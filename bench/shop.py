"""A shop: a clean table of many orders in the lake, made without Spark, and days of it that change."""

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

DAY_US = 86_400_000_000
FIRST_US = 1_750_000_000_000_000 // DAY_US * DAY_US
FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "revision", "type": "long"},
    {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["placed", "paid", "sent"]}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "weight", "type": "double"},
    {"name": "customer", "type": "string"},
    {"name": "city", "type": ["null", "string"], "default": None},
    {"name": "email", "type": "string", "pii": "email"},
    {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {
        "name": "address",
        "type": {
            "type": "record",
            "name": "Address",
            "fields": [
                {"name": "street", "type": "string"},
                {"name": "zip", "type": "string"},
                {"name": "lines", "type": {"type": "array", "items": "string"}},
            ],
        },
    },
]
DECLARED = {
    "key": ["id"],
    "order": ["revision"],
    "partition": {"field": "created_at", "by": "day", "immutable": True},
    "correctness": {"sum": ["price", "weight"]},
    "warehouses": {"finance": {"keep": ["email"]}},
}


@dataclass(frozen=True)
class Shop:
    """A feed with a clean table of so many rows, spread over days of `day_rows` each."""

    feed: Any
    lake: Any
    day_rows: int

    @classmethod
    def named(cls, name: str, lake: Any, *, day_rows: int, nested: bool = False) -> "Shop":
        """The shop of that name, whose rows may be there already."""
        from headrace import feed as feeds

        fields = FIELDS if nested else FIELDS[:-1]
        schema = {"type": "record", "name": "Order", "doc": "An order.", "feed": DECLARED, "fields": fields}
        return cls(feeds.parse(f"{name}.avsc", json.dumps(schema)), lake, day_rows)

    @classmethod
    def made(cls, name: str, lake: Any, *, rows: int, day_rows: int, nested: bool = False) -> "Shop":
        from headrace import clean, heads
        from headrace.heads import Heads

        shop = cls.named(name, lake, day_rows=day_rows, nested=nested)
        table = clean.clean_of(shop.feed, lake)
        paths = [
            shop._write(table, shop._rows(table, np.arange(first, min(first + day_rows, rows)), revision=1))
            for first in range(0, rows, day_rows)
        ]
        table.add_files(paths, {heads.PROPERTY: Heads().to_json()}, check_duplicate_files=False)
        return shop

    @property
    def table(self) -> Any:
        from headrace import layout

        return self.lake.find(layout.clean_table(self.feed.name))

    def change(self, numbers: np.ndarray) -> None:
        """Give these rows another revision, as a run's merge does: the files of their days are written anew."""
        from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan

        from headrace import clean, heads
        from headrace.heads import Heads

        table, properties = self.table, {heads.PROPERTY: Heads().to_json()}
        changed = pa.scalar(table.metadata.last_sequence_number + 1, pa.int64())
        with table.transaction() as transaction:
            for day in np.unique(numbers // self.day_rows):
                start = int(FIRST_US + day * DAY_US)
                bounds = ((GreaterThanOrEqual, start), (LessThan, start + DAY_US))
                where = And(*(form("created_at", _moment(at)) for form, at in bounds))
                rows = table.scan(row_filter=where).to_arrow()
                hit = pc.is_in(rows["id"], value_set=pa.array(numbers))
                rows = _replaced(rows, "revision", pc.if_else(hit, pc.add(rows["revision"], 1), rows["revision"]))
                rows = _replaced(rows, clean.CHANGED, pc.if_else(hit, changed, rows[clean.CHANGED]))
                transaction.delete(where, snapshot_properties=properties)
                path = self._write(table, rows.sort_by("id"))
                transaction.add_files([path], properties, check_duplicate_files=False)

    def _write(self, table: Any, rows: pa.Table) -> str:
        """A data file of one day's rows."""
        path = f"{table.location()}/data/{uuid.uuid4().hex}.parquet"
        with table.io.new_output(path).create() as file:
            pq.write_table(rows, file, compression="zstd")
        return path

    def _rows(self, table: Any, numbers: np.ndarray, *, revision: int) -> pa.Table:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        from headrace import clean

        count, random = len(numbers), np.random.default_rng(int(numbers[0]))
        text = pa.array(numbers).cast(pa.string())
        columns = {
            "id": pa.array(numbers),
            "revision": pa.array(np.full(count, revision)),
            "status": pa.array(np.array(["placed", "paid", "sent"])[numbers % 3]),
            "price": pa.array(random.integers(0, 10**6, count)).cast(pa.decimal128(21, 2)),
            "weight": pa.array(random.random(count)),
            "customer": pc.binary_join_element_wise("customer ", text, ""),
            "city": pa.array(np.array(["Ghent", "Oslo", None])[numbers % 3]),
            "email": pc.binary_join_element_wise("somebody.", text, "@example.org", ""),
            "created_at": pa.array(FIRST_US + numbers * (DAY_US // self.day_rows), pa.timestamp("us", "UTC")),
            "address": pa.StructArray.from_arrays(
                [
                    pc.binary_join_element_wise("Street ", text, ""),
                    pc.utf8_slice_codeunits(text, 0, 5),
                    pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32), text),
                ],
                ["street", "zip", "lines"],
            ),
            clean.HIDDEN_ROW: pa.array(np.zeros(count, np.bool_)),
            **{each.name: pa.array(np.zeros(count, np.int64)) for each in clean.HIDDEN[1:]},
            clean.RANK_OFFSET: pa.array(numbers),
        }
        schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
        return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)


def _replaced(rows: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def _moment(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat()


def spread(rows: int, count: int, *, last: int) -> np.ndarray:
    """So many numbers of rows, evenly among the last ones of the table."""
    return np.linspace(rows - last, rows - 1, count).astype(np.int64)
