"""JSON columns: nested Arrow columns as JSON texts, column by column; only odd values are looked at singly.

The same texts as `json_text.JSONB` gives for each value alone.
"""

import base64
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace import uuids
from headrace.columns import JsonText
from headrace.json_text import JSONB, decoder, number

ESCAPED = r'["\\\x00-\x1f]'
"""What does not stand for itself in a JSON text."""
ODD_NUMBER = r"[eEni]|\.\d*0$|^-0$"
"""A number as Arrow writes it that has an exponent, trailing zeros or a sign without a value, or is none."""
NULL = "null"


def texts(values: pa.Array, type_: IcebergType) -> pa.Array:
    """A column's values as JSON texts; null where there is no value."""
    match type_:
        case StructType(fields=fields):
            # A snapshot from before a member was added does not know it.
            known = {member.name for member in values.type}
            members = {
                field.name: texts(pc.struct_field(values, field.name), field.field_type)
                if field.name in known
                else pa.nulls(len(values), pa.string())
                for field in fields
            }
            return _where(values, _object(members, length=len(values)))
        case ListType():
            elements = texts(values.flatten(), type_.element_type)
            return _where(values, _joined(values, elements, opening="[", closing="]"))
        case MapType():
            return _where(values, _map(values, type_))
    return _scalars(values, type_)


def _scalars(values: pa.Array, type_: IcebergType) -> pa.Array:
    match type_:
        case JsonText():
            parsed = decoder()
            return _singly(values.cast(pa.string()), "", lambda text: JSONB.text(parsed(text)))
        case BooleanType():
            return pc.if_else(values, "true", "false")
        case FloatType() | DoubleType() | DecimalType():
            return _singly(values.cast(pa.string()), ODD_NUMBER, number)
        case StringType():
            return _quoted(_singly(values.cast(pa.string()), ESCAPED, lambda text: JSONB.text(text)[1:-1]))
        case UUIDType():
            return _quoted(uuids.texts(values))
        case DateType():
            return _quoted(values.cast(pa.string()))
        case TimestampType():
            return _quoted(_moments(values))
        case TimestamptzType():
            return _quoted(_moments(values), '"', 'Z"')
        case BinaryType() | FixedType():
            encoded = [None if each is None else base64.b64encode(each).decode("ascii") for each in values.to_pylist()]
            return _quoted(pa.array(encoded, pa.string()))
    return values.cast(pa.string())


def _singly(written: pa.Array, odd: str, change: Callable[[str], str]) -> pa.Array:
    """The texts, of which those that match a pattern are changed, one by one: mostly there are none."""
    found = pc.match_substring_regex(written, odd)
    if not pc.any(found).as_py():
        return written
    changed = [change(text) for text in written.filter(found).to_pylist()]
    return pc.replace_with_mask(written, pc.fill_null(found, False), pa.array(changed, pa.string()))


def _quoted(written: pa.Array, opening: str = '"', closing: str = '"') -> pa.Array:
    return pc.binary_join_element_wise(opening, written, closing, "")


def _moments(values: pa.Array) -> pa.Array:
    """As Python writes them: without a fraction where it is nought."""
    written = pc.strftime(values, "%Y-%m-%dT%H:%M:%S")
    return pc.replace_substring_regex(written, r"\.0+$", "")


def _object(members: dict[str, pa.Array], *, length: int) -> pa.Array:
    parts: list[pa.Array | str] = []
    for place, name in enumerate(JSONB.sorted(members)):
        before = JSONB.comma if place else "{"
        parts += [f"{before}{JSONB.text(name)}{JSONB.colon}", pc.fill_null(members[name], NULL)]
    if not parts:
        return pa.array(["{}"] * length, pa.string())
    return pc.binary_join_element_wise(*parts, "}", "")


def _map(values: pa.Array, type_: MapType) -> pa.Array:
    """An object for each map, its members by name."""
    entries = pc.list_flatten(_as_list(values))
    keys, held = entries.field(0), texts(entries.field(1), type_.value_type)
    rows = pc.list_parent_indices(_as_list(values))
    # By length, then by bytes, as jsonb has it.
    places = pa.table({"row": rows, "length": pc.binary_length(keys), "key": keys.cast(pa.binary())})
    order = pc.sort_indices(places, [(name, "ascending") for name in places.column_names])
    named = _quoted(_singly(keys.cast(pa.string()), ESCAPED, lambda text: JSONB.text(text)[1:-1]))
    members = pc.binary_join_element_wise(named, pc.fill_null(held, NULL), JSONB.colon)
    return _joined(values, members.take(order), opening="{", closing="}")


def _as_list(values: pa.Array) -> pa.Array:
    entry = pa.struct([values.type.key_field, values.type.item_field])
    return values.cast(pa.list_(pa.field("entries", entry, nullable=False)))


def _joined(values: pa.Array, members: pa.Array, *, opening: str, closing: str) -> pa.Array:
    """Members put together again in the lists that they were flattened from."""
    lengths = pc.fill_null(pc.list_value_length(_as_list(values) if pa.types.is_map(values.type) else values), 0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pc.fill_null(members, NULL))
    return _quoted(pc.binary_join(lists, JSONB.comma), opening, closing)


def _where(values: pa.Array, written: pa.Array) -> pa.Array:
    """The texts where there is a value."""
    return pc.if_else(values.is_valid(), written, pa.scalar(None, pa.string()))
