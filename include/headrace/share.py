"""A share: what one warehouse gets of a feed, with personal columns left out or masked before a row leaves the lake."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import DataScan, Table
from pyiceberg.types import IcebergType, IntegerType, StringType, StructType

from headrace import masks, personal, scanning, withheld
from headrace.arrow import travel_type, travelling
from headrace.clean import HIDDEN_ROW, TEXTS, shown
from headrace.columns import Column, JsonText, TimeText, Whole, columns
from headrace.declaration import Mask, Sharing
from headrace.fault import Fault
from headrace.feed import Feed
from headrace.masks import MaskKey
from headrace.shown import OCTETS

LONGEST_NAME = 63
"""How many bytes of a column's name Postgres keeps; it cuts off the rest without a word."""
EVERY_ROW = "true"
VISIBLE = f"{HIDDEN_ROW} = false"
TEXT_TYPES: Mapping[str, IcebergType] = {"json": JsonText(), "time": TimeText()}
"""Texts with a meaning, as the clean table's note calls them."""
MASKED_TYPES: dict[Mask, IcebergType] = {"hash": StringType(), "last4": StringType(), "year": IntegerType()}


@dataclass(frozen=True)
class SharedColumn(Column):
    """A column as a warehouse has it; that of a flattened record lies inside another of the clean table."""

    path: tuple[str, ...] = ()
    """Where its values lie: the clean table's column, and the members inside it; empty where it is not there yet."""
    former: tuple[str, ...] = ()
    """The names that the clean table's column had in earlier versions."""


@dataclass(frozen=True)
class Share:
    """The columns that one warehouse sees, and the masks on them."""

    feed: str
    warehouse: str
    doc: str
    key: tuple[str, ...]
    columns: tuple[SharedColumn, ...]
    masks: dict[str, Mask]
    indexes: tuple[tuple[str, ...], ...] = ()
    distribution: str | None = None
    """The column by whose values a warehouse of several machines gives each of them its rows; None for the key."""
    sort: tuple[str, ...] = ()
    """The columns by which it keeps rows sorted."""

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def has_personal_key(self) -> bool:
        """Whether keys may be told to nobody; a hashed one is told as little."""
        return any(column.pii for column in self.columns if column.name in self.key)

    @cached_property
    def types(self) -> dict[str, IcebergType]:
        """The columns' types after masking, from which each warehouse tells its own."""
        return {column.name: self._masked(column) for column in self.columns}

    @cached_property
    def schema(self) -> pa.Schema:
        """The rows as Arrow, as they travel."""
        return pa.schema([pa.field(name, travel_type(type_)) for name, type_ in self.types.items()])

    def _masked(self, column: Column) -> IcebergType:
        masked = MASKED_TYPES.get(self.masks[column.name]) if column.name in self.masks else None
        return masked or column.type


def share(feed: Feed, warehouse: str, *, retired: Sequence[Column] = ()) -> Share:
    """The warehouse's columns: a personal field must be kept or masked by name, any other may be dropped by name.

    `retired` are columns of the clean table that the feed has no more; their old values are still in it.
    """
    declared = feed.declaration.warehouses[warehouse]
    allowed = [
        column
        for column in columns(feed)
        if column.name not in declared.drop
        and (not column.pii or column.name in declared.keep or column.name in declared.mask)
    ]
    flat = [each for column in allowed for each in _flattened(column, into=column.name in declared.flatten)]
    taken = {column.name.lower() for column in flat}
    kept = [SharedColumn(**vars(each), path=(each.name,)) for each in retired if each.name.lower() not in taken]
    masks_ = dict(declared.mask)
    names = {column.name for column in flat}
    return Share(
        feed.name,
        warehouse,
        feed.doc,
        tuple(feed.declaration.key),
        (*flat, *kept),
        masks_,
        tuple(index for index in _indexes(feed, declared) if names.issuperset(index)),
        declared.distribute,
        tuple(name for name in _sorted(feed, declared) if name in names),
    )


