"""Avro: its schemas as the registry keeps, compares and gives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from headrace.registry.avro.compatibility import incompatibilities
from headrace.registry.avro.normal import normalize
from headrace.registry.avro.parser import KNOWN, NEW, Parser, Rules
from headrace.registry.avro.text import render
from headrace.registry.avro.types import ByName, Record, Schema
from headrace.registry.schema import Incompatibility, InvalidSchema, Parsed

__all__ = ["AvroSchema", "parse", "parse_known"]

NO_DEPENDENCIES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class AvroSchema:
    """A schema with its texts."""

    schema: Schema = field(repr=False)
    canonical: str
    """One form for all texts that are the same schema; what it refers to stands by name only."""
    normalized: str
    """The same for all that differ only in the order of attributes."""
    resolved: str
    """With everything that it refers to written out."""

    @property
    def name(self) -> str | None:
        """The record's full name; none for a schema that is no record."""
        root = self.schema.definition(self.schema.root)
        return root.name if isinstance(root, Record) else None

    def incompatibilities(self, writer: Parsed) -> Sequence[Incompatibility]:
        """Why data written with another schema cannot be read with this one; nothing when all of it can."""
        if not isinstance(writer, AvroSchema):
            return [Incompatibility("SCHEMA_TYPE_MISMATCH", "/", "Incompatible because of different schema type")]
        return incompatibilities(self.schema, writer.schema)


def parse(text: str, dependencies: Mapping[str, str] = NO_DEPENDENCIES) -> AvroSchema:
    """A schema that is to be registered; names, namespaces and defaults have to be right.

    Dependencies are the texts it refers to, each after those that it uses itself.
    """
    return _parse(text, dependencies, NEW)


def parse_known(text: str, dependencies: Mapping[str, str] = NO_DEPENDENCIES) -> AvroSchema:
    """A schema that is registered already, is looked up or imported: namespaces and defaults are taken as they are."""
    return _parse(text, dependencies, KNOWN)


def _parse(text: str, dependencies: Mapping[str, str], rules: Rules) -> AvroSchema:
    try:
        parser = Parser()
        roots = [_dependency(parser, name, text=inner).root for name, inner in dependencies.items()]
        known = [root.name for root in roots if isinstance(root, ByName)]
        schema = parser.parse(text, rules)
        return AvroSchema(
            schema,
            canonical=render(schema, known),
            normalized=render(normalize(schema), known),
            resolved=render(schema),
        )
    except RecursionError as error:
        raise InvalidSchema("its types nest too deeply") from error


def _dependency(parser: Parser, name: str, *, text: str) -> Schema:
    try:
        return parser.parse(text, KNOWN)
    except InvalidSchema as error:
        raise InvalidSchema(f'reference "{name}": {error}') from error
