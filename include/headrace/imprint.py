"""Imprints: of each record its offset and one hash for every part of it: whole topics compare in little memory.

Both sides are hashed by the same engine, column by column. The hashes have 64 bits: they tell every accident from what
it should have been, and are no seal against somebody who forges records on purpose.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.forgotten import HEADERS
from headrace.kafka.envelopes import UNREADABLE
from headrace.provenance import Header

PARTS = ("key", "value", "headers", "timestamp", "timestamp_type")
"""What must be as it came; the leader's epoch is none of it: not every way to read a topic tells it."""

BLANKED = ("key", "value", "headers")
"""What nothing is left of when a record is forgotten."""

Offsets = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose bits are without a pattern."""


@dataclass(frozen=True)
class Imprints:
    """The imprints of some records of one partition, in no order unless it is said."""

    offsets: Offsets
    parts: Mapping[str, Hashes]

    def __len__(self) -> int:
        return len(self.offsets)

    def where(self, chosen: npt.NDArray[Any]) -> "Imprints":
        """Those at an index, or at which a mask is true."""
        return Imprints(self.offsets[chosen], {name: hashes[chosen] for name, hashes in self.parts.items()})

    @property
    def checksum(self) -> int:
        """Of all records together, in whatever order they come; two that swap a part of theirs change it."""
        mixed = self.offsets.astype(np.uint64)
        for name in PARTS:
            mixed = (mixed ^ self.parts[name]) * _MIXER
            mixed ^= mixed >> np.uint64(29)
        return int(mixed.sum(dtype=np.uint64))

    def in_order(self) -> "Imprints":
        return self.where(np.argsort(self.offsets, kind="stable"))

    @classmethod
    def joined(cls, several: Sequence["Imprints"]) -> "Imprints":
        if not several:
            return NOTHING
        return cls(
            np.concatenate([each.offsets for each in several]),
            {name: np.concatenate([each.parts[name] for each in several]) for name in PARTS},
        )


NOTHING = Imprints(np.empty(0, np.int64), {name: np.empty(0, np.uint64) for name in PARTS})


def imprints(envelopes: pa.RecordBatch | pa.Table) -> Imprints:
    """Envelopes of one partition, hashed part by part; they may lack nothing but their hour."""
    table = pa.Table.from_batches([envelopes]) if isinstance(envelopes, pa.RecordBatch) else envelopes
    hashed = _engine().from_arrow(table.select(["offset", *PARTS])).project(_PROJECTION).to_arrow_table()
    # No headers come as an empty list or as none at all, depending on the reader; the engine hashes both alike.
    return Imprints(
        hashed["offset"].to_numpy().astype(np.int64),
        {name: hashed[name].to_numpy().astype(np.uint64) for name in PARTS},
    )


@cache
def unreadable_headers() -> int:
    """The hash of what stands for headers that our client cannot read."""
    return int(_of_headers(UNREADABLE).parts["headers"][0])


def forgotten(some: Imprints) -> npt.NDArray[np.bool_]:
    """Which of them are of records that were blanked."""
    blank = _blank().parts
    found = np.ones(len(some), dtype=np.bool_)
    for name in BLANKED:
        found &= some.parts[name] == blank[name][0]
    return found


@cache
def _blank() -> Imprints:
    return _of_headers(HEADERS)


def _of_headers(headers: Iterable[Header]) -> Imprints:
    """The imprint of a record that has nothing but headers."""
    row = dict.fromkeys(PARTS) | {"offset": 0, "headers": [{"name": name, "value": value} for name, value in headers]}
    columns = {name: pa.array([value], _TYPES.get(name, pa.string())) for name, value in row.items()}
    return imprints(pa.table(columns))


_TYPES = {
    "offset": pa.int64(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())])),
}


_PROJECTION = ", ".join(['"offset"', *(f'hash("{name}") as "{name}"' for name in PARTS)])


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
