"""Content: a hash of what a row shows, by which two versions are told apart and copies are known.

Spark hashes a nested value as if its parts were arguments, and passes nulls over. So what is hashed says where each of
them stands, and no two rows are made of the same parts in the same order.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pyiceberg.types import DecimalType, FloatType, IcebergType, IntegerType, ListType, MapType, StructType
from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.columns import field_types
from headrace.stages.transform import TransformPlan

END = 0
"""What follows the members of a struct: the number of no column."""


@dataclass(frozen=True)
class Place:
    """Where a value lies in the clean table, whose column numbers outlive a renaming."""

    name: str
    numbers: Mapping[str, int]

    def inside(self, name: str) -> "Place":
        return replace(self, name=f"{self.name}.{name}")

    @property
    def number(self) -> int:
        return self.numbers[self.name]


def content(value: Mapping[str, Column], plan: TransformPlan) -> Column:
    """The hash outlives a new version of the schema: a column that was added since leaves it as it was, for it skips
    nulls, and so does the default that older rows have there."""
    types = field_types(plan.schema_type, json.loads(plan.reader))
    places = sorted((Place(name, plan.numbers) for name in plan.columns), key=lambda place: place.number)
    return F.xxhash64(*(part for place in places for part in _told(value[place.name], types[place.name], place, plan)))


def _told(value: Column, type_: IcebergType, place: Place, plan: TransformPlan) -> Iterator[Column]:
    if place.name not in plan.defaults:
        yield _numbered(value, type_, place)
        return
    usual = value.eqNullSafe(F.lit(plan.defaults[place.name]).try_cast(plan.columns[place.name]))
    yield F.when(~usual, _numbered(value, type_, place))
    yield F.when(value.isNull(), F.lit(-place.number))


def _numbered(value: Column, type_: IcebergType, place: Place) -> Column:
    return F.when(value.isNotNull(), F.struct(F.lit(place.number), _parts(value, type_, place)))


def _parts(value: Column, type_: IcebergType, place: Place) -> Column:
    """A value that is not null as what it is made of; the width of a number says nothing, nor does the order of a map's
    entries or of a struct's members."""
    match type_:
        case IntegerType():
            return value.cast("bigint")
        case FloatType():
            return value.cast("double")
        case DecimalType():
            return value.cast("string")
        case MapType():
            entries = F.transform(F.map_entries(value), lambda each: _entry(each, type_.value_type, place))
            return F.struct(F.size(value), F.array_sort(entries))
        case ListType():
            return F.struct(
                F.size(value),
                F.transform(value, lambda each: _maybe(each, type_.element_type, place.inside("element"))),
            )
        case StructType(fields=fields):
            members = ((value[field.name], field.field_type, place.inside(field.name)) for field in fields)
            told = (_numbered(*member) for member in sorted(members, key=lambda member: member[2].number))
            return F.struct(*told, F.lit(END))
    return value


def _entry(entry: Column, type_: IcebergType, place: Place) -> Column:
    return F.struct(entry["key"], _maybe(entry["value"], type_, place.inside("value")))


def _maybe(value: Column, type_: IcebergType, place: Place) -> Column:
    """One of many values, and whether it is null."""
    return F.struct(value.isNull(), F.when(value.isNotNull(), _parts(value, type_, place)))
