"""Avro fields as targets: values as fastavro writes them without logical types, which cost it a call for each value."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Any

from headrace.columns.avro import logical, member_name, members, values, widened
from headrace.columns.avro_names import resolved, separate
from headrace.feed import Feed
from headrace.history import scalars
from headrace.history.avro_key import key_form, sorting
from headrace.history.scalars import INT, PER_SECOND, Read, Unfit
from headrace.history.shortcut import avro_shortcut
from headrace.history.target import Target

Type = Mapping[str, Any]

NATIVE: Mapping[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": (float, Decimal),
    "bytes": bytes,
    "fixed": bytes,
    "string": str,
    "enum": str,
    "array": list,
    "map": dict,
    "record": dict,
    "error": dict,
}


def targets(feed: Feed) -> list[Target]:
    """The feed's fields, in the order of its schema."""
    personal = {field.name: field.pii for field in feed.fields}
    return [_target(field, personal.get(field["name"])) for field in _fields(feed)]


def wire_schema(feed: Feed) -> dict[str, Any]:
    """The feed's schema without logical types and references: the same bytes, written faster."""
    fields = [{"name": field["name"], "type": plain(field["type"])} for field in _fields(feed)]
    return {"type": "record", "name": "Row", "fields": fields}


def _fields(feed: Feed) -> list[dict[str, Any]]:
    """The fields, each type standing alone and each definition under a name of its own."""
    numbers = count()
    return [{**field, "type": separate(field["type"], numbers)} for field in resolved(feed.schema, [])["fields"]]


def plain(type_: Any) -> Any:
    """A resolved type without its logical types and defaults: values are read by the one and filled in by the other."""
    if isinstance(type_, list):
        return [plain(member) for member in type_]
    bare = {name: value for name, value in type_.items() if name not in ("logicalType", "precision", "scale")}
    for part in ("items", "values"):
        if part in bare:
            bare[part] = plain(bare[part])
    if "fields" in bare:
        bare["fields"] = [{"name": field["name"], "type": plain(field["type"])} for field in bare["fields"]]
    return bare


