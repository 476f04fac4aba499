"""JSON Schema from types: the plainest schema whose columns are these."""

from collections.abc import Mapping
from typing import Any

from pyiceberg.types import (
    BooleanType,
    DateType,
    DoubleType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    StructType,
    TimestamptzType,
    UUIDType,
)

from headrace.columns.texts import JsonText

PLAIN: Mapping[type[IcebergType], Mapping[str, Any]] = {
    BooleanType: {"type": "boolean"},
    LongType: {"type": "integer"},
    DoubleType: {"type": "number"},
    DateType: {"type": "string", "format": "date"},
    TimestamptzType: {"type": "string", "format": "date-time"},
    UUIDType: {"type": "string", "format": "uuid"},
    JsonText: {},
}


def schema_of(type_: IcebergType) -> Mapping[str, Any]:
    """A schema that gives this type again."""
    match type_:
        case StructType(fields=fields):
            return {"type": "object", "properties": {field.name: schema_of(field.field_type) for field in fields}}
        case ListType():
            return {"type": "array", "items": schema_of(type_.element_type)}
        case MapType():
            return {"type": "object", "additionalProperties": schema_of(type_.value_type)}
    return PLAIN.get(type(type_), {"type": "string"})
