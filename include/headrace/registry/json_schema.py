"""JSON Schema in the registry: parsed with what it refers to, in the text that is kept, and compared with others."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import urljoin

from jsonschema_specifications import REGISTRY as META_SCHEMAS  # type: ignore[import-untyped]
from referencing import Resource

from headrace.registry.json_compatibility.comparison import Comparison
from headrace.registry.json_compatibility.draft import LATEST, UNDECLARED, Draft, declared
from headrace.registry.json_compatibility.graph import Graph
from headrace.registry.json_compatibility.node import Node
from headrace.registry.json_compatibility.reason import LENIENT, once
from headrace.registry.schema import Incompatibility, InvalidSchema, Parsed

Policy = Literal["STRICT", "LENIENT"]
PASSED_OVER: Mapping[Policy, frozenset[str]] = {"STRICT": frozenset(), "LENIENT": LENIENT}


@dataclass(frozen=True)
class JsonSchema:
    """A JSON Schema and what it refers to."""

    document: Any = field(repr=False)
    draft: Draft
    readings: tuple[Node, ...] = field(repr=False)
    """What validators make of it: one meaning, or two where it names no draft: some read draft 7, some the latest."""

    @property
    def canonical(self) -> str:
        """The text without spaces, its members in their order and its numbers as they were written."""
        return "".join(_written(self.document))

    @property
    def normalized(self) -> str:
        """The text without spaces, the members of every object sorted by name."""
        return "".join(_written(_sorted(self.document)))

    def incompatibilities(self, writer: Parsed, *, policy: Policy = "STRICT") -> Sequence[Incompatibility]:
        """Why data written with another schema may be refused by this one; nothing when all of it is accepted."""
        if not isinstance(writer, JsonSchema):
            return (Incompatibility("SCHEMA_TYPE_MISMATCH", "/", "Incompatible because of different schema type"),)
        reasons = (
            reason
            for mine, theirs in _pairs(self.readings, writer.readings)
            for reason in Comparison(PASSED_OVER[policy]).reasons(mine, theirs)
        )
        return tuple(Incompatibility(each.type, each.pointer, each.message) for each in once(reasons))


def parse(text: str, dependencies: Mapping[str, str] = {}) -> JsonSchema:
    """A schema from its text and those of its references by their names, or the reason why it is none."""
    document = _document(text)
    others = {name: _document(each, name=name) for name, each in dependencies.items()}
    draft = declared(document)
    try:
        root = _reading(document, others, draft=draft or UNDECLARED)
        readings = (root,) if draft else (root, *_as_latest(document, others))
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply; give its parts names and refer to them") from None
    return JsonSchema(document, draft or UNDECLARED, readings)


def _document(text: str, *, name: str = "") -> Any:
    where = f"reference {name!r}: " if name else ""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_number)
    except RecursionError:
        raise InvalidSchema(f"{where}the JSON is nested too deeply") from None
    except ValueError as error:
        raise InvalidSchema(f"{where}this is not JSON: {error}") from error


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _as_latest(document: Any, others: Mapping[str, Any]) -> Iterator[Node]:
    """What validators that take the latest draft for granted make of a document without `$schema`, if anything."""
    try:
        yield _reading(document, others, draft=LATEST)
    except InvalidSchema:
        return


def _reading(document: Any, others: Mapping[str, Any], *, draft: Draft) -> Node:
    draft.check(document)
    root = draft.specification.create_resource(document)
    resources: dict[str, Resource[Any]] = {}
    drafts: dict[str, Draft] = {}
    for name, other in others.items():
        its_own = declared(other) or draft
        its_own.check(other, at=name)
        resource = its_own.specification.create_resource(other)
        for address in _addresses(name, bases=(root.id(), *others)):
            resources[address] = resource
            drafts |= {address: its_own, urljoin(address, resource.id() or ""): its_own}
    registry = META_SCHEMAS.with_resources(resources.items())
    graph = Graph(draft, (document, *others.values()), drafts)
    return graph.root(document, registry.resolver_with_root(root))


def _addresses(name: str, *, bases: Sequence[str | None]) -> Iterator[str]:
    """How a reference's name may look once it has been resolved against the place where it is used."""
    plain = name.removeprefix("./")
    yield from (name, plain, f"./{plain}")
    yield from (urljoin(base, name) for base in bases if base)


def _pairs(readers: tuple[Node, ...], writers: tuple[Node, ...]) -> Iterator[tuple[Node, Node]]:
    """Which meanings meet: equal ones where both sides have two, since a validator reads both in the same way."""
    if len(readers) == len(writers):
        return zip(readers, writers, strict=True)
    return ((reader, writer) for reader in readers for writer in writers)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _written(value: Any) -> Iterator[str]:
    """The JSON text of a value; the standard encoder would give its decimal numbers as floats."""
    match value:
        case dict():
            yield "{"
            for index, (name, item) in enumerate(value.items()):
                yield f"{',' if index else ''}{json.dumps(name, ensure_ascii=False)}:"
                yield from _written(item)
            yield "}"
        case list():
            yield "["
            for index, item in enumerate(value):
                yield "," if index else ""
                yield from _written(item)
            yield "]"
        case Decimal():
            yield str(value)
        case _:
            yield json.dumps(value, ensure_ascii=False)