def _defaults(fields: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {field["name"]: _default(field["type"], field["default"]) for field in fields if "default" in field}


def _default(type_: Any, value: Any) -> Any:
    """A default as it is written: that of a union is of its first type, and bytes stand in JSON as a text."""
    if isinstance(type_, list):
        first = _default(type_[0], value)
        return first if len(values(type_)) < 2 or first is None else _tagged(type_[0], first)
    match type_["type"]:
        case "bytes" | "fixed":
            return value.encode("iso-8859-1")
        case "array":
            return [_default(type_["items"], each) for each in value]
        case "map":
            return {name: _default(type_["values"], each) for name, each in value.items()}
        case "record" | "error":
            given = ({**field, "default": value.get(field["name"], field.get("default"))} for field in type_["fields"])
            return _defaults(given)
    return value


def _target(field: Mapping[str, Any], pii: str | None) -> Target:
    type_, chosen = field["type"], values(field["type"])
    alone = chosen[0] if len(chosen) == 1 else None
    sorts, sort = sorting(alone)
    return Target(
        field["name"],
        told=_told(type_),
        nullable=_nullable(type_),
        read=reader(type_),
        shortcut=partial(avro_shortcut, alone) if alone else lambda _: None,
        pii=pii,
        is_optional="default" in field or _nullable(type_),
        default=_defaults([field]).get(field["name"]),
        is_json=bool(chosen) and not widened(type_) and (alone is None or alone["type"] in NESTED),
        key=key_form(alone),
        sorts=sorts,
        sort=sort,
    )


NESTED = ("record", "error", "array", "map")


def _told(type_: Any) -> str:
    chosen = values(type_)
    names = " or ".join(logical(each) or str(each["type"]) for each in chosen)
    return f"{names or 'null'}{' or null' if chosen and _nullable(type_) else ''}"


def _nullable(type_: Any) -> bool:
    return any(member["type"] == "null" for member in members(type_))


def reader(type_: Any) -> Read:
    """Reads values that are not null."""
    if isinstance(type_, list):
        chosen = values(type_)
        if wide := widened(type_):
            return scalars.whole if str(wide) == "long" else scalars.double
        return reader(chosen[0]) if len(chosen) == 1 else partial(_chosen, choices=_choices(chosen))
    if (name := logical(type_)) is not None:
        return _logical(name, type_)
    match type_["type"]:
        case "null":
            return _nothing
        case "fixed":
            return partial(_fixed, size=type_["size"])
        case "enum":
            return partial(_symbol, symbols=frozenset(type_["symbols"]))
        case "array":
            return partial(_list, element=_member(type_["items"]))
        case "map":
            return partial(_map, held=_member(type_["values"]))
        case "record" | "error":
            fields = {field["name"]: _member(field["type"]) for field in type_["fields"]}
            return partial(_record, fields=fields, defaults=_defaults(type_["fields"]))
    return PRIMITIVES[type_["type"]]


PRIMITIVES: Mapping[str, Read] = {
    "boolean": scalars.boolean,
    "int": partial(scalars.whole, bounds=INT),
    "long": scalars.whole,
    "float": scalars.single,
    "double": scalars.double,
    "bytes": scalars.octets,
    "string": scalars.text,
}


def _logical(name: str, type_: Type) -> Read:
    match name.rpartition("-"):
        case _, _, "decimal":
            size = type_["size"] if type_["type"] == "fixed" else None
            return partial(_decimal, precision=type_["precision"], scale=type_.get("scale", 0), size=size)
        case _, _, "uuid":
            return (
                scalars.uuid
                if type_["type"] == "string"
                else lambda value: bytes.fromhex(scalars.uuid(value).replace("-", ""))
            )
        case _, _, "duration":
            return partial(_fixed, size=12)
        case _, _, "date":
            return scalars.days
        case "time", _, unit:
            return partial(scalars.time_of_day, per_second=PER_SECOND[unit])
        case "timestamp", _, unit:
            return partial(scalars.moment, per_second=PER_SECOND[unit], zoned=True)
        case "local-timestamp", _, unit:
            return partial(scalars.moment, per_second=PER_SECOND[unit], zoned=False)
    raise AssertionError(f"{name} is a logical type of columns.avro")


def _member(type_: Any) -> Read:
    """Reads what is inside something nested, null too."""
    read, nullable = reader(type_), _nullable(type_)

    def member(value: Any) -> Any:
        if value is None:
            if nullable:
                return None
            raise Unfit("null inside, where the schema has none")
        return read(value)

    return member


def _nothing(value: Any) -> None:
    raise Unfit("a value where the schema has only null")


def _fixed(value: Any, *, size: int) -> bytes:
    found = scalars.octets(value)
    if len(found) != size:
        raise Unfit(f"not {size} bytes")
    return found


def _symbol(value: Any, *, symbols: frozenset[str]) -> str:
    if value not in symbols:
        raise Unfit("none of the enum's symbols")
    return str(value)


def _decimal(value: Any, *, precision: int, scale: int, size: int | None) -> bytes:
    return scalars.signed(scalars.unscaled(value, precision=precision, scale=scale), size=size)


def _list(value: Any, *, element: Read) -> list[Any]:
    found = scalars.nested(value)
    if not isinstance(found, list | tuple):
        raise Unfit("no list")
    return [element(each) for each in found]


def _map(value: Any, *, held: Read) -> dict[str, Any]:
    found = scalars.nested(value)
    pairs = found.items() if isinstance(found, dict) else found
    if not isinstance(found, dict | list):
        raise Unfit("no object")
    made = {scalars.text(name): held(each) for name, each in pairs}
    if len(made) != len(found):
        raise Unfit("a name twice in one map")
    return made


def _record(value: Any, *, fields: Mapping[str, Read], defaults: Mapping[str, Any]) -> dict[str, Any]:
    found = scalars.nested(value)
    if not isinstance(found, dict):
        raise Unfit("no object")
    if not found.keys() <= fields.keys():
        raise Unfit("a member that the schema lacks")
    return {
        name: defaults[name] if name not in found and name in defaults else read(found.get(name))
        for name, read in fields.items()
    }


def _choices(chosen: list[Type]) -> dict[str, tuple[Type, Read]]:
    return {member_name(member): (member, reader(member)) for member in chosen}


def _chosen(value: Any, *, choices: Mapping[str, tuple[Type, Read]]) -> Any:
    """A value of one of several types: named as in Avro's JSON, or of a Python type that only one of them has."""
    if isinstance(value, dict):
        named = {name: each for name, each in value.items() if each is not None}
        if len(named) == 1 and (name := next(iter(named))) in choices:
            member, read = choices[name]
            return _tagged(member, read(named[name]))
    fitting = [(member, read) for member, read in choices.values() if _is_native(value, NATIVE.get(member["type"], ()))]
    if len(fitting) != 1:
        raise Unfit('of no one type of several; name it as Avro\'s JSON does: {"string": …}')
    member, read = fitting[0]
    return _tagged(member, read(value))


def _is_native(value: Any, native: type | tuple[type, ...]) -> bool:
    return isinstance(value, native) and (not isinstance(value, bool) or native is bool)


def _tagged(member: Type, value: Any) -> Any:
    """Told to fastavro by the type's name, so that it does not guess again."""
    return (f"{member['namespace']}.{member['name']}" if "name" in member else member["type"]), value
