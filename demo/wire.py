"""The bytes of a value: Confluent's frame around Avro or JSON."""

import io
import json
import struct
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import fastavro

from demo.feed import Feed
from demo.record import Row, Value

# What fastavro raises when bytes are no record of the schema: an early end, bad text, an unknown branch or symbol.
UNDECODABLE = (EOFError, ValueError, IndexError, struct.error)


def framed(schema_id: int, payload: bytes) -> bytes:
    """0x00, the schema's id in four big-endian bytes, the payload."""
    return struct.pack(">BI", 0, schema_id) + payload


def encoded(feed: Feed, row: Row, *, spelling: int = 0) -> bytes:
    """The row's payload. JSON has several spellings of one content; Avro has one."""
    return avro_bytes(feed, row) if feed.form == "avro" else json_bytes(row, spelling=spelling)


def avro_bytes(feed: Feed, row: Row) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, feed.schema, dict(row))
    return out.getvalue()


def avro_row(feed: Feed, payload: bytes) -> dict[str, Any]:
    """The row in these bytes; raises one of UNDECODABLE when there is none."""
    return cast("dict[str, Any]", fastavro.schemaless_reader(io.BytesIO(payload), feed.schema, None))


def json_bytes(row: Row, *, spelling: int = 0) -> bytes:
    """The row as JSON text in one of three spellings of the same content."""
    if spelling == 1:  # Other field order, spaces, escapes instead of UTF-8.
        return json.dumps(json_values({name: row[name] for name in reversed(list(row))}), indent=1).encode()
    if spelling == 2:  # A null field is left out, and clocks are read two hours further east.
        given = {name: value for name, value in row.items() if value is not None}
        return _compact(json_values(given, zone=timezone(timedelta(hours=2))))
    return _compact(json_values(row))


def json_values(row: Row, *, zone: timezone = UTC) -> dict[str, Any]:
    """The row in JSON's own types."""
    return {name: _json_value(value, zone) for name, value in row.items()}


def _json_value(value: Value, zone: timezone) -> Any:
    if isinstance(value, datetime):
        text = value.astimezone(zone).isoformat(timespec="milliseconds")
        return text.replace("+00:00", "Z")
    return value


def _compact(values: dict[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
