"""Rows on the wire to and from Postgres: Arrow batches that its binary COPY takes as they are, and gives."""

import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from pyiceberg.types import IcebergType, UUIDType

from headrace import uuids
from headrace.arrow import is_json
from headrace.share import Share

JSONB_VERSION = b"\x01"
"""The version of jsonb's binary form, which a text follows."""


def schema(travelling: pa.Schema, share: Share) -> pa.Schema:
    """The types in which rows are sent: for Postgres' own types, the bytes that it takes for them."""
    types = share.types
    return pa.schema([pa.field(each.name, _sent_type(types.get(each.name), each.type)) for each in travelling])


def _sent_type(type_: IcebergType | None, travelling: pa.DataType) -> pa.DataType:
    return pa.binary() if type_ is not None and (is_json(type_) or isinstance(type_, UUIDType)) else travelling


def sent(batch: pa.RecordBatch, share: Share) -> pa.RecordBatch:
    """A batch as it is sent."""
    types, wanted = share.types, schema(batch.schema, share)
    columns = [_sent(column, types.get(name)) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _sent(values: pa.Array, type_: IcebergType | None) -> pa.Array:
    if type_ is None:
        return values
    if is_json(type_):
        return pc.binary_join_element_wise(JSONB_VERSION, values.cast(pa.binary()), b"")
    return uuids.octets(values) if isinstance(type_, UUIDType) else values


def selected(share: Share) -> sql.Composed:
    """The columns of a table `t` as they are asked for: of JSON and uuids, the texts."""
    return sql.SQL(", ").join(_selected(name, type_) for name, type_ in share.types.items())


def _selected(name: str, type_: IcebergType) -> sql.Composed:
    as_text = is_json(type_) or isinstance(type_, UUIDType)
    return sql.SQL("t.{0}::text as {0}" if as_text else "t.{0}").format(sql.Identifier(name))


def received(batch: pa.RecordBatch, share: Share) -> pa.RecordBatch:
    """A batch that came, in the types in which rows travel."""
    columns = [_received(column).cast(field.type) for column, field in zip(batch.columns, share.schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=share.schema)


def _received(values: pa.Array) -> pa.Array:
    """Numerics come as an opaque type over their text."""
    return values.storage if isinstance(values, pa.ExtensionArray) else values
