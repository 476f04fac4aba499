"""An Avro schema as text: read from JSON, and written in the one form that Confluent's registry gives and compares."""

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from math import isinf, isnan
from typing import Any

from headrace.registry.avro.types import (
    PRIMITIVES,
    Array,
    ByName,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Schema,
    Type,
    Union,
    namespace_of,
    simple_name,
)
from headrace.registry.schema import InvalidSchema

# As Jackson escapes, which Avro's Java library writes with.
_ESCAPES = {code: f"\\u{code:04X}" for code in range(32)} | {
    ord(plain): escaped
    for plain, escaped in {
        '"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r",
    }.items()
}  # fmt: skip
_KEYWORDS = frozenset({*PRIMITIVES, "record", "enum", "fixed", "array", "map", "union"})
# What is never closed goes to the end, so that it is looked through only once.
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|/\*.*?(?:\*/|\Z)|//[^\n]*', re.DOTALL)


def load(text: str) -> Any:
    """The text's JSON; comments are allowed, as Avro's own parser allows them."""
    bare = _STRING_OR_COMMENT.sub(_without_comment, text)
    try:
        node = json.loads(bare, parse_constant=_refuse_constant)
        # Half a surrogate pair can be escaped in JSON, and then be neither stored nor told.
        json.dumps(node, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise InvalidSchema("half a surrogate pair stands in it, which is no character") from error
    except ValueError as error:
        raise InvalidSchema(f"not JSON: {error}") from error
    return node


def _without_comment(found: re.Match[str]) -> str:
    text = found[0]
    if text.startswith('"') or (text.startswith("/*") and not (text.endswith("*/") and len(text) > 3)):
        return text
    # Of the same shape, so that a later error still tells the right line and column.
    return re.sub(r"[^\n]", " ", text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def render(schema: Schema, known: Iterable[str] = ()) -> str:
    """The schema in the order and spacing of Avro's Java library; known names are not written out."""
    return _json(_type(schema, schema.root, namespace=None, written=set(known)))


def _type(schema: Schema, type_: Type, *, namespace: str | None, written: set[str]) -> Any:
    match type_:
        case ByName(name) if name in written:
            return _qualified(name, namespace)
        case ByName(name):
            written.add(name)
            return _named(schema, schema.named[name], namespace=namespace, written=written)
        case Primitive(kind, props):
            return {"type": kind.value, **props} if props else kind.value
        case Array(items, props):
            return {"type": "array", "items": _type(schema, items, namespace=namespace, written=written), **props}
        case Map(values, props):
            return {"type": "map", "values": _type(schema, values, namespace=namespace, written=written), **props}
        case Union(branches):
            return [_type(schema, branch, namespace=namespace, written=written) for branch in branches]


def _named(schema: Schema, named: Named, *, namespace: str | None, written: set[str]) -> dict[str, Any]:
    own = namespace_of(named.name)
    is_error = isinstance(named, Record) and named.error
    told: dict[str, Any] = {"type": "error" if is_error else named.kind.value, "name": simple_name(named.name)}
    if own != namespace:
        told["namespace"] = own or ""
    if named.doc is not None:
        told["doc"] = named.doc
    match named:
        case Record(fields=fields):
            told["fields"] = [_field(schema, field, namespace=own, written=written) for field in fields]
        case Enum(symbols=symbols, default=default):
            told["symbols"] = list(symbols)
            told |= {} if default is None else {"default": default}
        case Fixed(size=size):
            told["size"] = size
    told |= named.props
    if named.aliases:
        told["aliases"] = [_qualified(alias, own) for alias in named.aliases]
    return told


def _field(schema: Schema, field: Field, *, namespace: str | None, written: set[str]) -> dict[str, Any]:
    told = {"name": field.name, "type": _type(schema, field.type, namespace=namespace, written=written)}
    if field.doc is not None:
        told["doc"] = field.doc
    if field.default is not None:
        told["default"] = field.default.value
    if field.order != "ascending":
        told["order"] = field.order
    if field.aliases:
        told["aliases"] = list(field.aliases)
    return {**told, **field.props}


def _qualified(full: str, namespace: str | None) -> str:
    name = simple_name(full)
    return name if namespace_of(full) == namespace and name not in _KEYWORDS else full


def _json(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case int():
            return str(value)
        case float():
            return _float(value)
        case dict():
            return "{" + ",".join(f"{_json(key)}:{_json(inner)}" for key, inner in value.items()) + "}"
        case _:
            return "[" + ",".join(map(_json, value)) + "]"


def _float(value: float) -> str:
    """As Java writes a double: always with a point, and with E from ten millions up and below a thousandth."""
    if isnan(value) or isinf(value):
        return '"NaN"' if isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, exponent = f"{Decimal(repr(value)).normalize():E}".split("E")
    return f"{digits}{'' if '.' in digits else '.0'}E{int(exponent)}"
