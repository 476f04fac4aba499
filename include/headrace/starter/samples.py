"""Sample records: JSON objects, one after another or in a list, and the types that hold every one of them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from headrace.errors import FeedError
from headrace.feed import FIELD, NAMED, SYSTEM_COLUMNS
from headrace.starter import guessing, personal
from headrace.starter.draft import Draft, Guess, Said, declaration, personal_paths, remarks
from headrace.starter.types import Choice, ListOf, MapOf, Member, Simple, Struct, Type

Record = Mapping[str, Any]
OTHERS = {
    "boolean": "true or false",
    "integer": "a number",
    "number": "a number",
    "string": "a text",
    "array": "a list",
}

LONGS = range(-(2**63), 2**63)
# In milliseconds: an integer between the years 2000 and 2100 in a field that is named like a time is one.
EPOCH_MS = range(946_684_800_000, 4_102_444_800_000)
MOMENT = re.compile(r"(?:.*_)?(?:at|ts|time|timestamp|date)|.*(?:At|Ts|Time|Timestamp|Date)")
NUMBER = re.compile(r"-?[0-9]+\.[0-9]+")
KEYS = (Simple("string"), Simple("uuid"), Simple("long"), Simple("date"))
"""The types that a key may have: exact, and no wall clock."""

MANY = 100
"""An object with more names than this is no record but a map from some id to its value."""

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# As RFC 3339 writes it, with no more digits than a clean table keeps.
TIMESTAMP = re.compile(DATE.pattern + r"T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})")


def draft(name: str, objects: Sequence[Record], said: Said) -> Draft:
    """A feed whose schema takes every one of these records."""
    fields = [field for field in members(objects) if field.name.lower() not in SYSTEM_COLUMNS]
    names = [field.name for field in fields]
    if not names:
        raise FeedError(f"the records: no field in them could be a column: a name has {NAMED}.")
    exact = [field for field in fields if field.type in KEYS]
    certain = [field.name for field in exact if field.certain]
    different = guessing.different(objects)
    order = guessing.known(said.order, names, option="--order") or _order(fields)
    key = guessing.known(said.key, names, option="--key") or _key(name, fields, different, order=order)
    if not key:
        raise guessing.keyless(name, certain or [field.name for field in exact])
    guesses = [
        *([] if said.key else [Guess("key", _how_sure(key, different, order=order))]),
        *([] if said.order or not order else [Guess("order", f"{order[0]}: it is named like a count of versions")]),
        *_notes(fields, objects),
        *remarks(said, order=order, personal=list(personal_paths(fields))),
    ]
    doc = f"{name}: one sentence that says what a record is."
    is_whole = {field for each in objects for field in each} == set(names)
    return Draft(name, doc, fields, declaration(said, key=key, order=order), guesses, is_whole)


def _order(fields: Sequence[Member]) -> list[str]:
    found = guessing.order(field.name for field in fields if field.certain and field.type == Simple("long"))
    return [found] if found else []


def _key(feed: str, fields: Sequence[Member], objects: Sequence[Record], *, order: Sequence[str]) -> list[str]:
    """An id that tells the records apart, alone or together with the order; else any field that does; else any id."""
    fit = [field.name for field in fields if field.certain and field.type in KEYS and field.name not in order]
    apart = [name for name in fit if guessing.tells_apart([name], objects)]
    apart_in_order = [name for name in fit if order and guessing.tells_apart([name, *order], objects)]
    found = (
        guessing.key(apart, feed=feed)
        or guessing.key(apart_in_order, feed=feed)
        or next(iter(apart), None)
        or guessing.key(fit, feed=feed)
        or next(iter(fit), None)
    )
    return [found] if found else []


def _how_sure(key: Sequence[str], objects: Sequence[Record], *, order: Sequence[str]) -> str:
    told = ", ".join(key)
    if guessing.tells_apart(key, objects):
        return f"{told}: no two different records share it ({len(objects)} seen)"
    if order and guessing.tells_apart([*key, *order], objects):
        return f"{told}: with {order[0]} it tells every version apart ({len(objects)} seen)"
    return f"{told}: different records share it, so they would be versions of one row; is that meant?"


def _notes(fields: Sequence[Member], objects: Sequence[Record]) -> Iterator[Guess]:
    names = list(dict.fromkeys(name for each in objects for name in each))
    for name in names:
        if name in no_columns(names):
            yield Guess(name, "left out: " + left_out(name))
    for field in fields:
        values = [each[field.name] for each in objects if each.get(field.name) is not None]
        strings = [value for value in values if isinstance(value, str)]
        if not values:
            yield Guess(field.name, "a text: it was always null or missing")
        elif isinstance(field.type, Choice):
            yield Guess(field.name, "of several types: is that meant?")
        elif field.type == Simple("timestamp-millis"):
            yield Guess(
                field.name, "milliseconds since 1970, it seems: a timestamp in Avro, a whole number in JSON Schema"
            )
        elif field.type == Simple("string") and all(NUMBER.fullmatch(value) for value in strings):
            yield Guess(field.name, "a text that holds numbers: in Avro, amounts are best declared as a decimal")
        elif field.type == Simple("string") and len(strings) >= 20 and len(set(strings)) <= 8:
            yield Guess(field.name, f"a text of {len(set(strings))} different values: an enum would check them")
        elif field.type == Simple("double") and any(isinstance(value, int) for value in values):
            yield Guess(field.name, "a double: whole numbers above 2^53 lose digits in it")


def records(text: str) -> list[Record]:
    """The records of a text: JSON objects after one another, each on a line or not, or a list of them."""
    found: list[Any] = []
    decoder, place = json.JSONDecoder(parse_constant=_refuse), 0
    try:
        while match := re.compile(r"\s*(?=\S)").match(text, place):
            value, place = decoder.raw_decode(text, match.end())
            found += value if isinstance(value, list) else [value]
    except json.JSONDecodeError as error:
        raise FeedError(f"the records: line {error.lineno}, column {error.colno}: not JSON: {error.msg}.") from error
    except RecursionError:
        raise FeedError("the records: one is nested too deeply to be read.") from None
    if not found:
        raise FeedError("the records: there are none. Give JSON objects, one per line, or a list of them.")
    for number, each in enumerate(found, start=1):
        if not isinstance(each, dict):
            raise FeedError(f"the records: number {number} is no JSON object but {OTHERS.get(_kind(each), 'null')}.")
    return found


def _refuse(constant: str) -> None:
    raise FeedError(f"the records: {constant} is not JSON. Write a number or null.")


def members(objects: Sequence[Record]) -> list[Member]:
    """A field for every name in the objects that a table can call a column, in the order in which they first come."""
    names = list(dict.fromkeys(name for each in objects for name in each))
    return [_member(name, objects) for name in names if name not in unnameable(names)]


def unnameable(names: Sequence[str]) -> set[str]:
    """The names that cannot be columns, or differ from an earlier one only in capitals."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(name.lower(), name)
    return {name for name in names if not FIELD.fullmatch(name) or first[name.lower()] != name}


