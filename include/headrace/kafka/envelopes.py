"""Envelopes: consumed messages as columns, as they came, with the least Python per message that the client allows."""

import logging
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, Message

log = logging.getLogger(__name__)

TIMESTAMP_TYPES = {
    TIMESTAMP_NOT_AVAILABLE: "none",
    TIMESTAMP_CREATE_TIME: "create",
    TIMESTAMP_LOG_APPEND_TIME: "append",
}
"""The broker's word for what a timestamp means."""

_KINDS = pa.array([TIMESTAMP_TYPES[kind] for kind in range(len(TIMESTAMP_TYPES))], pa.large_string())
_HEADER = pa.struct([pa.field("name", pa.large_string(), nullable=False), pa.field("value", pa.large_binary())])
_HEADERS = pa.large_list(pa.field("element", _HEADER, nullable=False))

UNREADABLE = [("\ufffd", None)]
"""What stands in the place of headers that the client cannot read."""

SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64()),
        pa.field("timestamp_type", pa.large_string()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("key", pa.large_binary()),
        pa.field("value", pa.large_binary()),
        pa.field("headers", _HEADERS),
    ]
)
"""An envelope batch: `record.SCHEMA` but for the hour, which filing derives."""


def coordinates(messages: Sequence[Message]) -> tuple[np.ndarray, np.ndarray]:
    """The partition and the offset of each message."""
    return _numbers(Message.partition, messages), _numbers(Message.offset, messages)


def batch(messages: Sequence[Message], *, partitions: np.ndarray, offsets: np.ndarray) -> pa.RecordBatch:
    """Messages whose coordinates are known as one envelope batch."""
    kinds, milliseconds = _timestamps(messages)
    none = kinds == TIMESTAMP_NOT_AVAILABLE
    columns = [
        pa.array(partitions, pa.int32()),
        pa.array(offsets, pa.int64()),
        pa.array(milliseconds, mask=none if none.any() else None),
        _KINDS.take(pa.array(kinds)),
        pa.array([*map(Message.leader_epoch, messages)], pa.int32()),
        pa.array([*map(Message.key, messages)], pa.large_binary()),
        pa.array([*map(Message.value, messages)], pa.large_binary()),
        _headers(_named(messages)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _numbers(read: Callable[[Message], Any], messages: Sequence[Message]) -> np.ndarray:
    return np.fromiter(map(read, messages), np.int64, len(messages))


def _timestamps(messages: Sequence[Message]) -> tuple[np.ndarray, np.ndarray]:
    """Type and milliseconds; flattened at once, for many pairs kept alive would wake the garbage collector."""
    flat = np.fromiter(chain.from_iterable(map(Message.timestamp, messages)), np.int64, 2 * len(messages))
    return flat[::2].copy(), flat[1::2].copy()


def _named(messages: Sequence[Message]) -> list[Any]:
    """The headers of each message, or a mark in their place.

    Kafka's protocol wants names in UTF-8 but no broker looks. Of a message with another name the client gives no header
    and must not be asked twice, which would end the process; it must not keep all others out of the archive.
    """
    found: list[Any] = []
    each = map(Message.headers, messages)
    while len(found) < len(messages):
        try:
            found.extend(each)
        except SystemError:
            message = messages[len(found)]
            found.append(UNREADABLE)
            log.warning(
                "topic %s, partition %s, offset %s: a header's name is not UTF-8, so the client gives none of its "
                "headers; archived without them",
                *(message.topic(), message.partition(), message.offset()),
            )
    return found


def _headers(headers: Sequence[Any]) -> pa.Array:
    rows = headers if all(headers) else [each or () for each in headers]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)), out=offsets[1:])
    # Names and values in turn: to take pair by pair apart costs more time.
    flat = [*chain.from_iterable(chain.from_iterable(rows))]
    pairs = pa.StructArray.from_arrays(
        [pa.array(flat[::2], pa.large_string()), pa.array(flat[1::2], pa.large_binary())], fields=list(_HEADER)
    )
    return pa.LargeListArray.from_arrays(pa.array(offsets), pairs, type=_HEADERS)
