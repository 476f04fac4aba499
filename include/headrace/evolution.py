"""Evolution: what a table's columns need to become those of a feed's new version, with nothing rewritten."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.table import Transaction
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from headrace.columns.avro_past import Past, Path

NOTHING = Past()


@dataclass(frozen=True)
class Rename:
    """A column that stays what it is and gets another name."""

    path: Path
    """By the names that it and what it is in have now."""
    name: str


@dataclass(frozen=True)
class Added:
    """A column that the table lacks, and what it holds in rows that were made without it."""

    path: Path
    """By the names after all renaming."""
    field: NestedField
    default: Any = None


def evolve(transaction: Transaction, wanted: Schema, past: Mapping[Path, Past]) -> bool:
    """Rename, add and widen columns as a new version asks; what it dropped stays. Tells whether anything changed."""
    before = transaction.table_metadata.schema()
    changes = list(changes_of(before.as_struct(), wanted.as_struct(), past=past))
    renamed = [change for change in changes if isinstance(change, Rename)]
    added = [change for change in changes if isinstance(change, Added)]
    if renamed:
        with transaction.update_schema() as update:
            for change in renamed:
                update.rename_column(change.path, change.name)
    if added:
        with transaction.update_schema() as update:
            for each in added:
                update.add_column(each.path, each.field.field_type, each.field.doc, default_value=each.default)
    with transaction.update_schema() as update:
        update.union_by_name(wanted)
    return transaction.table_metadata.schema() != before


def changes_of(
    now: StructType, wanted: StructType, *, past: Mapping[Path, Past], old: Path = (), new: Path = ()
) -> Iterator[Rename | Added]:
    """What to rename and to add; `old` and `new` are where the struct lies, by the names before and after."""
    there = {field.name: field for field in now.fields}
    free = [name for name in there if name not in {field.name for field in wanted.fields}]
    for field in wanted.fields:
        place = (*new, field.name)
        noted = past.get(place, NOTHING)
        name = field.name if field.name in there else former_name(field.name, noted.aliases, free)
        if name is None:
            yield Added(place, field, noted.default)
            continue
        if name != field.name:
            free.remove(name)
            yield Rename((*old, name), field.name)
        inner = there[name].field_type, field.field_type
        yield from _nested(*inner, past=past, old=(*old, name), new=place)


def former_name(name: str, aliases: tuple[str, ...], free: list[str]) -> str | None:
    """What a column is called that is there by an earlier name, or in other capitals, which Spark does not tell apart.

    A name that the new version still has, for whatever field, is not an earlier one.
    """
    alike = [each for each in free if each.lower() == name.lower()]
    return next((each for each in (*aliases, *alike) if each in free), None)


def _nested(
    now: IcebergType, wanted: IcebergType, *, past: Mapping[Path, Past], old: Path, new: Path
) -> Iterator[Rename | Added]:
    match now, wanted:
        case StructType(), StructType():
            yield from changes_of(now, wanted, past=past, old=old, new=new)
        case ListType(), ListType():
            inner = now.element_type, wanted.element_type
            yield from _nested(*inner, past=past, old=(*old, "element"), new=(*new, "element"))
        case MapType(), MapType():
            inner = now.value_type, wanted.value_type
            yield from _nested(*inner, past=past, old=(*old, "value"), new=(*new, "value"))
