"""Random feeds: schemas of every type that a feed may have, nested as it comes, and records, from one seed."""

import math
import string
import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

from headrace.feed import SchemaType

Maker = Callable[[], Any]
"""Makes a value; None where there is none."""
DAY = 86_400
FIRST, LAST = -62_135_596_800, 253_402_300_799
"""The seconds since 1970 of the years 1 to 9999."""
LETTERS = string.ascii_letters + " \"'\\\n\t/äß世🌊\u2028\x01"
EXTREMES = (0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1e22, 123456789012345680.0)


@dataclass(frozen=True)
class Sort:
    """A type as a schema writes it, and what makes values of it."""

    schema: Any
    value: Maker


@dataclass(frozen=True)
class RandomFeed:
    """Fields by their names, each of a random sort."""

    dice: Random
    fields: Mapping[str, Sort]

    @property
    def records(self) -> list[str]:
        """The fields that a warehouse may flatten."""
        return [name for name, each in self.fields.items() if _is_record(each.schema)]

    def row(self, id_: str) -> dict[str, Any]:
        values = {name: each.value() for name, each in self.fields.items()}
        return {"id": id_, "revision": self.dice.randrange(5), **values}


def random_feed(language: SchemaType, seed: object) -> RandomFeed:
    """One with every plain sort of a language, in any order and with any shape around it."""
    dice = Random(f"{language} {seed}")
    made: Avro | Json = Avro(dice) if language == "AVRO" else Json(dice)
    plain = made.plain()
    fields = {f"f{number}": made.shaped(each) for number, each in enumerate(dice.sample(plain, len(plain)))}
    return RandomFeed(dice, fields)


