"""A share: what one warehouse gets of a feed, with personal columns left out or masked before a row leaves the lake."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.types import IcebergType, IntegerType, StringType

from headrace import masks
from headrace.arrow import travel_type, travelling
from headrace.clean import HIDDEN_ROW
from headrace.columns import Column, columns
from headrace.declaration import Mask
from headrace.feed import Feed
from headrace.masks import MaskKey

EVERY_ROW = "true"
VISIBLE = f"{HIDDEN_ROW} = false"
MASKED_TYPES: dict[Mask, IcebergType] = {"hash": StringType(), "last4": StringType(), "year": IntegerType()}


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
    def types(self) -> dict[str, IcebergType]:
        """The columns' types after masking, from which each warehouse tells its own."""
        return {column.name: self._masked(column) for column in self.columns}

    @property
    def schema(self) -> pa.Schema:
        """The rows as Arrow, as they travel."""
        return pa.schema([pa.field(name, travel_type(type_)) for name, type_ in self.types.items()])

    def _masked(self, column: Column) -> IcebergType:
        masked = MASKED_TYPES.get(self.masks[column.name]) if column.name in self.masks else None
        return masked or column.type


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
    # A snapshot from before a column was added does not know it.
    scan = table.scan(row_filter=where, selected_fields=_known(table, fields, snapshot=snapshot), snapshot_id=snapshot)
    for batch in scan.to_arrow_batch_reader():
        masked = masks.apply(_travelling(pa.Table.from_batches([batch]), share), share.masks, key=mask_key)
        yield from masked.cast(schema).to_batches()


def _known(table: Table, fields: tuple[str, ...], *, snapshot: int) -> tuple[str, ...]:
    schema = table.scan(snapshot_id=snapshot).projection()
    return tuple(name for name in fields if name in schema.column_names)


def _travelling(batch: pa.Table, share: Share) -> pa.Table:
    """The share's columns as they travel, not yet masked."""
    changed = {column.name: _travelling_column(batch, column) for column in share.columns}
    return pa.table({**changed, HIDDEN_ROW: batch.column(HIDDEN_ROW)})


def _travelling_column(batch: pa.Table, column: Column) -> pa.ChunkedArray:
    if column.name not in batch.column_names:
        return pa.chunked_array([pa.nulls(batch.num_rows, travel_type(column.type))])
    return travelling(batch.column(column.name), column.type)
