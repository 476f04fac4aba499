"""Pairs of Avro schemas, the second grown out of the first by what people do to schemas, and values of the first."""

import copy
from typing import Any

from hypothesis import strategies as st

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
DEFAULTS: dict[str, Any] = {
    "null": None, "boolean": False, "int": 1, "long": 2, "float": 0.5, "double": 1.5, "bytes": "b", "string": "s",
}  # fmt: skip
SIZES = st.integers(1, 3)


class Writer:
    """Draws one schema; every named type gets a name of its own, and a record may hold itself again."""

    def __init__(self, draw: st.DrawFn, first: int = 0) -> None:
        self.draw = draw
        self.count = first
        self.open: list[str] = []

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def type(self, depth: int) -> Any:
        kinds = ["primitive"] * 3 + ["enum", "fixed"] + ["array", "map", "union", "record"] * (depth > 0)
        match self.draw(st.sampled_from(kinds)):
            case "primitive":
                return self.draw(st.sampled_from(PRIMITIVES))
            case "enum":
                symbols = ["A", "B", "C"][: self.draw(SIZES)]
                return {"type": "enum", "name": self.name("E"), "symbols": symbols}
            case "fixed":
                return {"type": "fixed", "name": self.name("F"), "size": self.draw(SIZES)}
            case "array":
                return {"type": "array", "items": self.type(depth - 1)}
            case "map":
                return {"type": "map", "values": self.type(depth - 1)}
            case "union":
                return self.union(depth)
            case _:
                return self.record(depth)

    def union(self, depth: int) -> list[Any]:
        branches = [self.type(depth - 1) for _ in range(self.draw(SIZES))]
        branches += [self.draw(st.sampled_from(self.open))] if self.open and self.chance(25) else []
        return list({key(branch): branch for branch in ["null", *branches] if not isinstance(branch, list)}.values())

    def record(self, depth: int) -> dict[str, Any]:
        name = self.name("R")
        self.open.append(name)
        fields = [{"name": f"f{index}", "type": self.type(depth - 1)} for index in range(self.draw(SIZES))]
        self.open.remove(name)
        return {"type": "record", "name": name, "fields": fields}


class Evolution:
    """Changes a schema here and there."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.fresh = Writer(draw, first=50)

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) < percent

    def type(self, node: Any) -> Any:
        node = self.inner(copy.deepcopy(node))
        return ["null", node] if not isinstance(node, list) and node != "null" and self.chance(8) else node

    def inner(self, node: Any) -> Any:
        match node:
            case str() if node in PRIMITIVES:
                return self.draw(st.sampled_from(PRIMITIVES)) if self.chance(25) else node
            case list():
                branches = [self.inner(branch) for branch in node]
                branches = branches[1:] if len(branches) > 1 and self.chance(10) else branches
                branches = [self.fresh.type(0), *branches] if self.chance(10) else branches
                return list(reversed(branches)) if self.chance(10) else branches
            case {"type": "array"}:
                node["items"] = self.type(node["items"])
            case {"type": "map"}:
                node["values"] = self.type(node["values"])
            case {"type": "record" | "enum" | "fixed"}:
                self.named(node)
        return node

    def named(self, node: dict[str, Any]) -> None:
        if self.chance(10):
            node["namespace"] = "elsewhere"
        if self.chance(10):
            node["aliases"] = [node["name"]]
            node["name"] = f"New{node['name']}"
        if node["type"] == "fixed" and self.chance(10):
            node["size"] = self.draw(SIZES)
        if node["type"] == "enum" and self.chance(30):
            node["symbols"] = self.draw(st.permutations(["A", "B", "C", "D"]))[: self.draw(SIZES)]
            node.update({"default": node["symbols"][0]} if self.chance(50) else {})
        if node["type"] == "record":
            node["fields"] = [self.field(field) for field in node["fields"] if not self.chance(10)]
            taken = {field["name"] for field in node["fields"]}
            node["fields"] += [field for field in [self.added()] if self.chance(20) and field["name"] not in taken]
            node["fields"].reverse() if self.chance(10) else None

    def field(self, field: dict[str, Any]) -> dict[str, Any]:
        renamed = {"name": f"new_{field['name']}", "aliases": [field["name"]]} if self.chance(10) else {}
        return field | {"type": self.type(field["type"])} | renamed

    def added(self) -> dict[str, Any]:
        type_ = self.draw(st.sampled_from(PRIMITIVES))
        name = self.draw(st.sampled_from(["added", "f0"]))
        return {"name": name, "type": type_} | ({"default": DEFAULTS[type_]} if self.chance(70) else {})


def key(node: Any) -> str:
    """What a union may have only once."""
    return str(node if isinstance(node, str) else node.get("name", node["type"]))


def definitions(node: Any) -> dict[str, Any]:
    """Every named type of a schema without namespaces."""
    match node:
        case list():
            return {name: found for branch in node for name, found in definitions(branch).items()}
        case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
            return definitions(inner)
        case {"type": "record", "fields": fields, "name": name}:
            return {name: node} | definitions([field["type"] for field in fields])
        case {"name": name}:
            return {name: node}
        case _:
            return {}


def value(draw: st.DrawFn, node: Any, *, named: dict[str, Any], depth: int = 0) -> Any:
    """A value of the type; in recursive ones it soon ends in null, which each of our unions has."""
    match node:
        case str() if node in PRIMITIVES:
            return draw(SCALARS[node])
        case str():
            return value(draw, named[node], named=named, depth=depth + 1)
        case list():
            branch = "null" if depth > 3 else draw(st.sampled_from(node))
            inner = value(draw, branch, named=named, depth=depth + 1)
            # fastavro is told which branch it is, or it would take any that the value fits.
            return (key(branch), inner) if branch not in PRIMITIVES and key(branch) not in ("array", "map") else inner
        case {"type": "enum"}:
            return draw(st.sampled_from(node["symbols"]))
        case {"type": "fixed"}:
            return b"x" * node["size"]
        case {"type": "array"}:
            return [value(draw, node["items"], named=named, depth=depth + 1) for _ in range(draw(st.integers(0, 2)))]
        case {"type": "map"}:
            return {key_: value(draw, node["values"], named=named, depth=depth + 1) for key_ in draw(KEYS)}
        case _:
            fields = node["fields"]
            return {field["name"]: value(draw, field["type"], named=named, depth=depth + 1) for field in fields}


# Bytes are text here: bytes that are none cannot be read as a string, though Avro says that bytes can.
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "bytes": st.sampled_from([b"", b"abc"]),
    "string": st.text(max_size=3),
}
KEYS = st.lists(st.sampled_from(["k", "l"]), unique=True, max_size=2)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any, list[Any]]:
    """A writer, a reader and values of the writer."""
    drawing = Writer(draw)
    writer = drawing.record(3)
    named = definitions(writer)
    reader = Evolution(draw).inner(copy.deepcopy(writer))
    return writer, reader, [value(draw, writer, named=named) for _ in range(3)]
