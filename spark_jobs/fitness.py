"""Fitness: whether a row holds a value that some store refuses; one such row would stop every load."""

from collections.abc import Iterable, Mapping

from pyiceberg.types import (
    BinaryType,
    DateType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.columns import TimeText
from spark_jobs.conditions import any_of

UUID = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
TIME = r"^([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}$"

# The years 1 to 9999: what Python, Postgres, Redshift and ISO 8601 all have.
DAYS = (-719_162, 2_932_896)
MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)

LONGEST_KEY = 2_500
"""How many bytes the texts and bytes of a key may have together: an index of Postgres takes some 2,700 in a row."""


def unfit(value: Column, type_: IcebergType) -> Column:
    """Whether a value, or one inside it, is refused somewhere."""
    match type_:
        case StructType(fields=fields):
            return any_of(unfit(value[field.name], field.field_type) for field in fields)
        case ListType():
            return _exists(value, type_.element_type)
        case MapType():
            return _exists(F.map_keys(value), type_.key_type) | _exists(F.map_values(value), type_.value_type)
        case TimeText():
            return _known(~F.rlike(value, F.lit(TIME)))
        case StringType():
            return _known(~F.is_valid_utf8(value) | F.contains(value, F.lit("\0")))
        case UUIDType():
            return _known(~F.rlike(value, F.lit(UUID)))
        case FixedType():
            return _known(F.length(value) != len(type_))
        case DateType():
            return _known(~F.unix_date(value).between(*DAYS))
        case TimestampType() | TimestamptzType():
            return _known(~F.unix_micros(value.cast("timestamp")).between(*MICROS))
    return F.lit(False)


def has_long_key(row: Column, types: Mapping[str, IcebergType], *, key: Iterable[str]) -> Column:
    """Whether a row's key is longer than a warehouse's primary key may be."""
    lengths = [
        F.octet_length(row[name]) for name in key if isinstance(types[name], StringType | BinaryType | FixedType)
    ]
    return sum((F.coalesce(each, F.lit(0)) for each in lengths), F.lit(0)) > LONGEST_KEY


def _exists(values: Column, type_: IcebergType) -> Column:
    return _known(F.exists(values, lambda each: unfit(each, type_)))


def _known(refused: Column) -> Column:
    """Null is refused nowhere."""
    return F.coalesce(refused, F.lit(False))
