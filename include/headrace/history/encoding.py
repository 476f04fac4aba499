"""Encoding: rows of a source into records of the feed, and what is wrong with those that cannot be one."""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import fastavro
import pyarrow as pa

from headrace.feed import Feed
from headrace.history import avro_target, scalars
from headrace.history.column_reading import ReadColumn, column_reader, listed
from headrace.history.kafka_key import key_writer
from headrace.history.mapping import ColumnMap
from headrace.history.rejected import Fault, Rejected
from headrace.history.scalars import Unfit
from headrace.history.source import Rows
from headrace.history.target import Target
from headrace.json_text import canonical

FRAME = b"\0"
BYTES_BESIDE = 200
"""What a record takes besides its key and value: our header and Kafka's own fields."""


@dataclass(frozen=True)
class Encoded:
    """Records that follow one another, in columns, and the rows that were rejected among them."""

    records: pa.RecordBatch
    rejected: Sequence[Rejected]


Write = Callable[[io.BytesIO, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Encoder:
    """Turns rows into records in Confluent's frame, with the columns that they are sorted by."""

    feed: Feed
    mapping: ColumnMap
    schema_id: int
    largest: int
    """The bytes that the topic takes for one record."""
    _readers: dict[tuple[str, pa.DataType | None], ReadColumn] = field(default_factory=dict, repr=False)

    @cached_property
    def sorted_by(self) -> list[Target]:
        """Key fields, then order fields; what the source does not have does not order its rows."""
        by_name = {each.target.name: each.target for each in self.mapping.filled}
        declared = self.feed.declaration
        return [by_name[name] for name in dict.fromkeys((*declared.key, *declared.order)) if name in by_name]

    @cached_property
    def schema(self) -> pa.Schema:
        sorts = [(f"sort_{place}", target.sorts) for place, target in enumerate(self.sorted_by)]
        rest = [("position", pa.int64()), ("timestamp", pa.int64()), ("key", pa.binary()), ("value", pa.binary())]
        return pa.schema([*sorts, *rest])

    @cached_property
    def key(self) -> Callable[[Mapping[str, Any]], bytes]:
        by_name = {each.target.name: each.target for each in self.mapping.filled}
        return key_writer([by_name[name] for name in self.feed.declaration.key])

    @cached_property
    def write(self) -> Write:
        return _avro_writer(self.feed) if self.feed.schema_type == "AVRO" else _json_writer(self.feed)

    @cached_property
    def omitted(self) -> frozenset[str]:
        """Fields that a record goes without when they are null; in Avro there is always something to write."""
        if self.feed.schema_type == "AVRO":
            return frozenset()
        return frozenset(each.target.name for each in self.mapping.filled if each.target.is_optional)

    @cached_property
    def constants(self) -> dict[str, Any]:
        """Fields without a column: their default or null; JSON goes without them."""
        avro = self.feed.schema_type == "AVRO"
        return {target.name: target.default for target in self.mapping.unfilled if avro or not target.is_optional}

    def encode(self, rows: Rows, *, position: int) -> Encoded:
        """The records of some rows; `position` is the number of the first in the whole source."""
        columns, faults = self._read(rows)
        stamps = self._timestamps(rows, faults)
        names, page = list(columns), _Page(self)
        for index, values in enumerate(zip(*columns.values(), strict=True)):
            if index not in faults:
                try:
                    page.add(index, dict(zip(names, values, strict=True)))
                except _Bad as bad:
                    faults[index] = (bad.fault, bad.field, bad.why)
        records = self._records(columns, page, stamps=stamps, position=position)
        rejected = [Rejected(rows.origin, rows.numbers[index], *fault) for index, fault in sorted(faults.items())]
        unread = [Rejected(rows.origin, number, Fault.UNREADABLE, "", why) for number, why in rows.unread.items()]
        return Encoded(records, [*rejected, *unread])

    def _read(self, rows: Rows) -> tuple[dict[str, list[Any]], dict[int, tuple[Fault, str, str]]]:
        """Every field's values, and by row what is wrong with the first that is."""
        columns: dict[str, list[Any]] = {}
        faults: dict[int, tuple[Fault, str, str]] = {}
        for filled in self.mapping.filled:
            name, given = filled.target.name, rows.columns[filled.column.name]
            # Files of one import may differ in a column's type.
            type_ = None if isinstance(given, list) else given.type
            if (name, type_) not in self._readers:
                self._readers[name, type_] = column_reader(filled.target, type_)
            columns[name], unfit = self._readers[name, type_](given)
            for index, why in unfit.items():
                faults.setdefault(index, (Fault.UNFIT, name, why))
            if name in self.feed.declaration.key:
                for index in _nulls(columns[name], unfit):
                    faults[index] = (Fault.KEYLESS, name, "null in the key")
            elif not filled.target.nullable and not (filled.target.is_optional and self.feed.schema_type == "JSON"):
                for index in _nulls(columns[name], unfit):
                    faults.setdefault(index, (Fault.NULL, name, "null where the schema has none"))
        return columns, faults

    def _timestamps(self, rows: Rows, faults: dict[int, tuple[Fault, str, str]]) -> list[int | None]:
        if self.mapping.timestamp is None:
            return [None] * len(rows.numbers)
        found: list[int | None] = []
        for index, value in enumerate(listed(rows.columns[self.mapping.timestamp.name])):
            try:
                found.append(None if value is None else milliseconds(value))
            except Unfit as error:
                found.append(None)
                faults.setdefault(index, (Fault.UNFIT, self.mapping.timestamp.name, f"as timestamp: {error}"))
        return found

    def _records(
        self, columns: Mapping[str, list[Any]], page: "_Page", *, stamps: list[int | None], position: int
    ) -> pa.RecordBatch:
        sorts = []
        for target in self.sorted_by:
            column, sort = columns[target.name], target.sort
            ordered = [None if column[index] is None else sort(column[index]) for index in page.kept]
            sorts.append(pa.array(ordered, target.sorts))
        places = pa.array([position + index for index in page.kept], pa.int64())
        timestamps = pa.array([stamps[index] for index in page.kept], pa.int64())
        keys = pa.array(page.keys, pa.binary())
        return pa.RecordBatch.from_arrays([*sorts, places, timestamps, keys, page.values()], schema=self.schema)


class _Page:
    """Values written one behind another, which become a column without being copied one by one."""

    def __init__(self, encoder: Encoder) -> None:
        self.kept: list[int] = []
        self.keys: list[bytes] = []
        self._out, self._ends = io.BytesIO(), [0]
        self._frame = FRAME + encoder.schema_id.to_bytes(4, "big")
        self._write, self._key, self._largest = encoder.write, encoder.key, encoder.largest
        self._constants, self._omitted = encoder.constants, encoder.omitted

    def add(self, index: int, row: dict[str, Any]) -> None:
        """Write a row; one that cannot be written leaves nothing behind."""
        if self._omitted:
            row = {name: value for name, value in row.items() if value is not None or name not in self._omitted}
        if self._constants:
            row |= self._constants
        start = self._ends[-1]
        try:
            self._out.write(self._frame)
            self._write(self._out, row)
            key, end = self._key(row), self._out.tell()
            if end - start + len(key) + BYTES_BESIDE > self._largest:
                raise _Bad(Fault.LARGE, why=f"more than the {self._largest:,} bytes that the topic takes")
        except _Bad:
            self._out.seek(start)
            self._out.truncate()
            raise
        self._ends.append(end)
        self.keys.append(key)
        self.kept.append(index)

    def values(self) -> pa.Array:
        offsets = pa.array(self._ends, pa.int32()).buffers()[1]
        data = pa.py_buffer(self._out.getvalue())
        return pa.BinaryArray.from_buffers(pa.binary(), len(self.kept), [None, offsets, data])


class _Bad(Exception):
    def __init__(self, fault: Fault, *, field: str = "", why: str = "") -> None:
        super().__init__(why)
        self.fault, self.field, self.why = fault, field, why


def milliseconds(value: Any) -> int:
    """A Kafka timestamp, whose finer digits nobody needs."""
    if isinstance(value, str):
        found = scalars.moment(value, per_second=1_000_000_000, zoned=True) // 1_000_000
    else:
        found = scalars.moment(value, per_second=1_000_000, zoned=True) // 1000
    if found <= 0:
        raise Unfit("not after 1970 began, as Kafka's clients need it")
    return found


def _nulls(column: list[Any], unfit: Mapping[int, str]) -> Iterator[int]:
    return (index for index, value in enumerate(column) if value is None and index not in unfit)


def _avro_writer(feed: Feed) -> Write:
    schema, write = fastavro.parse_schema(avro_target.wire_schema(feed)), fastavro.schemaless_writer

    def checked(out: io.BytesIO, row: Mapping[str, Any]) -> None:
        try:
            write(out, schema, row)
        # Whatever a codec raises is about this row, and holds its values.
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise _Bad(Fault.UNFIT, why="it cannot be written as Avro") from None

    return checked


def _json_writer(feed: Feed) -> Write:
    import jsonschema_rs

    validator = jsonschema_rs.validator_for(dict(feed.schema), validate_formats=True, offline=True)
    is_valid, dump = validator.is_valid, json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

    def write(out: io.BytesIO, row: Mapping[str, Any]) -> None:
        if not is_valid(row):
            place = next(iter(validator.iter_errors(row)))
            path = [str(step) for step in place.instance_path]
            raise _Bad(
                Fault.INVALID, field=path[0] if path else "", why=f"breaks {'/'.join(map(str, place.schema_path))}"
            )
        try:
            text = dump(row)
        except TypeError:  # a Decimal, which keeps more digits than a double
            text = canonical(row)
        out.write(text.encode())

    return write
