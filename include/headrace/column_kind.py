"""The kind of a column, told from its type: what a declaration may rely on once the types are known."""

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
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace.columns import JsonText, TimeText, Whole
from headrace.field import Kind

KINDS: Mapping[type[IcebergType], Kind] = {
    BooleanType: "boolean",
    IntegerType: "integer",
    LongType: "integer",
    FloatType: "float",
    DoubleType: "float",
    DecimalType: "decimal",
    StringType: "string",
    JsonText: "json",
    TimeText: "time",
    UUIDType: "uuid",
    BinaryType: "bytes",
    FixedType: "bytes",
    DateType: "date",
    TimestampType: "timestamp",
    TimestamptzType: "timestamp",
    ListType: "array",
    MapType: "map",
    StructType: "struct",
    Whole: "struct",
}


def column_kind(type_: IcebergType) -> Kind:
    return KINDS[type(type_)]
