"""Records that must end in quarantine: how a good one is damaged, and the reason that quarantine must give."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from demo.feed import Feed
from demo.record import Reason, Row
from demo.wire import UNDECODABLE, avro_row, encoded, framed, json_values

# Ids that no registry hands out: the highest signed one, and one that reads as -1 when taken for signed.
UNKNOWN_IDS = (0x7FFFFFFF, 0xFFFFFFFF)


@dataclass(frozen=True)
class Good:
    """The good record that is about to be damaged."""

    feed: Feed
    schema_id: int
    row: Row
    chance: Random

    @property
    def payload(self) -> bytes:
        return encoded(self.feed, self.row)

    def framed(self, payload: bytes) -> bytes:
        return framed(self.schema_id, payload)

    def changed(self, **values: Any) -> bytes:
        """The row as JSON with some values replaced."""
        return self.framed(json.dumps({**json_values(self.row), **values}).encode())

    def without(self, field: str) -> bytes:
        """The row as JSON without one field."""
        return self.framed(json.dumps({k: v for k, v in json_values(self.row).items() if k != field}).encode())


@dataclass(frozen=True)
class Kind:
    """One way to damage a record."""

    reason: Reason
    value: Callable[[Good], bytes]


def cut(good: Good) -> bytes:
    """The payload without its end, at a random place, and surely not a record."""
    whole = good.payload
    for end in good.chance.sample(range(1, len(whole)), k=len(whole) - 1):
        if not _decodes(good.feed, whole[:end]):
            return good.framed(whole[:end])
    raise AssertionError(f"{good.feed.name}: every beginning of a record decodes, so none can be told from a record.")


def _decodes(feed: Feed, payload: bytes) -> bool:
    try:
        avro_row(feed, payload) if feed.form == "avro" else json.loads(payload)
    except UNDECODABLE:
        return False
    return True


def _bare(good: Good) -> bytes:
    """What a producer without a serializer sends: the key and some text, no frame."""
    return json.dumps({field: str(good.row[field]) for field in good.feed.key}).encode()


ANY_DAMAGE: Mapping[str, Kind] = {
    "empty value": Kind("unframed", lambda _: b""),
    "shorter than a frame": Kind("unframed", lambda good: good.framed(b"")[:4]),
    "no frame": Kind("unframed", _bare),
    "other first byte": Kind("unframed", lambda good: b"\x01" + good.framed(good.payload)[1:]),
    "unknown id": Kind("unknown_id", lambda good: framed(UNKNOWN_IDS[0], good.payload)),
    "unknown id, highest bit set": Kind("unknown_id", lambda good: framed(UNKNOWN_IDS[1], good.payload)),
    "frame only": Kind("undecodable", lambda good: good.framed(b"")),
    "cut": Kind("undecodable", cut),
}

AVRO_DAMAGE: Mapping[str, Kind] = ANY_DAMAGE

JSON_DAMAGE: Mapping[str, Kind] = {
    **ANY_DAMAGE,
    # Lenient parsers read the first three as if nothing were wrong.
    "two documents": Kind("undecodable", lambda good: good.framed(good.payload + b" " + good.payload)),
    "single quotes": Kind("undecodable", lambda good: good.framed(good.payload.replace(b'"', b"'"))),
    "not UTF-8": Kind("undecodable", lambda good: good.framed(good.payload.replace(b':"', b':"\xff', 1))),
    "not an object": Kind("invalid", lambda good: good.framed(b"[1, 2]")),
    "text for a number": Kind("invalid", lambda good: good.changed(duration_seconds="12")),
    "fraction for an integer": Kind("invalid", lambda good: good.changed(duration_seconds=12.5)),
    "negative duration": Kind("invalid", lambda good: good.changed(duration_seconds=-1)),
    "unknown direction": Kind("invalid", lambda good: good.changed(direction="sideways")),
    "null where none may be": Kind("invalid", lambda good: good.changed(status=None)),
    "missing field": Kind("invalid", lambda good: good.without("status")),
    "missing key": Kind("invalid", lambda good: good.without("call_id")),
    "null key": Kind("invalid", lambda good: good.changed(call_id=None)),
}


def damages(feed: Feed) -> Mapping[str, Kind]:
    """The ways in which this feed's records can be damaged, by name."""
    return AVRO_DAMAGE if feed.form == "avro" else JSON_DAMAGE
