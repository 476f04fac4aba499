"""JSON records to rows: each is validated against the schema it was written with, then read into the columns.

This runs in Spark's Python workers, which have pyarrow and the validator but none of our code: this module, and what
it uses of `headrace.json_text`, travels there by value.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.json_text import canonical, decoder

Shape = Any
"""The name of a type; or `list` or `map` with the shape of what it holds, or `struct` with shapes by name."""

Read = Callable[[Any], Any]
UUID = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
LONG = range(-(2**63), 2**63)
DIGITS = 18
"""The largest power of ten in that range."""
INVALID, UNDECODABLE = "invalid", "undecodable"


def rows(
    ids: Iterable[int | None],
    texts: Iterable[bytes | None],
    *,
    writers: Mapping[int, str],
    shape: Shape,
    shapes: Mapping[int, Shape] | None = None,
) -> Any:
    """The row of each text, or its fault; neither where there is no text or its schema is not known.

    `shapes` say what to read of the records of each writer, where that is not all of `shape`.
    """
    validators = {id_: _validator(schema) for id_, schema in writers.items()}
    readers = {id_: _nullable(reader((shapes or {}).get(id_, shape))) for id_ in writers}
    parsed, nothing = decoder(), (None, None)
    judged = [
        _row(text, parsed, validators[id_], readers[id_]) if text is not None and id_ in validators else nothing
        for id_, text in zip(ids, texts, strict=True)
    ]
    faults = pa.array([fault for fault, _ in judged], pa.string())
    return pa.StructArray.from_arrays(
        [faults, pa.array([row for _, row in judged], arrow_type(shape))], names=["fault", "row"]
    )


def _validator(schema: str) -> Callable[[Any], bool]:
    import jsonschema_rs

    validator = jsonschema_rs.validator_for(json.loads(schema), validate_formats=True, offline=True)
    return validator.is_valid


def _row(text: bytes, parsed: Read, is_valid: Callable[[Any], bool], read: Read) -> tuple[str | None, Any]:
    try:
        value = parsed(text.decode())
        valid = is_valid(value)
    except (ValueError, ArithmeticError, RecursionError):  # no JSON, an exponent or brackets without end
        return UNDECODABLE, None
    try:
        return (None, read(value)) if valid else (INVALID, None)
    except (ValueError, ArithmeticError, RecursionError):  # fits the schema but no column: a number out of range
        return INVALID, None


def reader(shape: Shape) -> Read:
    """A function that reads values of a shape, and raises ValueError for what does not fit."""
    if isinstance(shape, str):
        return SCALARS[shape][0]
    kind, held = shape
    if kind == "struct":
        members = {name: _nullable(reader(each)) for name, each in held.items()}
        return lambda value: _members(value, members)
    inner = _nullable(reader(held))
    if kind == "list":
        return lambda value: [inner(each) for each in _of(list, value)]
    return lambda value: [(_text(name), inner(each)) for name, each in _of(dict, value).items()]


def narrowed(whole: Shape, now: Shape, version: Shape) -> Shape:
    """What is read of a version's records: all that the feed has now, and what else their own version has.

    A name that no version knows any longer may stand for anything in later records.
    """
    if isinstance(whole, str) or isinstance(version, str) or version[0] != whole[0]:
        return whole
    kind, held = whole
    current = now[1] if not isinstance(now, str) and now[0] == kind else {} if kind == "struct" else "json"
    if kind != "struct":
        return kind, narrowed(held, current, version[1])
    kept = {name: each for name, each in held.items() if name in current or name in version[1]}
    return kind, {
        name: narrowed(each, current.get(name, each), version[1][name]) if name in version[1] else each
        for name, each in kept.items()
    }


def _nullable(read: Read) -> Read:
    return lambda value: None if value is None else read(value)


def _members(value: Any, members: Mapping[str, Read]) -> dict[str, Any]:
    found = _of(dict, value)
    return {name: read(found.get(name)) for name, read in members.items()}


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{kind.__name__} expected, {type(value).__name__} found")
    return value


def _boolean(value: Any) -> Any:
    return _of(bool, value)


def _long(value: Any) -> int:
    """A whole number, also one written as 1.0."""
    if type(value) is Decimal and value and value.adjusted() > DIGITS:  # to write it out may take hours
        raise ValueError("more than 64 bits")
    whole = int(value) if type(value) is Decimal and value == value.to_integral_value() else _of(int, value)
    if whole not in LONG:
        raise ValueError("more than 64 bits")
    return whole


def _double(value: Any) -> float:
    number = float(value if type(value) is Decimal else _of(int, value))
    if number in (float("inf"), float("-inf")):
        raise ValueError("larger than any double")
    return number


def _text(value: Any) -> str:
    text: str = _of(str, value)
    if not text.isascii():
        text.encode()  # half a character is no text
    return text


def _uuid(value: Any) -> str:
    if not UUID.fullmatch(_of(str, value)):
        raise ValueError("not a uuid")
    return str(value).lower()


def _date(value: Any) -> date:
    return date.fromisoformat(_of(str, value))


def _moment(value: Any) -> datetime:
    """A moment in UTC; digits beyond microseconds are cut."""
    moment = datetime.fromisoformat(_of(str, value).upper())
    if moment.tzinfo is None:
        raise ValueError("no offset from UTC")
    return moment.astimezone(UTC)


def _json(value: Any) -> str:
    text = canonical(value)
    if "\\u0000" in text and _holds_nul(value):
        raise ValueError("a NUL, which no warehouse takes")
    return _text(text)


def _holds_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_nul, value)) or any(map(_holds_nul, value.values()))
    return any(map(_holds_nul, value)) if isinstance(value, list) else isinstance(value, str) and "\0" in value


SCALARS: dict[str, tuple[Read, pa.DataType]] = {
    "boolean": (_boolean, pa.bool_()),
    "long": (_long, pa.int64()),
    "double": (_double, pa.float64()),
    "string": (_text, pa.string()),
    "uuid": (_uuid, pa.string()),
    "date": (_date, pa.date32()),
    "timestamptz": (_moment, pa.timestamp("us", "UTC")),
    "json": (_json, pa.string()),
}


def arrow_type(shape: Shape) -> pa.DataType:
    if isinstance(shape, str):
        return SCALARS[shape][1]
    kind, held = shape
    if kind == "struct":
        return pa.struct([pa.field(name, arrow_type(each)) for name, each in held.items()])
    return pa.list_(arrow_type(held)) if kind == "list" else pa.map_(pa.string(), arrow_type(held))
