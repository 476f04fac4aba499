"""Logical types: what a type's bytes mean, where its annotation is one that Avro knows and that fits the type."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor, log10

from headrace.registry.avro.types import Definition, Fixed, Kind, Props, Union


@dataclass(frozen=True)
class Logical:
    """A logical type; precision and scale are a decimal's."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"{self.name}({self.precision}, {self.scale})" if self.name == "decimal" else self.name

    def reads(self, writer: "Logical") -> bool:
        """Whether the writer's values mean the same here; a decimal may only gain digits before its point."""
        return (self.name, self.scale) == (writer.name, writer.scale) and self.precision >= writer.precision


def logical(type_: Definition) -> Logical | None:
    """The logical type; none where it is unknown or does not fit, since the specification then ignores it."""
    if isinstance(type_, Union):
        return None
    name = type_.props.get("logicalType")
    if not isinstance(name, str) or name not in _FITS or not _FITS[name](type_):
        return None
    if name == "decimal":
        return Logical(name, type_.props["precision"], type_.props.get("scale", 0))
    return Logical(name)


def _on(kind: Kind) -> Callable[[Definition], bool]:
    return lambda type_: type_.kind is kind


def _is_uuid(type_: Definition) -> bool:
    return type_.kind is Kind.STRING or (isinstance(type_, Fixed) and type_.size == 16)


def _is_duration(type_: Definition) -> bool:
    return isinstance(type_, Fixed) and type_.size == 12


def _is_decimal(type_: Definition) -> bool:
    if isinstance(type_, Fixed):
        digits = floor(log10(2) * (8 * type_.size - 1)) if type_.size else 0
        return _has_digits(type_.props, at_most=digits)
    return not isinstance(type_, Union) and type_.kind is Kind.BYTES and _has_digits(type_.props, at_most=2**31 - 1)


def _has_digits(props: Props, *, at_most: int) -> bool:
    precision, scale = props.get("precision"), props.get("scale", 0)
    # A bool is an int to Python and none to JSON.
    return type(precision) is type(scale) is int and 0 < precision <= at_most and 0 <= scale <= precision


_FITS: Mapping[str, Callable[[Definition], bool]] = {
    "date": _on(Kind.INT),
    "time-millis": _on(Kind.INT),
    "time-micros": _on(Kind.LONG),
    "timestamp-millis": _on(Kind.LONG),
    "timestamp-micros": _on(Kind.LONG),
    "timestamp-nanos": _on(Kind.LONG),
    "local-timestamp-millis": _on(Kind.LONG),
    "local-timestamp-micros": _on(Kind.LONG),
    "local-timestamp-nanos": _on(Kind.LONG),
    "big-decimal": _on(Kind.BYTES),
    "decimal": _is_decimal,
    "uuid": _is_uuid,
    "duration": _is_duration,
}
