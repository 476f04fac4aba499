"""Redshift's types: what a column becomes in a Redshift warehouse."""

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

LONGEST_TEXT = 65_535
LONGEST_BYTES = 16_777_216

TYPES: Mapping[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    StringType: f"varchar({LONGEST_TEXT})",
    UUIDType: "char(36)",  # Redshift has no uuid
    DateType: "date",
    TimeText: "time",
    TimestampType: "timestamp",
    TimestamptzType: "timestamptz",
    BinaryType: f"varbyte({LONGEST_BYTES})",
}


def column_type(type_: IcebergType) -> str:
    """The Redshift type of a column."""
    if is_json(type_):
        return "super"
    match type_:
        case DecimalType():
            return f"decimal({type_.precision}, {type_.scale})"
        case FixedType():
            return f"varbyte({len(type_)})"
    return TYPES[type(type_)]


def copied_type(type_: IcebergType) -> str:
    """The plainer type of a column that COPY fills from Parquet; the rest is done by documented casts."""
    if is_json(type_):
        return TYPES[StringType]
    match type_:
        case TimestamptzType():
            return "timestamp"
        case TimeText():
            return "varchar(15)"
        case UUIDType():
            return "varchar(36)"
    return column_type(type_)


def has_order(type_: IcebergType) -> bool:
    """Whether rows may be sorted and distributed by such a column."""
    return not column_type(type_).startswith(("super", "varbyte"))
