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
        yield from _numbered(value, type_, place)
        return
    usual = value.eqNullSafe(F.lit(plan.defaults[place.name]).try_cast(plan.columns[place.name]))
    yield from (F.when(~usual, part) for part in _numbered(value, type_, place))
    yield F.when(value.isNull(), F.lit(-place.number))


def _numbered(value: Column, type_: IcebergType, place: Place) -> Iterator[Column]:
    yield F.when(value.isNotNull(), F.lit(place.number))
    yield from _parts(value, type_, place)


def _parts(value: Column, type_: IcebergType, place: Place) -> Iterator[Column]:
    """What a value is made of, all of it null where the value is. The width of a number says nothing, nor does the
    order of a map's entries or of a struct's members.

    They are not nested as the value is: Spark Connect takes no plan that is too deep.
    """
    match type_:
        case IntegerType():
            yield value.cast("bigint")
        case FloatType():
            yield value.cast("double")
        case DecimalType():
            yield value.cast("string")
        case MapType():
            entries = F.map_entries(value)
            yield F.array_size(entries)
            yield F.array_sort(F.transform(entries, lambda each: _entry(each, type_.value_type, place)))
        case ListType():
            inside = place.inside("element")
            yield F.array_size(value)
            yield F.transform(value, lambda each: F.struct(*_maybe(each, type_.element_type, inside)))
        case StructType(fields=fields):
            members = ((value[field.name], field.field_type, place.inside(field.name)) for field in fields)
            for member in sorted(members, key=lambda member: member[2].number):
                yield from _numbered(*member)
            yield F.when(value.isNotNull(), F.lit(END))
        case _:
            yield value


def _entry(entry: Column, type_: IcebergType, place: Place) -> Column:
    return F.struct(entry["key"], *_maybe(entry["value"], type_, place.inside("value")))


def _maybe(value: Column, type_: IcebergType, place: Place) -> Iterator[Column]:
    """One of many values, and whether it is null."""
    yield value.isNull()
    yield from _parts(value, type_, place)
