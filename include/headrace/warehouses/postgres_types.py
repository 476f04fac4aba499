"""Postgres' types: what a column becomes in a Postgres warehouse."""

from collections.abc import Mapping

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
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace.arrow import is_json
from headrace.columns import TimeText

TYPES: Mapping[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    StringType: "text",
    UUIDType: "uuid",
    DateType: "date",
    TimeText: "time",
    TimestampType: "timestamp",
    TimestamptzType: "timestamptz",
    BinaryType: "bytea",
    FixedType: "bytea",
}


def column_type(type_: IcebergType) -> str:
    """The Postgres type of a column."""
    if is_json(type_):
        return "jsonb"
    if isinstance(type_, DecimalType):
        return f"numeric({type_.precision}, {type_.scale})"
    return TYPES[type(type_)]
