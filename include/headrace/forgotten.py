"""Forgotten: what is left of a person's records, and the feed's hold list, which keeps them from coming back.

In the archive such a record keeps its coordinates and timestamps; its key and value are null, and one header tells why.
The hold list has a keyed hash for each forgotten key, and how far the archive had come then: what lies before that, and
what is brought back by replay or import, is left out by every transform; what came later may live.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType, TimestamptzType

from headrace import away, layout
from headrace.errors import SettingsError
from headrace.heads import Heads
from headrace.lake import Lake
from headrace.provenance import Header, SigningKey

MARK = "headrace-forgotten"
"""The one header of a record that was blanked. A producer gains nothing by it: the record has no key and no value."""

HEADERS: tuple[Header, ...] = ((MARK, None),)

SCHEMA = Schema(
    NestedField(1, "digest", StringType(), doc="HMAC-SHA256 of the key, in hex."),
    NestedField(2, "secret", StringType(), doc="Which of the signing keys it was made with: a hash of that."),
    NestedField(3, "heads", StringType(), doc="How far the archive had come, as JSON: what lies before is left out."),
    NestedField(4, "at", TimestamptzType(), doc="When it was asked for."),
    NestedField(5, "by", StringType(), doc="Who asked for it."),
)

# Everybody only adds: whoever is second may well add to what the first one left.
PROPERTIES = {"commit.retry.num-retries": "10"}


class HeldKey(BaseModel):
    """A key of the hold list, as a transform takes it."""

    model_config = ConfigDict(frozen=True)

    digest: str
    secret: int
    """Which of the signing keys it was made with, by its place among them."""
    next: dict[int, int]
    """By partition: records before this offset are left out."""


@dataclass(frozen=True)
class Entry:
    """A row of the hold list."""

    digest: str
    secret: str
    heads: Heads


def is_blank(key: bytes | None, value: bytes | None, headers: Iterable[Header]) -> bool:
    """Whether this is what was left of a record."""
    return key is None and value is None and any(name == MARK for name, _ in headers)


def fingerprint(secret: bytes) -> str:
    """What tells a secret from another one and nothing of either."""
    return hashlib.sha256(b"headrace.forgotten" + secret).hexdigest()[:16]


@away.tells
def hold(
    feed: str,
    digests: Sequence[str],
    *,
    lake: Lake,
    heads: Heads,
    signing: SigningKey,
    by: str,
    at: datetime | None = None,
) -> None:
    """Add keys to the hold list, by the hashes that were made with the first of the signing keys."""
    table = lake.ensure(layout.forgotten_table(feed), SCHEMA, spec=PartitionSpec(), properties=PROPERTIES)
    noted = {"secret": fingerprint(signing.secret), "heads": heads.to_json(), "at": at or datetime.now(UTC), "by": by}
    rows = [{"digest": digest, **noted} for digest in digests]
    table.append(pa.Table.from_pylist(rows, schema=schema_to_pyarrow(SCHEMA, include_field_ids=False)))


@away.tells
def entries(feed: str, *, lake: Lake) -> list[Entry]:
    """The hold list of a feed."""
    table = lake.find(layout.forgotten_table(feed))
    rows = table.scan(selected_fields=("digest", "secret", "heads")).to_arrow().to_pylist() if table else []
    return [Entry(row["digest"], row["secret"], Heads.from_json(row["heads"])) for row in rows]


def reach(listed: Iterable[Entry]) -> Heads:
    """How far blanked records may lie: the farthest heads of all."""
    next_: dict[int, int] = {}
    for each in listed:
        next_ = _farther(next_, each.heads.next)
    return Heads(next=next_)


def held(listed: Iterable[Entry], *, feed: str, signing: SigningKey, now: Heads) -> list[HeldKey]:
    """The keys that a transform has to leave out, each once; `now` are the archive's heads."""
    places = {fingerprint(secret): place for place, secret in enumerate(signing.all)}
    found: dict[tuple[str, int], dict[int, int]] = {}
    for each in listed:
        if each.secret not in places:
            raise SettingsError(
                f"feed {feed}: keys were forgotten under a signing key that the connection {layout.SIGNING_CONNECTION} "
                f"no longer has, so what must stay forgotten cannot be told. Put that key back, after the present one."
            )
        place = (each.digest, places[each.secret])
        found[place] = _farther(found.get(place, {}), _before(each.heads, now))
    return [HeldKey(digest=digest, secret=secret, next=next_) for (digest, secret), next_ in sorted(found.items())]


def _before(then: Heads, now: Heads) -> Mapping[int, int]:
    """The heads of then, of the topics that are still the same: in one that was made anew everything came later."""
    same = {False: then.topic_id == now.topic_id, True: then.drained_id == now.drained_id}
    return {number: next_ for number, next_ in then.next.items() if same[number < 0]}


def _farther(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    return {number: max(one.get(number, 0), other.get(number, 0)) for number in sorted({*one, *other})}


def parsed(texts: Iterable[str], *, key: Sequence[str], binary: Iterable[str] = ()) -> list[list[str]]:
    """Keys as they are typed: the text of a single field, or a JSON object of several, in the key's order.

    Values of `binary` fields are told in hex. No error quotes a key, which may be personal.
    """
    octets = set(binary)
    return [
        [
            _told(value, octets=name in octets, place=place)
            for name, value in zip(key, _values(text, key, place), strict=True)
        ]
        for place, text in enumerate(texts, start=1)
    ]


def _values(text: str, key: Sequence[str], place: int) -> list[Any]:
    if len(key) == 1:
        return [text]
    try:
        told = json.loads(text, parse_float=str, parse_int=str)
    except ValueError:
        told = None
    if not isinstance(told, dict) or set(told) != set(key):
        example = json.dumps(dict.fromkeys(key, "…"), ensure_ascii=False)
        raise SettingsError(f"key number {place} is no JSON object of {', '.join(key)}. Write it as {example}.")
    return [told[name] for name in key]


def _told(value: Any, *, octets: bool, place: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str) or not value:
        raise SettingsError(
            f"key number {place} has a field that is neither a text nor a number. Write it as it is shown."
        )
    if octets:
        try:
            return bytes.fromhex(value.removeprefix("hex:")).hex()
        except ValueError:
            raise SettingsError(f"key number {place} has a field of bytes, which is told in hex: hex:00ff.") from None
    return value
