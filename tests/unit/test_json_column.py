"""Nested columns as JSON texts: whole columns give what each value alone gives, whatever its type."""

import base64
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
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
from random_columns import storage, stored, types, values

from headrace import json_column, uuids
from headrace.columns import JsonText
from headrace.json_text import JSONB, decoder

SAMPLE = {
    FloatType(): [0.1, 1e20, -0.0, math.nan, -math.inf, 16777216.0],
    DoubleType(): [1e300, 5e-324, 123456789012345680.0, 0.1, -0.0, 1e16, math.inf, 100.0],
    DecimalType(20, 10): [Decimal("1E-10"), Decimal(0), Decimal("-0.5"), Decimal(100)],
    StringType(): ['"', "\\", "\\n", "\n\t\x01\x7f", "", "ü\u2028", "😀"],
    TimestamptzType(): [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)],
    TimestampType(): [datetime(1, 1, 1), datetime(2026, 1, 2, 3, 4, 5, 100_000)],  # noqa: DTZ001
    DateType(): [date(1, 1, 1), date(9999, 12, 31)],
}


def plain(value: Any, type_: IcebergType) -> Any:
    """A value as JSON has it, told one by one."""
    if value is None:
        return None
    match type_:
        case JsonText():
            return decoder()(value)
        case StructType(fields=fields):
            return {field.name: plain(value[field.name], field.field_type) for field in fields}
        case ListType():
            return [plain(each, type_.element_type) for each in value]
        case MapType():
            return {name: plain(each, type_.value_type) for name, each in dict(value).items()}
        case FloatType():
            return float(str(pa.scalar(value, pa.float32()).cast(pa.string()).as_py()))
        case BinaryType() | FixedType():
            return base64.b64encode(value).decode()
        case TimestamptzType():
            return value.isoformat().replace("+00:00", "Z")
        case DateType() | TimestampType():
            return value.isoformat()
        case UUIDType():
            return str(value)
    return value


def written(column: list[Any], type_: IcebergType, *, start: int = 0) -> list[str | None]:
    array = pa.array([stored(each, type_) for each in column], storage(type_)).slice(start)
    return list(json_column.texts(array, type_).to_pylist())


def expected(column: list[Any], type_: IcebergType) -> list[str | None]:
    return [None if each is None else JSONB.text(plain(each, type_)) for each in column]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_column_is_written_as_each_of_its_values_alone(data: st.DataObject) -> None:
    type_ = data.draw(types())
    column = data.draw(st.lists(values(type_), max_size=5))
    start = data.draw(st.integers(0, len(column)))
    assert written(column, type_, start=start) == expected(column[start:], type_)


@pytest.mark.parametrize(("type_", "column"), SAMPLE.items(), ids=str)
def test_odd_values_are_written_like_others(type_: IcebergType, column: list[Any]) -> None:
    listed = ListType(1, type_, element_required=False)
    assert written(column, type_) == expected(column, type_)
    assert written([column, [], None, [None, *column]], listed) == expected([column, [], None, [None, *column]], listed)


def test_a_member_that_a_snapshot_does_not_know_yet_is_null() -> None:
    type_ = StructType(NestedField(1, "new", LongType()), NestedField(2, "a", LongType()))
    assert json_column.texts(pa.array([{"a": 1}]), type_).to_pylist() == ['{"a": 1, "new": null}']


@given(st.lists(st.none() | st.uuids()), st.integers(0, 3))
def test_uuids_are_texts_and_bytes_in_turn(given_: list[UUID | None], start: int) -> None:
    column = pa.array([each and each.bytes for each in given_], pa.binary(16)).slice(start)
    texts = uuids.texts(column)
    assert texts.to_pylist() == [each and str(each) for each in given_[start:]]
    assert uuids.octets(texts).to_pylist() == column.to_pylist()
