"""The languages that schemas are written in, each with its parsers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from headrace.registry import avro, json_schema
from headrace.registry.avro import AvroSchema
from headrace.registry.errors import invalid_schema
from headrace.registry.json_inline import inlined
from headrace.registry.json_schema import JsonSchema
from headrace.registry.schema import Incompatibility, InvalidSchema, Parsed

Parser = Callable[[str, Mapping[str, str]], Parsed]
"""Reads a text, given the texts that it and they refer to by name, each after those that it refers to itself."""


@dataclass(frozen=True)
class Language:
    """How schemas of one type are read: new ones strictly, those that are there already as they are."""

    new: Parser
    known: Parser


LANGUAGES: Mapping[str, Language] = {
    "JSON": Language(new=json_schema.parse, known=json_schema.parse),
    "AVRO": Language(new=avro.parse, known=avro.parse_known),
}


@dataclass(frozen=True)
class Text:
    """A text with everything that it refers to: all that a parser needs."""

    type: str
    text: str
    dependencies: tuple[tuple[str, str], ...] = ()
    is_new: bool = False


# A subject's versions are compared with each new one, and clients ask for the same ones again and again.
@lru_cache(maxsize=2000)
def parse(text: Text) -> Parsed:
    """The parsed schema, or a fault with the parser's reason."""
    language = LANGUAGES.get(text.type)
    if language is None:
        raise invalid_schema(f"Invalid schema type {text.type}")
    read = language.new if text.is_new else language.known
    try:
        return read(text.text, dict(text.dependencies))
    except InvalidSchema as error:
        raise invalid_schema(f"Invalid schema of type {text.type}, details: {error}") from error


def resolved(text: Text) -> str:
    """The text with its references written out, so that it stands alone, or a fault where that cannot be."""
    schema = parse(text)
    if isinstance(schema, AvroSchema):
        return schema.resolved
    try:
        return inlined(text.text, dict(text.dependencies))
    except InvalidSchema as error:
        raise invalid_schema(f"Invalid schema of type {text.type}, details: {error}") from error


def differences(reader: Parsed, writer: Parsed, *, is_lenient: bool) -> Sequence[Incompatibility]:
    """Why data written with one schema cannot be read with another; JSON Schema can be lenient about what is open."""
    if isinstance(reader, JsonSchema):
        return reader.incompatibilities(writer, policy="LENIENT" if is_lenient else "STRICT")
    return reader.incompatibilities(writer)
