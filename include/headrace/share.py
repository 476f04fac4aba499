"""A share: what one warehouse gets of a feed, with personal columns left out or masked before a row leaves the lake."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table
from pyiceberg.types import IcebergType

from headrace import masks
from headrace.clean import HIDDEN_ROW
from headrace.columns import Column, columns
from headrace.declaration import Mask
from headrace.feed import Feed
from headrace.masks import MaskKey

EVERY_ROW = "true"
VISIBLE = f"{HIDDEN_ROW} = false"
MASKED_TYPES: dict[Mask, pa.DataType] = {"hash": pa.string(), "last4": pa.string(), "year": pa.int32()}


@dataclass(frozen=True)
class Share:
    """The columns that one warehouse sees, and the masks on them."""

    feed: str
    warehouse: str
    doc: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    masks: dict[str, Mask]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def schema(self) -> pa.Schema:
        """The rows as Arrow, after masking."""
        return pa.schema([pa.field(column.name, self._type(column)) for column in self.columns])

    def _type(self, column: Column) -> pa.DataType:
        masked = MASKED_TYPES.get(self.masks[column.name]) if column.name in self.masks else None
        return masked or arrow_type(column.type)


def arrow_type(type_: IcebergType) -> pa.DataType:
    converted = schema_to_pyarrow(type_)
    assert isinstance(converted, pa.DataType), "a type, not a schema, was converted"
    return converted


def share(feed: Feed, warehouse: str) -> Share:
    """The warehouse's columns: a personal field must be kept or masked by name, any other may be dropped by name."""
    declared = feed.declaration.warehouses[warehouse]
    allowed = tuple(
        column
        for column in columns(feed)
        if column.name not in declared.drop
        and (not column.pii or column.name in declared.keep or column.name in declared.mask)
    )
    return Share(feed.name, warehouse, feed.doc, tuple(feed.declaration.key), allowed, dict(declared.mask))


def rows(table: Table, share: Share, *, snapshot: int, where: str, mask_key: MaskKey) -> Iterator[pa.RecordBatch]:
    """The clean table's rows at a snapshot as the warehouse may see them, hidden rows marked, in batches."""
    fields = (*share.names, HIDDEN_ROW)
    schema = share.schema.append(pa.field(HIDDEN_ROW, pa.bool_()))
    scan = table.scan(row_filter=where, selected_fields=fields, snapshot_id=snapshot)
    for batch in scan.to_arrow_batch_reader():
        masked = masks.apply(pa.Table.from_batches([batch]).select(list(fields)), share.masks, key=mask_key)
        yield from masked.cast(schema).to_batches()
