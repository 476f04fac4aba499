"""Projection: rows of an older schema as rows of the feed's columns, by name; what would lose a value is told."""

from collections.abc import Mapping

from pyiceberg.types import (
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
from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.arrow import is_json
from headrace.stages.transform import spark_type
from spark_jobs.conditions import any_of

Types = Mapping[str, IcebergType]
NUMBERS = (IntegerType, LongType, FloatType, DoubleType, DecimalType)
MOMENTS = (DateType, TimestampType, TimestamptzType)
FAMILIES = (NUMBERS, MOMENTS)


def projected(old: Column, old_type: IcebergType, type_: IcebergType) -> Column:
    """A value in another type; members of structs find each other by name, and what cannot be cast is null."""
    match old_type, type_:
        case StructType(), StructType():
            before = members(old_type)
            parts = (
                projected(old[name], before[name], each) if name in before else F.lit(None).cast(spark_type(each))
                for name, each in members(type_).items()
            )
            named = (part.alias(name) for part, name in zip(parts, members(type_), strict=True))
            return F.when(old.isNotNull(), F.struct(*named))
        case ListType(), ListType():
            return F.transform(old, lambda each: projected(each, old_type.element_type, type_.element_type))
        case MapType(), MapType():
            return F.transform_values(old, lambda _, each: projected(each, old_type.value_type, type_.value_type))
    if not castable(old_type, type_):
        return F.lit(None).cast(spark_type(type_))
    cast = old.try_cast(spark_type(type_))
    return F.lower(cast) if isinstance(type_, UUIDType) else cast


def lost(old: Column, old_type: IcebergType, type_: IcebergType) -> Column:
    """Whether the projection of a value is less than the value."""
    match old_type, type_:
        case StructType(), StructType():
            before, after = members(old_type), members(type_)
            return any_of(lost(old[name], before[name], after[name]) for name in before if name in after)
        case ListType(), ListType():
            return _exists(old, old_type.element_type, type_.element_type)
        case MapType(), MapType():
            return _exists(F.map_values(old), old_type.value_type, type_.value_type)
    if old_type == type_:
        return F.lit(False)
    new = projected(old, old_type, type_)
    if isinstance(old_type, StringType) or not castable(old_type, type_):
        return old.isNotNull() & new.isNull()
    return ~new.try_cast(spark_type(old_type)).eqNullSafe(old)


def castable(old_type: IcebergType, type_: IcebergType) -> bool:
    """Whether a value of one type means the same in the other: any text may be anything plain, numbers are numbers."""
    if old_type == type_:
        return True
    if is_json(old_type) or is_json(type_) or isinstance(type_, FixedType):
        return False
    pair = (old_type, type_)
    return any(isinstance(each, StringType) for each in pair) or any(
        all(isinstance(each, family) for each in pair) for family in FAMILIES
    )


def members(type_: StructType) -> Types:
    return {field.name: field.field_type for field in type_.fields}


def _exists(values: Column, old_type: IcebergType, type_: IcebergType) -> Column:
    return F.coalesce(F.exists(values, lambda each: lost(each, old_type, type_)), F.lit(False))
