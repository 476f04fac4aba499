"""Single values read exactly: each function takes what a source may give, and refuses what would lose something.

What is raised never holds the value, which may be personal.
"""

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from headrace.json_text import decoder

Read = Callable[[Any], Any]

INT = range(-(2**31), 2**31)
LONG = range(-(2**63), 2**63)
WHOLE = re.compile(r"-?[0-9]+")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
NOT_NUMBERS = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf}
BOOLEANS = {"true": True, "t": True, "false": False, "f": False}
UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?(.*)")
TIME = re.compile(r"([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?")
OFFSET = re.compile(r"([+-][0-9]{2})(?::?([0-9]{2}))?")

# The years 1 to 9999: what every store after the topic has too.
DAYS = range(-719_162, 2_932_897)
SECONDS = range(-62_135_596_800, 253_402_300_800)
EPOCH, EPOCH_DAY = datetime(1970, 1, 1), date(1970, 1, 1).toordinal()  # noqa: DTZ001 - of no zone, as it is used
DAY_S = 86_400
PER_SECOND = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}

parse_json = decoder()


class Unfit(ValueError):
    """A value that a field cannot hold without losing something; the message says why, and no value."""


def boolean(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in BOOLEANS:
        return BOOLEANS[value.lower()]
    if not isinstance(value, bool):
        raise Unfit("neither true nor false")
    return value


def whole(value: Any, bounds: range = LONG) -> int:
    """A whole number, also one written with a point or as text."""
    if isinstance(value, bool):
        raise Unfit("no number")
    if isinstance(value, str):
        if not WHOLE.fullmatch(value):
            raise Unfit("no whole number")
        found = int(value) if len(value) <= 20 else LONG.stop
    elif isinstance(value, int):
        found = value
    elif isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        found = int(value)
    else:
        raise Unfit("no whole number")
    if found not in bounds:
        raise Unfit(f"a number of more than {bounds.stop.bit_length()} bits")
    return found


def double(value: Any) -> float:
    """A double that shows every digit that there was."""
    if isinstance(value, float):
        return value
    if isinstance(value, str) and value.lower() in NOT_NUMBERS:
        return NOT_NUMBERS[value.lower()]
    number = _number(value)
    try:
        found = float(number)
    except OverflowError:
        raise Unfit("more than a double holds") from None
    if Decimal(repr(found)) != number:
        raise Unfit("more digits than a double keeps")
    return found


def single(value: Any) -> float:
    """A float of 32 bits that shows every digit that there was."""
    found = double(value)
    try:
        (narrow,) = struct.unpack("f", struct.pack("f", found))
    except OverflowError:
        raise Unfit("more than a float holds") from None
    if math.isnan(found) or narrow == found:
        return found
    # A text, or a double, that shows the float's own digits means the float.
    if Decimal(repr(found)) in {Decimal(f"{narrow:.{digits}g}") for digits in range(6, 10)}:
        return float(narrow)
    raise Unfit("more digits than a float keeps")


def finite(value: Any) -> int | float:
    """A number as JSON has it, and a double shows it: whole numbers stay whole."""
    found = double(value)
    if isinstance(value, int):
        return value
    if not math.isfinite(found):
        raise Unfit("no number that JSON has")
    return found


def _number(value: Any) -> Decimal:
    try:
        if isinstance(value, str) and NUMBER.fullmatch(value):
            return Decimal(value)
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            number = Decimal(value)
            if number.is_finite():
                return number
    except InvalidOperation:
        pass
    raise Unfit("no number")


def unscaled(value: Any, *, precision: int, scale: int) -> int:
    """A decimal as its digits without the point."""
    number = Decimal(repr(value)) if isinstance(value, float) and math.isfinite(value) else _number(value)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if number and number.adjusted() + scale >= precision:
        raise Unfit(f"more than {precision} digits")
    mantissa = int("".join(map(str, digits)))
    shift = exponent + scale
    found, rest = (mantissa * int(10**shift), 0) if shift >= 0 else divmod(mantissa, int(10**-shift))
    if rest:
        raise Unfit(f"more than {scale} digits after the point")
    return -found if sign else found


def signed(number: int, *, size: int | None = None) -> bytes:
    """The bytes of a decimal's digits as Avro has them, as few as there need be or as many as a fixed has."""
    length = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    try:
        return number.to_bytes(size or length, "big", signed=True)
    except OverflowError:
        raise Unfit(f"more digits than {size} bytes hold") from None


def octets(value: Any) -> bytes:
    """Bytes; as text, base64 or Postgres' hexadecimal form."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, UUID):
        return value.bytes
    if not isinstance(value, str):
        raise Unfit("no bytes")
    try:
        return bytes.fromhex(value[2:]) if value.startswith("\\x") else base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        raise Unfit("neither base64 nor hexadecimal") from None


def text(value: Any) -> str:
    """A text; whole numbers and uuids have exactly one."""
    if isinstance(value, UUID) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    if isinstance(value, time):
        return value.isoformat()
    if not isinstance(value, str):
        raise Unfit("no text")
    if "\0" in value:
        raise Unfit("a text with a NUL, which no warehouse takes")
    try:
        if not value.isascii():
            value.encode()
    except UnicodeEncodeError:
        raise Unfit("a text with half a character") from None
    return value


def uuid(value: Any) -> str:
    """A UUID in small letters."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes) and len(value) == 16:
        return str(UUID(bytes=value))
    if not isinstance(value, str) or not UUID_TEXT.fullmatch(value.lower()):
        raise Unfit("no UUID")
    return value.lower()


def days(value: Any) -> int:
    """A date as days since 1970."""
    if isinstance(value, datetime):
        if value.tzinfo is not None or value.time() != time():
            raise Unfit("a moment, not a date")
        value = value.date()
    if isinstance(value, str):
        try:
            if not DATE.fullmatch(value):
                raise Unfit("no date, such as 2026-01-31")
            value = date.fromisoformat(value)
        except ValueError:
            raise Unfit("no date, such as 2026-01-31") from None
    found = value.toordinal() - EPOCH_DAY if isinstance(value, date) else whole(value)
    if found not in DAYS:
        raise Unfit("outside the years 1 to 9999")
    return found


def time_of_day(value: Any, *, per_second: int) -> int:
    """A time of day in parts of a second; a number is taken in these parts already."""
    if isinstance(value, str):
        match = TIME.fullmatch(value)
        try:
            value = (time.fromisoformat(match[1]), match[2]) if match else None
        except ValueError:
            value = None
        if value is None:
            raise Unfit("no time, such as 23:59:59.000000")
        moment, fraction = value
        found = _seconds(moment) * per_second + _parts(fraction, per_second)
    elif isinstance(value, time):
        if value.tzinfo is not None:
            raise Unfit("a time with a zone")
        found = _seconds(value) * per_second + _parts(f".{value.microsecond:06d}", per_second)
    else:
        found = whole(value)
    if found not in range(DAY_S * per_second):
        raise Unfit("no time that a day has")
    return found


def moment(value: Any, *, per_second: int, zoned: bool) -> int:
    """A moment in parts of a second since 1970; a number is taken in these parts already.

    Zoned, it needs an offset from UTC; else it must have none.
    """
    if isinstance(value, str):
        found = _written_moment(value, per_second=per_second, zoned=zoned)
    elif isinstance(value, datetime):
        if (value.tzinfo is not None) != zoned:
            raise Unfit("no offset from UTC" if zoned else "an offset from UTC")
        bare = value.astimezone(UTC).replace(tzinfo=None) if zoned else value
        since = bare - EPOCH
        seconds = since.days * DAY_S + since.seconds
        found = seconds * per_second + _parts(f".{since.microseconds:06d}", per_second)
    elif isinstance(value, date):
        raise Unfit("a date, not a moment")
    else:
        found = whole(value)
    if found // per_second not in SECONDS:
        raise Unfit("outside the years 1 to 9999")
    return found


def _written_moment(value: str, *, per_second: int, zoned: bool) -> int:
    match = MOMENT.fullmatch(value)
    try:
        if not match or bool(match[4]) != zoned:
            raise Unfit("no offset from UTC" if match and zoned else "no moment, as ISO 8601 writes it")
        since = datetime.fromisoformat(f"{match[1]}T{match[2]}") - EPOCH - _offset(match[4])
    except ValueError as error:
        raise error if isinstance(error, Unfit) else Unfit("no moment, as ISO 8601 writes it") from None
    return (since.days * DAY_S + since.seconds) * per_second + _parts(match[3], per_second)


def _offset(written: str) -> timedelta:
    if written in ("", "Z", "z"):
        return timedelta()
    match = OFFSET.fullmatch(written)
    if not match:
        raise Unfit("an offset from UTC that ISO 8601 does not have")
    sign = -1 if match[1].startswith("-") else 1
    return timedelta(hours=int(match[1]), minutes=sign * int(match[2] or 0))


def _seconds(moment: time) -> int:
    return moment.hour * 3600 + moment.minute * 60 + moment.second


def _parts(fraction: str | None, per_second: int) -> int:
    """A written fraction of a second, whole; digits that would be cut are refused."""
    nanos = int((fraction or ".0")[1:].ljust(9, "0"))
    found, rest = divmod(nanos * per_second, 1_000_000_000)
    if rest:
        raise Unfit(f"finer than 1/{per_second:,} of a second")
    return found


def nested(value: Any) -> Any:
    """What is nested, as Python's own lists and dicts; a text is JSON."""
    if isinstance(value, str):
        try:
            return parse_json(value)
        except (ValueError, RecursionError):
            raise Unfit("no JSON") from None
    return value
