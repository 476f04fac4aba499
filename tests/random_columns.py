"""Random columns: types of every shape that a clean table may have, and values of them, for tests that try many."""

from datetime import UTC
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace.arrow import arrow_type
from headrace.columns import JsonText, TimeText
from headrace.json_text import canonical

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)

SCALARS: dict[IcebergType, SearchStrategy[Any]] = {
    BooleanType(): st.booleans(),
    IntegerType(): st.integers(-(2**31), 2**31 - 1),
    LongType(): st.integers(-(2**63), 2**63 - 1),
    FloatType(): st.floats(width=32),
    DoubleType(): st.floats(),
    DecimalType(12, 2): st.decimals(places=2, min_value=-(10**9), max_value=10**9),
    DecimalType(30, 12): st.decimals(places=12, min_value=-(10**9), max_value=10**9),
    StringType(): TEXT,
    JsonText(): JSON.map(canonical),
    TimeText(): st.times().map(lambda time: time.isoformat("microseconds")),
    DateType(): st.dates(),
    TimestampType(): st.datetimes(),
    TimestamptzType(): st.datetimes(timezones=st.just(UTC)),
    BinaryType(): st.binary(max_size=9),
    FixedType(3): st.binary(min_size=3, max_size=3),
    UUIDType(): st.uuids(),
}


def types() -> SearchStrategy[IcebergType]:
    """A type of any shape."""

    def nested(inner: SearchStrategy[IcebergType]) -> SearchStrategy[IcebergType]:
        names = st.lists(st.text("abcXY_ü\"'", min_size=1, max_size=3), unique=True, min_size=1, max_size=3)
        return st.one_of(
            inner.map(lambda type_: ListType(1, type_, element_required=False)),
            inner.map(lambda type_: MapType(1, StringType(), 2, type_, value_required=False)),
            names.flatmap(lambda chosen: st.tuples(*(st.tuples(st.just(name), inner) for name in chosen))).map(
                lambda members: StructType(
                    *(NestedField(number, name, type_) for number, (name, type_) in enumerate(members, 1))
                )
            ),
        )

    return st.recursive(st.sampled_from(list(SCALARS)), nested, max_leaves=6)


def values(type_: IcebergType) -> SearchStrategy[Any]:
    match type_:
        case StructType(fields=fields):
            held: SearchStrategy[Any] = st.fixed_dictionaries(
                {field.name: values(field.field_type) for field in fields}
            )
        case ListType():
            held = st.lists(values(type_.element_type), max_size=3)
        case MapType():
            held = st.dictionaries(TEXT, values(type_.value_type), max_size=3)
        case _:
            held = SCALARS[type_]
    return st.none() | held


def stored(value: Any, type_: IcebergType) -> Any:
    """A value as Arrow takes it."""
    if value is None:
        return None
    match type_:
        case StructType(fields=fields):
            return {field.name: stored(value[field.name], field.field_type) for field in fields}
        case ListType():
            return [stored(each, type_.element_type) for each in value]
        case MapType():
            return [(name, stored(each, type_.value_type)) for name, each in value.items()]
        case UUIDType():
            return value.bytes
    return value


def storage(type_: IcebergType) -> pa.DataType:
    """The type in Arrow; it cannot build uuids inside others, so these are bytes."""
    match type_:
        case StructType(fields=fields):
            return pa.struct([pa.field(field.name, storage(field.field_type)) for field in fields])
        case ListType():
            return pa.list_(storage(type_.element_type))
        case MapType():
            return pa.map_(pa.string(), storage(type_.value_type))
        case UUIDType():
            return pa.binary(16)
    return arrow_type(type_)