def _flattened(column: Column, *, into: bool) -> Iterator[SharedColumn]:
    """A column, or one for each member of it, however deep it lies; lists and maps stay whole."""
    whole = SharedColumn(**vars(column), path=(column.name,), former=column.aliases)
    yield from _members(whole) if into else [whole]


def _members(column: SharedColumn) -> Iterator[SharedColumn]:
    if not isinstance(column.type, StructType) or isinstance(column.type, Whole):
        yield column
        return
    for member in column.type.fields:
        names = [f"{each}_{member.name}" for each in (column.name, *column.aliases)]
        yield from _members(
            replace(
                column,
                name=names[0],
                type=member.field_type,
                required=False,
                doc=member.doc,
                aliases=tuple(names[1:]),
                path=(*column.path, member.name),
            )
        )


def name_faults(feed: Feed, share: Share) -> Iterator[Fault]:
    """Why the names that flattening makes are none that a table can have."""
    path, seen = f"{feed.attribute}.warehouses.{share.warehouse}.flatten", set[str]()
    for name in share.names:
        if name.lower() in seen:
            message = f'makes the column "{name}", which is there already.'
            yield Fault(feed.file, path, message, "Rename the one or the other, or do not flatten the record.", name)
        if (length := len(name.encode())) > LONGEST_NAME:
            message = f'makes the column "{name}" of {length} bytes, and Postgres takes names of {LONGEST_NAME}.'
            yield Fault(feed.file, path, message, "Do not flatten the record.", name)
        seen.add(name.lower())


def _indexes(feed: Feed, declared: Sharing) -> Iterator[tuple[str, ...]]:
    """Those that the feed asks for, and one over the partition's field, by which analysts ask most."""
    partition = feed.declaration.partition
    asked = [tuple(names) for names in declared.index]
    if partition and feed.declaration.key[0] != partition.field and partition.field not in declared.mask:
        asked.append((partition.field,))
    yield from dict.fromkeys(asked)


def _sorted(feed: Feed, declared: Sharing) -> Iterator[str]:
    """First the partition's field, by which analysts ask most, then as clean is; a masked value has no order."""
    partition = feed.declaration.partition
    asked = [*([partition.field] if partition else []), *(feed.declaration.sort or feed.declaration.key)]
    yield from (name for name in dict.fromkeys(asked) if name in feed.declaration.key or name not in declared.mask)


def retired(feed: Feed, warehouse: str, table: Table) -> list[Column]:
    """The columns that only older versions of the feed had and that a warehouse may still see: nothing personal."""
    now = {name for column in columns(feed) for name in (column.name, *column.aliases)}
    kinds = personal.kinds(table.schema().column_names, feed=None, noted=table.properties.get(personal.PROPERTY))
    texts: dict[str, str] = json.loads(table.properties.get(TEXTS, "{}"))
    return [
        Column(field.name, TEXT_TYPES.get(texts.get(field.name, ""), field.field_type), required=False, doc=field.doc)
        for field in shown(feed, table.schema()).fields
        if field.name not in now
        and kinds[field.name] is None
        and withheld.reaches(field.name, warehouse, noted=table.properties.get(withheld.PROPERTY))
    ]


def share_of(feed: Feed, warehouse: str, table: Table) -> Share:
    """What a warehouse gets of a clean table as it is."""
    return share(feed, warehouse, retired=retired(feed, warehouse, table))


