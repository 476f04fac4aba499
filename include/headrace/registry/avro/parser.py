"""From Avro's JSON text to its types; whatever is wrong is refused with its place."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.fault import nearest
from headrace.registry.avro.defaults import misfit
from headrace.registry.avro.text import load
from headrace.registry.avro.types import (
    PRIMITIVES,
    Array,
    ByName,
    Default,
    Enum,
    Field,
    Fixed,
    Kind,
    Map,
    Named,
    Primitive,
    Props,
    Record,
    Schema,
    Type,
    Union,
    full_name,
    namespace_of,
    simple_name,
)
from headrace.registry.schema import InvalidSchema

_OF_TYPES = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"},
)
_OF_FIELDS = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS = frozenset({"ascending", "descending", "ignore"})
_LARGEST_FIXED = 2**31 - 9


@dataclass(frozen=True)
class Rules:
    """How strictly names and defaults are taken."""

    name: re.Pattern[str]
    namespaces: bool
    defaults: bool


NEW = Rules(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), namespaces=True, defaults=True)
"""For what is to be registered."""
KNOWN = Rules(re.compile(r"[^\W\d]\w*"), namespaces=False, defaults=False)
"""For what is registered already, here or elsewhere: other registries have let more pass."""


class Parser:
    """Reads texts one after another; each may use the names that those before it defined."""

    def __init__(self) -> None:
        self._named: dict[str, Named] = {}

    def parse(self, text: str, rules: Rules) -> Schema:
        reading = _Reading(rules, self._named)
        root = reading.type(load(text), namespace=None, at="")
        schema = Schema(root, dict(self._named))
        reading.finish(schema)
        return schema


class _Reading:
    """One text on its way to types."""

    def __init__(self, rules: Rules, named: dict[str, Named]) -> None:
        self._rules = rules
        self._named = named
        self._open: set[str] = set()
        self._uses: list[tuple[str, str, str]] = []
        self._defaults: list[tuple[Field, str]] = []
        self._objects: Mapping[str, Callable[[dict[str, Any], str | None, str], Type]] = {
            "record": self._record,
            "error": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }

    def type(self, node: Any, *, namespace: str | None, at: str) -> Type:
        match node:
            case str():
                return self._use(node, namespace, at)
            case list():
                return self._union(node, namespace, at)
            case {"type": str(kind)} if kind in PRIMITIVES:
                return Primitive(PRIMITIVES[kind], _props(node, _OF_TYPES))
            case {"type": str(kind)} if kind in self._objects:
                return self._objects[kind](node, namespace, at)
            case {"type": str(name)}:
                return self._use(name, namespace, f"{at}/type")
            case {"type": _}:
                raise _refused(at, 'its "type" is no name. Write the inner type itself, without the object around it.')
            case dict():
                raise _refused(at, 'it has no "type".')
            case _:
                raise _refused(at, f"{_shown(node)} is no type: a type is a name, an object or a list.")

    def finish(self, schema: Schema) -> None:
        """What can be judged only when every type is known, for a name may be used before it is defined."""
        for word, full, at in self._uses:
            if full not in schema.named:
                hint = nearest(word, [*PRIMITIVES, *schema.named])
                raise _refused(at, f'"{word}" is no type here. {hint} What another schema defines needs a reference.')
        for field, at in self._defaults:
            if field.default and (why := misfit(schema, field.type, value=field.default.value)):
                raise _refused(at, f'the default of "{field.name}" does not fit its type: {why}.')

    def _use(self, word: str, namespace: str | None, at: str) -> Type:
        if word in PRIMITIVES:
            return Primitive(PRIMITIVES[word])
        full = full_name(word, namespace)
        # A name without a dot may also be one without a namespace.
        if full not in self._named and full not in self._open and word in self._named:
            return ByName(word)
        self._uses.append((word, full, at))
        return ByName(full)

    def _union(self, nodes: list[Any], namespace: str | None, at: str) -> Type:
        branches = [self.type(node, namespace=namespace, at=f"{at}/{index}") for index, node in enumerate(nodes)]
        if not branches:
            raise _refused(at, "the union is empty: no value could ever be written.")
        met: set[str] = set()
        for index, branch in enumerate(branches):
            if isinstance(branch, Union):
                raise _refused(f"{at}/{index}", "a union stands right inside a union. List its branches there.")
            key = branch.name if isinstance(branch, ByName) else branch.kind
            if key in met:
                raise _refused(f"{at}/{index}", f'the union has "{key}" twice.')
            met.add(key)
        return Union(tuple(branches))

    def _record(self, node: dict[str, Any], namespace: str | None, at: str) -> Type:
        name, nodes = self._open_name(node, namespace, at), node.get("fields")
        if not isinstance(nodes, list):
            raise _refused(at, f'the record {name} has no list of "fields".')
        fields: dict[str, Field] = {}
        for index, inner in enumerate(nodes):
            field = self._field(inner, namespace_of(name), f"{at}/fields/{index}")
            if field.name in fields:
                raise _refused(f"{at}/fields/{index}", f'the record {name} has the field "{field.name}" twice.')
            fields[field.name] = field
        is_error = node["type"] == "error"
        return self._define(Record(name, tuple(fields.values()), is_error, **self._described(node, name, at)), at)

    def _field(self, node: Any, namespace: str | None, at: str) -> Field:
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            raise _refused(at, 'a field is an object with a "name".')
        name = self._checked(node["name"], at)
        if "type" not in node:
            raise _refused(at, f'the field "{name}" has no "type".')
        type_ = self.type(node["type"], namespace=namespace, at=f"{at}/type")
        order = node.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise _refused(f"{at}/order", f"{_shown(order)} is no order: ascending, descending or ignore.")
        default = Default(_number(type_, node["default"], at)) if "default" in node else None
        doc, aliases = _text(node, "doc"), _aliases(node, at)
        field = Field(name, type_, default, order.lower(), doc, aliases, _props(node, _OF_FIELDS))
        if self._rules.defaults:
            self._defaults.append((field, f"{at}/default"))
        return field

    def _enum(self, node: dict[str, Any], namespace: str | None, at: str) -> Type:
        name, nodes = self._open_name(node, namespace, at), node.get("symbols")
        if not isinstance(nodes, list):
            raise _refused(at, f'the enum {name} has no list of "symbols".')
        symbols = tuple(self._checked(symbol, f"{at}/symbols/{index}") for index, symbol in enumerate(nodes))
        if repeated := [symbol for symbol, count in Counter(symbols).items() if count > 1]:
            raise _refused(f"{at}/symbols", f'the enum {name} has "{repeated[0]}" twice.')
        default = _text(node, "default")
        if default is not None and default not in symbols:
            raise _refused(f"{at}/default", f'"{default}" is no symbol of the enum {name}.')
        described = self._described(node, name, at, reserved=_OF_TYPES | {"default"})
        return self._define(Enum(name, symbols, default, **described), at)

    def _fixed(self, node: dict[str, Any], namespace: str | None, at: str) -> Type:
        name, size = self._open_name(node, namespace, at), node.get("size")
        if type(size) is not int or not 0 <= size <= _LARGEST_FIXED:
            raise _refused(f"{at}/size", f"{_shown(size)} is no size of the fixed {name}: a whole number of bytes.")
        return self._define(Fixed(name, size, **self._described(node, name, at)), at)

    def _array(self, node: dict[str, Any], namespace: str | None, at: str) -> Type:
        if "items" not in node:
            raise _refused(at, 'the array has no "items".')
        return Array(self.type(node["items"], namespace=namespace, at=f"{at}/items"), _props(node, _OF_TYPES))

    def _map(self, node: dict[str, Any], namespace: str | None, at: str) -> Type:
        if "values" not in node:
            raise _refused(at, 'the map has no "values".')
        return Map(self.type(node["values"], namespace=namespace, at=f"{at}/values"), _props(node, _OF_TYPES))

    def _open_name(self, node: dict[str, Any], namespace: str | None, at: str) -> str:
        name = _text(node, "name")
        if not name:
            raise _refused(at, f'the {node["type"]} has no "name".')
        own = _text(node, "namespace")
        full = full_name(name, namespace if own is None else own)
        self._checked(simple_name(full), f"{at}/name")
        space = namespace_of(full)
        if space and self._rules.namespaces:
            for part in space.split("."):
                self._checked(part, f"{at}/namespace")
        if full in PRIMITIVES:
            raise _refused(f"{at}/name", f'"{full}" is the name of a primitive type.')
        if full in self._open:
            raise _refused(f"{at}/name", f'"{full}" is defined inside itself.')
        self._open.add(full)
        return full

    def _define(self, named: Named, at: str) -> ByName:
        # The same type may be written out twice, as generators do; two types of one name may not be.
        if self._named.setdefault(named.name, named) != named:
            raise _refused(f"{at}/name", f'"{named.name}" is defined twice, and differently.')
        self._open.discard(named.name)
        return ByName(named.name)

    def _described(
        self, node: dict[str, Any], name: str, at: str, *, reserved: frozenset[str] = _OF_TYPES
    ) -> dict[str, Any]:
        # A leading dot, which no library takes for what it says, stays and so matches no name.
        aliases = tuple(
            alias if alias.startswith(".") else full_name(alias, namespace_of(name)) for alias in _aliases(node, at)
        )
        for alias in aliases:
            self._checked(simple_name(alias), f"{at}/aliases")
        return {"doc": _text(node, "doc"), "aliases": aliases, "props": _props(node, reserved)}

    def _checked(self, name: Any, at: str) -> str:
        if not isinstance(name, str) or not self._rules.name.fullmatch(name):
            raise _refused(at, f"{_shown(name)} is no name: letters, digits and _, and no digit first.")
        return name


def _number(type_: Type, value: Any, at: str) -> Any:
    # JSON has no NaN and no infinity, so Avro takes a floating number as text too.
    if isinstance(value, str) and isinstance(type_, Primitive) and type_.kind in (Kind.FLOAT, Kind.DOUBLE):
        try:
            return float(value)
        except ValueError as error:
            raise _refused(f"{at}/default", f"{_shown(value)} is no {type_.kind.value}.") from error
    return value


def _props(node: dict[str, Any], reserved: frozenset[str]) -> Props:
    return {key: value for key, value in node.items() if key not in reserved}


def _text(node: dict[str, Any], key: str) -> str | None:
    value = node.get(key)
    return value if isinstance(value, str) else None


def _aliases(node: dict[str, Any], at: str) -> tuple[str, ...]:
    aliases = node.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise _refused(f"{at}/aliases", f"{_shown(aliases)} is no list of names.")
    return tuple(dict.fromkeys(aliases))


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refused(at: str, why: str) -> InvalidSchema:
    return InvalidSchema(f"{at or '/'}: {why}")