@dataclass
class Values:
    """Random values that both languages have."""

    dice: Random

    def text(self) -> str:
        return "".join(self.dice.choices(LETTERS, k=self.dice.choice((0, 1, 5, 40))))

    def whole(self, bits: int) -> int:
        return self.dice.choice((0, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), self.dice.getrandbits(bits // 2)))

    def double(self) -> float:
        return self.dice.choice((*EXTREMES, self.dice.uniform(-1e9, 1e9), self.dice.gauss(0, 1)))

    def moment(self, *, per_second: int) -> int:
        return self.dice.randint(FIRST * per_second, LAST * per_second + per_second - 1)

    def several(self, value: Maker) -> list[Any]:
        return [value() for _ in range(self.dice.randrange(4))]

    def named(self, value: Maker) -> dict[str, Any]:
        return {self.text(): value() for _ in range(self.dice.randrange(4))}


@dataclass
class Avro(Values):
    """Avro's types."""

    names: int = field(default=0)

    def name(self) -> str:
        self.names += 1
        return f"N{self.names}"

    def plain(self) -> list[Sort]:
        dice = self.dice
        floats = (*EXTREMES[:2], math.nan, math.inf, -math.inf)
        octets = dice.randbytes

        def logical(base: str, name: str, value: Maker, **more: Any) -> Sort:
            return Sort({"type": base, "logicalType": name, **more}, value)

        def moments(name: str, per_second: int) -> Sort:
            return logical("long", name, lambda: self.moment(per_second=per_second))

        def decimal(precision: int, scale: int, **base: Any) -> Sort:
            schema = {**base, "logicalType": "decimal", "precision": precision, "scale": scale}
            return Sort(schema, lambda: Decimal(dice.randint(1 - 10**precision, 10**precision - 1)).scaleb(-scale))

        def fixed(size: int, **more: Any) -> dict[str, Any]:
            return {"type": "fixed", "name": self.name(), "size": size, **more}

        symbols = ["RED", "green", "_blue"]
        return [
            Sort("boolean", lambda: dice.random() < 0.5),
            Sort("int", lambda: self.whole(32)),
            Sort("long", lambda: self.whole(64)),
            Sort("float", lambda: dice.choice((*floats, _single(dice.uniform(-1e6, 1e6))))),
            Sort("double", lambda: dice.choice((*floats, self.double()))),
            Sort("bytes", lambda: octets(dice.randrange(9))),
            Sort("string", self.text),
            Sort({"type": "enum", "name": self.name(), "symbols": symbols}, lambda: dice.choice(symbols)),
            Sort(fixed(3), lambda: octets(3)),
            Sort(["null", "string", "long", "double"], lambda: dice.choice((None, self.text(), self.whole(64), 0.5))),
            Sort(["int", "long"], lambda: self.whole(64)),
            decimal(38, 10, type="bytes"),
            decimal(12, 2, **fixed(8)),
            decimal(9, 0, type="bytes"),
            logical("bytes", "big-decimal", lambda: octets(5)),
            logical("int", "date", lambda: self.moment(per_second=1) // DAY),
            logical("int", "time-millis", lambda: dice.randrange(DAY * 1000)),
            logical("long", "time-micros", lambda: dice.randrange(DAY * 1_000_000)),
            moments("timestamp-millis", 1000),
            moments("timestamp-micros", 1_000_000),
            logical("long", "timestamp-nanos", lambda: self.whole(64)),
            moments("local-timestamp-millis", 1000),
            moments("local-timestamp-micros", 1_000_000),
            logical("long", "local-timestamp-nanos", lambda: self.whole(64)),
            logical("string", "uuid", lambda: str(uuid.UUID(bytes=octets(16)))),
            Sort(fixed(16, logicalType="uuid"), lambda: octets(16)),
            Sort(fixed(12, logicalType="duration"), lambda: octets(12)),
            logical("long", "fortnights", lambda: self.whole(64)),
        ]

    def shaped(self, inner: Sort, depth: int = 0) -> Sort:
        """As it is, or inside something, which may be inside something."""
        shape = self.dice.choice(("plain", "optional", "array", "map", "record"))
        if shape == "plain" or depth > 1:
            return inner
        if shape == "optional" and not isinstance(inner.schema, list):
            return Sort(["null", inner.schema], lambda: inner.value() if self.dice.random() < 0.7 else None)
        if shape == "array":
            made = Sort({"type": "array", "items": inner.schema}, lambda: self.several(inner.value))
        elif shape == "map":
            made = Sort({"type": "map", "values": inner.schema}, lambda: self.named(inner.value))
        else:
            members = [{"name": "one", "type": inner.schema}, {"name": "Two_", "type": ["null", "long"]}]
            record = {"type": "record", "name": self.name(), "fields": members}
            made = Sort(record, lambda: {"one": inner.value(), "Two_": self.dice.choice((None, self.whole(64)))})
        return self.shaped(made, depth + 1)


@dataclass
class Json(Values):
    """JSON Schema's."""

    def plain(self) -> list[Sort]:
        dice, text = self.dice, self.text

        def formatted(name: str, value: Maker) -> Sort:
            return Sort({"type": "string", "format": name}, value)

        return [
            Sort({"type": "boolean"}, lambda: dice.random() < 0.5),
            Sort({"type": "integer"}, lambda: self.whole(64)),
            Sort({"type": "number"}, lambda: dice.choice((self.double(), self.whole(32)))),
            Sort({"type": "string"}, text),
            Sort({"type": ["string", "null"]}, lambda: dice.choice((None, text()))),
            Sort({"enum": ["red", "green"]}, lambda: dice.choice(("red", "green"))),
            Sort({"const": 7}, lambda: 7),
            formatted("date-time", self._moment),
            formatted("date", lambda: _since(self.moment(per_second=1)).date().isoformat()),
            formatted("uuid", lambda: str(uuid.UUID(bytes=dice.randbytes(16)))),
            formatted("time", lambda: f"{dice.randrange(24):02d}:00:00Z"),
            formatted("email", lambda: f"{dice.randrange(99)}@example.org"),
            Sort({"type": "string", "contentEncoding": "base64"}, lambda: "AP8="),
            Sort({"type": "object", "properties": {"a-b": {}, "B": {}}}, lambda: {"a-b": self.anything(), "B": 1}),
            Sort({"type": "object"}, lambda: self.named(self.anything)),
            Sort({}, self.anything),
            Sort({"type": "array"}, lambda: self.several(self.anything)),
            Sort({"type": "array", "prefixItems": [{}, {}]}, lambda: [self.anything(), text()]),
            Sort({"type": ["string", "integer"]}, lambda: dice.choice((text(), self.whole(64)))),
            Sort({"oneOf": [{"type": "string"}, {"type": "boolean"}]}, lambda: dice.choice((text(), True))),
        ]

    def anything(self, depth: int = 0) -> Any:
        """Any JSON, of which each digit counts."""
        plain = (None, True, self.whole(64), self.double(), self.text(), 10**40 + 1)
        if depth > 2 or self.dice.random() < 0.6:
            return self.dice.choice(plain)
        deeper = lambda: self.anything(depth + 1)  # noqa: E731
        return self.several(deeper) if self.dice.random() < 0.5 else self.named(deeper)

    def _moment(self) -> str:
        zone = timezone(timedelta(minutes=self.dice.randrange(-14 * 60, 14 * 60)))
        told = _since(self.dice.randint(FIRST + DAY, LAST - DAY)).astimezone(zone)
        return f"{told:%Y-%m-%dT%H:%M:%S}".zfill(19) + f".{self.dice.randrange(10**9):09d}" + told.isoformat()[-6:]

    def shaped(self, inner: Sort, depth: int = 0) -> Sort:
        shape = self.dice.choice(("plain", "plain", "array", "map", "object"))
        if shape == "plain" or depth > 1:
            return inner
        if shape == "array":
            made = Sort({"type": "array", "items": inner.schema}, lambda: self.several(inner.value))
        elif shape == "map":
            made = Sort({"type": "object", "additionalProperties": inner.schema}, lambda: self.named(inner.value))
        else:
            members = {"one": inner.schema, "Two_": {"type": "integer"}}
            made = Sort({"type": "object", "properties": members}, lambda: self._members(inner))
        return self.shaped(made, depth + 1)

    def _members(self, inner: Sort) -> dict[str, Any]:
        every = {"one": inner.value(), "Two_": self.whole(64)}
        return {name: value for name, value in every.items() if self.dice.random() < 0.8}


def _is_record(schema: Any) -> bool:
    return isinstance(schema, dict) and (schema.get("type") == "record" or "one" in schema.get("properties", ()))


def _single(value: float) -> float:
    found: float = struct.unpack("f", struct.pack("f", value))[0]
    return found


def _since(seconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
