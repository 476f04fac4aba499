"""The type of one field, and what makes nested types of several."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StringType, StructType


class Whole(StructType):
    """A struct that is one value, such as the chosen member of a union: its members say nothing apart."""


@dataclass(frozen=True)
class FieldType:
    """A field's Iceberg type, and whether it refuses null."""

    name: str
    type: IcebergType
    required: bool
    doc: str | None = None
    cut: bool = False
    """Whether the type is coarser than what a record may hold."""


# Field ids are given by the catalog when the table is made; the zeros here only fill the constructor. All that is
# nested may be null: a reader's new field is absent in older records, and Spark promises nothing about elements.
def struct(fields: Iterable[FieldType]) -> StructType:
    return StructType(*(NestedField(0, field.name, field.type, required=False, doc=field.doc) for field in fields))


def whole(fields: Iterable[FieldType]) -> Whole:
    return Whole(*struct(fields).fields)


def list_of(element: IcebergType) -> ListType:
    return ListType(element_id=0, element_type=element, element_required=False)


def map_of(value: IcebergType) -> MapType:
    return MapType(key_id=0, key_type=StringType(), value_id=0, value_type=value, value_required=False)


def alike(names: Iterable[str]) -> list[str]:
    """The names that are one name to Spark, which does not tell capitals from small letters."""
    seen: dict[str, str] = {}
    return [name for name in names if seen.setdefault(name.lower(), name) != name]
