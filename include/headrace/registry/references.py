"""What a schema refers to: other subjects' versions, and what those refer to in turn."""

from collections.abc import Mapping
from dataclasses import replace

from headrace.registry.errors import invalid_schema
from headrace.registry.languages import Text, parse, resolved
from headrace.registry.registered import Registered
from headrace.registry.schema import Parsed, Reference, SchemaText
from headrace.registry.subject import within
from headrace.registry.tables import Tables
from headrace.registry.version import LATEST


def parsed(tables: Tables, subject: str, schema: SchemaText, *, is_new: bool = False) -> Parsed:
    """A schema read together with everything that it refers to, deleted versions too; a new one strictly."""
    return parse(Text(schema.type, schema.text, tuple(_texts(tables, subject, schema).items()), is_new))


def standalone(tables: Tables, version: Registered) -> str:
    """A version's text with all that it refers to written out; one that refers to nothing stands alone as it is."""
    if not version.schema.references:
        return version.text
    texts = _texts(tables, version.subject, version.schema)
    return resolved(Text(version.type, version.text, tuple(texts.items())))


def pinned(tables: Tables, subject: str, schema: SchemaText, *, deleted: bool) -> SchemaText:
    """The schema with references to a latest version made ones to its number; all of them must be there."""
    references = tuple(
        replace(each, version=_target(tables, subject, schema, reference=each, deleted=deleted).version)
        for each in schema.references
    )
    return replace(schema, references=references)


def _texts(tables: Tables, subject: str, schema: SchemaText) -> Mapping[str, str]:
    """The texts that a schema needs, by the names that it and they use, each after those that it needs itself."""
    found: dict[str, str] = {}
    for reference in schema.references:
        if reference.name not in found:
            target = _target(tables, subject, schema, reference=reference, deleted=True)
            inner = _texts(tables, target.subject, target.schema)
            found |= {name: text for name, text in inner.items() if name not in found}
            found.setdefault(reference.name, target.text)
    return found


def _target(tables: Tables, subject: str, schema: SchemaText, *, reference: Reference, deleted: bool) -> Registered:
    # By its own name, as in Confluent's: an alias may later stand for something else.
    name = within(subject, reference.subject)
    target = tables.latest(name) if reference.version == LATEST else tables.version(name, reference.version)
    if target is None or (target.is_deleted and not deleted):
        missing = f'No schema reference found for subject "{name}" and version {reference.version}'
        raise invalid_schema(f"Invalid schema of type {schema.type}, details: {missing}")
    return target
