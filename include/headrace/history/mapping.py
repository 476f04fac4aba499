"""The mapping: which column of a source fills which field of a feed, and how its values are read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headrace.errors import HistoryError
from headrace.fault import nearest
from headrace.feed import Feed
from headrace.history import avro_target, json_target
from headrace.history.shortcut import is_text
from headrace.history.source import SourceColumn
from headrace.history.target import Target


@dataclass(frozen=True)
class Filled:
    """A field and the column that fills it."""

    target: Target
    column: SourceColumn


@dataclass(frozen=True)
class ColumnMap:
    """Every field that a source fills; the others are null, or what the schema has for records without them."""

    filled: Sequence[Filled]
    unfilled: Sequence[Target]
    left_out: Sequence[str]
    """Columns that fill nothing."""
    timestamp: SourceColumn | None = None
    """The column that gives records their Kafka timestamp."""

    @property
    def columns(self) -> list[str]:
        """The columns to read, each once."""
        names = [each.column.name for each in self.filled] + ([self.timestamp.name] if self.timestamp else [])
        return list(dict.fromkeys(names))


def targets(feed: Feed) -> list[Target]:
    return avro_target.targets(feed) if feed.schema_type == "AVRO" else json_target.targets(feed)


def map_columns(
    feed: Feed,
    columns: Sequence[SourceColumn],
    *,
    renames: Mapping[str, str],
    timestamp: str | None = None,
    is_open: bool = False,
) -> ColumnMap:
    """Fields by the columns of their names, or of the names that they are given; every fault is told at once."""
    by_name = {column.name: column for column in columns}
    fields = targets(feed)
    faults = [*_wrong_renames(fields, by_name, renames)]
    filled, unfilled = [], []
    for target in fields:
        name = renames.get(target.name, target.name)
        column = by_name.get(name) or (SourceColumn(name) if is_open and target.is_optional else None)
        if column is None:
            unfilled.append(target)
            faults += _unfillable(target, feed, by_name) if target.name not in renames else []
        else:
            filled.append(Filled(target, column))
            faults += _unreadable(target, column)
    if timestamp is not None and timestamp not in by_name:
        faults.append(f'the source has no column "{timestamp}" for the timestamp. {nearest(timestamp, list(by_name))}')
    if faults:
        raise HistoryError("\n".join(f"{feed.name}: {fault}" for fault in faults))
    used = {each.column.name for each in filled} | ({timestamp} if timestamp else set())
    left_out = [name for name in by_name if name not in used]
    return ColumnMap(filled, unfilled, left_out, by_name[timestamp] if timestamp else None)


def _wrong_renames(
    fields: Sequence[Target], columns: Mapping[str, SourceColumn], renames: Mapping[str, str]
) -> Iterator[str]:
    names = [field.name for field in fields]
    for field, column in renames.items():
        if field not in names:
            yield f'--map {field}={column}: the feed has no field "{field}". {nearest(field, names)}'
        if column not in columns:
            yield f'--map {field}={column}: the source has no column "{column}". {nearest(column, list(columns))}'


def _unfillable(target: Target, feed: Feed, columns: Mapping[str, SourceColumn]) -> Iterator[str]:
    must = "is part of the key" if target.name in feed.declaration.key else "may not be missing"
    if not target.is_optional or target.name in feed.declaration.key:
        fix = f"Name the column that fills it: --map {target.name}=COLUMN. {nearest(target.name, list(columns))}"
        yield f'the source has no column "{target.name}", which {must}. {fix}'


def _unreadable(target: Target, column: SourceColumn) -> Iterator[str]:
    """What no value of a column's type could ever fill; single values are judged when they are read."""
    if column.type is None or is_text(column.type) or pa.types.is_null(column.type):
        return
    if target.told.startswith("timestamp") and pa.types.is_timestamp(column.type) and column.type.tz is None:
        fix = f"Say which zone it is of: --query \"select {column.name} at time zone 'UTC' as {column.name}, …\"."
        yield f'the column "{column.name}" has no zone, but the field "{target.name}" is a moment. {fix}'
    if target.told.startswith("local-timestamp") and pa.types.is_timestamp(column.type) and column.type.tz is not None:
        yield f'the column "{column.name}" has a zone, but the field "{target.name}" is a local time of none.'
    if pa.types.is_interval(column.type) or pa.types.is_duration(column.type):
        yield f'the column "{column.name}" is an interval, which has no exact form in "{target.name}". Convert it.'