def no_columns(names: Sequence[str]) -> set[str]:
    """The names that are fit inside a column at most."""
    return unnameable(names) | {name for name in names if name.lower() in SYSTEM_COLUMNS}


def left_out(name: str) -> str:
    """Why a name that cannot be a column's cannot."""
    if not FIELD.fullmatch(name):
        return f"a name has {NAMED}"
    if name.lower() in SYSTEM_COLUMNS:
        return "databases give every table a column of that name"
    return "another name differs from it only in capitals"


def _member(name: str, objects: Sequence[Record]) -> Member:
    values = [each[name] for each in objects if name in each]
    present = [value for value in values if value is not None]
    type_ = _typed(name, present)
    return Member(
        name,
        type_,
        optional=len(values) < len(objects),
        nullable=len(present) < len(values),
        pii=None if type_ == Simple("boolean") or isinstance(type_, Struct) else personal.kind(name, texts(present)),
    )


def texts(values: Sequence[Any]) -> Iterator[str]:
    """The texts among the values, those in lists too."""
    for value in values:
        yield from texts(value) if isinstance(value, list) else [value] if isinstance(value, str) else []


def _typed(name: str, values: Sequence[Any]) -> Type:
    """The type that holds all of these values; they are not null. Without any, a text is as good a guess as another."""
    by_kind = {kind: [value for value in values if _kind(value) == kind] for kind in dict.fromkeys(map(_kind, values))}
    if by_kind.keys() == {"integer", "number"}:
        return Simple("double")
    types = [_of_kind(kind, name, several) for kind, several in by_kind.items()]
    if not types:
        return Simple("string")
    return types[0] if len(types) == 1 else _choice(types)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _of_kind(kind: str, name: str, values: Sequence[Any]) -> Type:
    match kind:
        case "boolean":
            return Simple("boolean")
        case "integer":
            return _integer(name, values)
        case "number":
            return Simple("double")
        case "string":
            return _text(values)
        case "array":
            items = [item for value in values for item in value]
            return ListOf(_typed(name, [item for item in items if item is not None]), nullable=None in items)
    return _object(name, values)


def _integer(name: str, values: Sequence[int]) -> Type:
    if not all(value in LONGS for value in values):
        return Simple("double")
    is_moment = MOMENT.fullmatch(name) and all(value in EPOCH_MS for value in values)
    return Simple("timestamp-millis" if is_moment else "long")


def _text(values: Sequence[str]) -> Type:
    if all(UUID.fullmatch(value) for value in values):
        return Simple("uuid")
    if all(DATE.fullmatch(value) and _is_date(value) for value in values):
        return Simple("date")
    if all(TIMESTAMP.fullmatch(value) and _is_timestamp(value) for value in values):
        return Simple("timestamp")
    return Simple("string")


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_timestamp(text: str) -> bool:
    try:
        return bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _object(name: str, values: Sequence[Record]) -> Type:
    names = list(dict.fromkeys(each for value in values for each in value))
    if names and len(names) <= MANY and not unnameable(names):
        return Struct(tuple(members(values)))
    inner = [each for value in values for each in value.values()]
    return MapOf(_typed(name, [each for each in inner if each is not None]), nullable=None in inner)


def _choice(types: Sequence[Type]) -> Type:
    """Several types side by side; in a mixture a text is only a text, and a number any number."""
    plain = [Simple(_plain(each)) if isinstance(each, Simple) else each for each in types]
    if Simple("double") in plain:
        plain = [each for each in plain if each != Simple("long")]
    several = tuple(dict.fromkeys(plain))
    return several[0] if len(several) == 1 else Choice(several)


def _plain(simple: Simple) -> Any:
    match simple.kind:
        case "uuid" | "date" | "timestamp":
            return "string"
        case "timestamp-millis":
            return "long"
    return simple.kind
