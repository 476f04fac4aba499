"""Masks: what a warehouse gets in place of a personal value, on whole columns, before a row leaves the lake."""

import hashlib
import hmac
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from headrace.declaration import Mask

MaskKey = bytes
"""The secret under which `hash` is stable and joinable, and without which values cannot be guessed."""


def last4(values: pa.ChunkedArray, key: MaskKey) -> pa.ChunkedArray:
    """The last four characters; shorter texts would be shown whole, so they become null."""
    text = values.cast(pa.string())
    return pc.if_else(
        pc.greater(pc.utf8_length(text), 4), pc.utf8_slice_codeunits(text, -4), pa.scalar(None, pa.string())
    )


def year(values: pa.ChunkedArray, key: MaskKey) -> pa.ChunkedArray:
    return pc.year(values).cast(pa.int32())


def null(values: pa.ChunkedArray, key: MaskKey) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(len(values), values.type)])


def hash_(values: pa.ChunkedArray, key: MaskKey) -> pa.ChunkedArray:
    """HMAC-SHA256 of the text, or of the bytes, in hex; each distinct value is hashed once."""
    text = values if pa.types.is_binary(values.type) else values.cast(pa.string())
    encoded = text.combine_chunks().dictionary_encode()
    digests = [_hmac(value, key) for value in encoded.dictionary.to_pylist()]
    hashed = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(digests, pa.string()))
    return pa.chunked_array([hashed.cast(pa.string())])


def _hmac(value: str | bytes, key: MaskKey) -> str:
    content = value.encode() if isinstance(value, str) else value
    return hmac.new(key, content, hashlib.sha256).hexdigest()


MASKS: Mapping[Mask, Callable[[pa.ChunkedArray, MaskKey], pa.ChunkedArray]] = {
    "hash": hash_,
    "last4": last4,
    "year": year,
    "null": null,
}


def apply(table: pa.Table, masks: Mapping[str, Mask], *, key: MaskKey) -> pa.Table:
    """The table with the named columns masked."""
    for name, mask in masks.items():
        position = table.schema.get_field_index(name)
        table = table.set_column(position, name, MASKS[mask](table.column(name), key))
    return table