def rows(
    table: Table, share: Share, *, snapshot: int, where: str | BooleanExpression, mask_key: MaskKey
) -> Iterator[pa.RecordBatch]:
    """The clean table's rows at a snapshot as the warehouse may see them, hidden rows marked, in batches."""
    schema = share.schema.append(pa.field(HIDDEN_ROW, pa.bool_()))
    share = _as_known(share, {field.name for field in table.schema().fields})
    known = dict.fromkeys([*(column.path[0] for column in share.columns if column.path), HIDDEN_ROW])
    scan = by_current_names(table, snapshot=snapshot, where=where, fields=tuple(known))
    for batch in scanning.ahead(lambda: scanning.stream(scan), size=lambda batch: batch.nbytes):
        masked = masks.apply(_travelling(pa.Table.from_batches([batch]), share), share.masks, key=mask_key)
        yield from masked.cast(schema).to_batches()


def keys(share: Share, shown: Sequence[Sequence[str]], *, mask_key: MaskKey) -> pa.RecordBatch:
    """Keys, of which each field is told by a text, as the warehouse has them."""
    types = {column.name: column.type for column in share.columns}
    texts = {name: [each[place] for each in shown] for place, name in enumerate(share.key)}
    read = pa.table({name: pa.chunked_array([_parsed(texts[name], types[name])]) for name in share.key})
    masked = masks.apply(read, {name: mask for name, mask in share.masks.items() if name in share.key}, key=mask_key)
    schema = pa.schema([share.schema.field(name) for name in share.key])
    return masked.cast(schema).combine_chunks().to_batches()[0]


def _parsed(texts: Sequence[str], kind: IcebergType) -> pa.Array:
    type_ = travel_type(kind)
    if pa.types.is_binary(type_):
        return pa.array([bytes.fromhex(text.removeprefix(OCTETS)) for text in texts], type_)
    read = pa.array(texts, pa.string())
    if isinstance(kind, TimeText):
        return travelling(pa.chunked_array([read]), kind).combine_chunks()
    if pa.types.is_timestamp(type_) and type_.tz:
        # Arrow wants a zone in such texts, which Spark leaves out: it tells them in UTC.
        return pc.assume_timezone(read.cast(pa.timestamp(type_.unit)), "UTC").cast(type_)
    return read.cast(type_)


def _as_known(share: Share, there: Collection[str]) -> Share:
    """The share, its columns where a table has them that may not have met the feed's newest version.

    There a renamed column still has its former name, and a new one is not there.
    """

    def known(column: SharedColumn) -> SharedColumn:
        name = next((name for name in (column.path[0], *column.former) if name in there), None)
        return replace(column, path=(name, *column.path[1:]) if name else ())

    return replace(share, columns=tuple(map(known, share.columns)))


def by_current_names(
    table: Table, *, snapshot: int, where: str | BooleanExpression, fields: tuple[str, ...]
) -> DataScan:
    """A scan of a snapshot with the columns as the table has them now: renamed, widened, with defaults since then.

    PyIceberg would take those of the snapshot, whose names a feed's newest version may no longer have.
    """
    found = table.snapshot_by_id(snapshot)
    assert found is not None, f"{'.'.join(table.name())} has no snapshot {snapshot}"
    current = found.model_copy(update={"schema_id": table.metadata.current_schema_id})
    metadata = table.metadata.model_copy(update={"snapshots": [current]})
    return DataScan(metadata, table.io, row_filter=where, selected_fields=fields, snapshot_id=snapshot)


def _travelling(batch: pa.Table, share: Share) -> pa.Table:
    """The share's columns as they travel, not yet masked."""
    changed = {column.name: _travelling_column(batch, column) for column in share.columns}
    return pa.table({**changed, HIDDEN_ROW: batch.column(HIDDEN_ROW)})


def _travelling_column(batch: pa.Table, column: SharedColumn) -> pa.ChunkedArray:
    values = batch.column(column.path[0]) if column.path else None
    for member in column.path[1:]:
        # A snapshot from before a member was added does not know it.
        known = values is not None and values.type.get_field_index(member) >= 0
        values = pc.struct_field(values, member) if known else None
    if values is None:
        return pa.chunked_array([pa.nulls(batch.num_rows, travel_type(column.type))])
    return travelling(values, column.type)
