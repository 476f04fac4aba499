"""Literals: a value that a reader compares a column with, as a value of the column's own type."""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from pyiceberg.expressions.literals import DateLiteral, Literal, TimestampLiteral, UUIDLiteral
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from pyiceberg.utils.datetime import days_to_date, micros_to_timestamp

from headrace.errors import ReadError


def value_of(literal: Literal[Any]) -> Any:
    """What a literal of PyIceberg's stands for; some hold only a number."""
    match literal:
        case TimestampLiteral():
            return micros_to_timestamp(literal.value)
        case DateLiteral():
            return days_to_date(literal.value)
        case UUIDLiteral():
            return UUID(bytes=literal.value)
    return literal.value


def of_type(value: Any, type_: IcebergType, *, column: str) -> Any:
    """The value as the column has it; neither PyIceberg nor Spark takes '2026-01-31' for the beginning of a day."""
    read, words = READ.get(
        type(type_), (None, "no value, for it is nested. Name a field inside it, or filter the rows that you get")
    )
    try:
        if read is not None:
            return read(value, type_)
    except (ValueError, TypeError, InvalidOperation):
        pass
    # Not the value itself: it may be personal, and errors are logged.
    raise ReadError(f"where: {column} ({type_}) is compared with a {type(value).__name__}; it takes {words}.")


def _whole(value: Any, type_: IcebergType) -> int:
    number = Decimal(value) if isinstance(value, str) else value
    if isinstance(value, bool) or number != int(number):
        raise ValueError
    return int(number)


def _decimal(value: Any, type_: IcebergType) -> Decimal:
    assert isinstance(type_, DecimalType)
    number = Decimal(str(value))
    scaled = number.quantize(Decimal(1).scaleb(-type_.scale))
    if isinstance(value, bool) or scaled != number:
        raise ValueError
    return scaled


def _float(value: Any, type_: IcebergType) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _single(value: Any, type_: IcebergType) -> float:
    """As near as a column of single width comes to it: file statistics, and Spark, compare it as a double."""
    number = _float(value, type_)
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:  # beyond all that such a column has
        return number


def _day(value: Any, type_: IcebergType) -> date:
    if isinstance(value, datetime):
        raise TypeError
    return value if isinstance(value, date) else date.fromisoformat(value)


def _moment(value: Any, type_: IcebergType) -> datetime:
    found = _time(value)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _local(value: Any, type_: IcebergType) -> datetime:
    found = _time(value)
    if found.tzinfo:
        raise ValueError
    return found


def _time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    return datetime.combine(value, time()) if isinstance(value, date) else datetime.fromisoformat(value)


def _exactly(kind: type) -> Callable[[Any, IcebergType], Any]:
    def read(value: Any, type_: IcebergType) -> Any:
        if not isinstance(value, kind):
            raise TypeError
        return value

    return read


READ: Mapping[type[IcebergType], tuple[Callable[[Any, IcebergType], Any] | None, str]] = {
    BooleanType: (_exactly(bool), "true or false"),
    IntegerType: (_whole, "a whole number"),
    LongType: (_whole, "a whole number"),
    FloatType: (_single, "a number"),
    DoubleType: (_float, "a number"),
    DecimalType: (_decimal, "a number with as many digits after the point as it has itself, or fewer"),
    StringType: (_exactly(str), "a text in single quotes"),
    UUIDType: (None, "no value: Arrow compares no uuids. Filter the rows that you get"),
    BinaryType: (_exactly(bytes), "bytes, in the form of a list of conditions"),
    FixedType: (_exactly(bytes), "bytes, in the form of a list of conditions"),
    DateType: (_day, "a day, such as '2026-01-31'"),
    TimestamptzType: (_moment, "a time, such as '2026-01-31' or '2026-01-31T08:00', in UTC unless it has its zone"),
    TimestampType: (_local, "a time without a zone, such as '2026-01-31T08:00'"),
}
