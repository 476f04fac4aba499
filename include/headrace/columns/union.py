"""The union of a feed's versions: the schema that records are read into, so that what was dropped is not lost again.

A version that drops a field leaves the column where it is. Its own records have null there; those of older versions,
which may come late or be read once more, have what they say.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.types import IcebergType, ListType, MapType, StructType

from headrace.columns import avro_past, field_types
from headrace.columns.avro_union import united
from headrace.columns.field_type import FieldType, list_of, map_of, struct
from headrace.columns.json_types import schema_of
from headrace.errors import FeedError
from headrace.feed import Feed


def reader(feed: Feed, older: Sequence[str], *, there: StructType) -> Mapping[str, Any]:
    """The schema to read by: the feed's own, with what the table's columns `there` have besides.

    `older` are the texts of the versions of its subject, the newest first.
    """
    types = field_types(feed.schema_type, feed.schema)
    complete = struct(FieldType(name, type_, required=False) for name, type_ in types.items())
    if feed.schema_type == "AVRO":
        whole = feed.schema if _covers(complete, there) else united(feed.schema, list(map(json.loads, older)), there)
        held: Mapping[str, Any] = avro_past.held(whole)
        return held
    if _covers(complete, there):
        return feed.schema
    for version in map(version_types, older):
        complete = _joined(complete, struct(FieldType(*each, required=False) for each in version.items()), there)
    return schema_of(complete)


def version_types(text: str) -> Mapping[str, IcebergType]:
    """The types of a version in JSON; none of one that could never be a feed, which only records were written with."""
    try:
        return field_types("JSON", json.loads(text))
    except FeedError:
        return {}


def _covers(type_: IcebergType, there: IcebergType) -> bool:
    """Whether a type has everything that a table's column has."""
    match type_, there:
        case StructType(), StructType():
            known = {field.name: field.field_type for field in type_.fields}
            return all(each.name in known and _covers(known[each.name], each.field_type) for each in there.fields)
        case ListType(), ListType():
            return _covers(type_.element_type, there.element_type)
        case MapType(), MapType():
            return _covers(type_.value_type, there.value_type)
    return True


def _joined(new: Any, old: Any, there: Any) -> Any:
    match new, old, there:
        case StructType(), StructType(), StructType():
            return _joined_struct(new, old, there)
        case ListType(), ListType(), ListType():
            return list_of(_joined(new.element_type, old.element_type, there.element_type))
        case MapType(), MapType(), MapType():
            return map_of(_joined(new.value_type, old.value_type, there.value_type))
    return new


def _joined_struct(new: StructType, old: StructType, there: StructType) -> StructType:
    ours, theirs, columns = ({each.name: each.field_type for each in part.fields} for part in (new, old, there))
    both = {
        name: _joined(type_, theirs[name], columns[name]) if name in theirs and name in columns else type_
        for name, type_ in ours.items()
    }
    dropped = {name: type_ for name, type_ in theirs.items() if name in columns and name not in ours}
    return struct(FieldType(name, type_, required=False) for name, type_ in {**both, **dropped}.items())
