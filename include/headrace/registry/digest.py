"""Digests of a schema's content: the guid that every registry computes alike, and one that cannot be forged."""

import hashlib
import json
import struct
from collections.abc import Iterator
from uuid import UUID

from headrace.registry.metadata import Metadata, sorted_metadata
from headrace.registry.rules import PHASES, Rule, RuleSet, sorted_rules
from headrace.registry.schema import SchemaText

PRESENT = b"\x01"
"""Tells metadata and rules that are there but empty from none."""


def guid_of(schema: SchemaText) -> UUID:
    """The MD5 of text, references, metadata and rules; the schema's type is not part of it."""
    return UUID(bytes=hashlib.md5(b"".join(_content(schema)), usedforsecurity=False).digest())


def digest_of(schema: SchemaText) -> bytes:
    """The SHA-256 of the same content and the type, which decides whether two schemas are one.

    The guid cannot decide that: MD5 collisions can be made, and its parts run into each other.
    """
    references = [[reference.name, reference.subject, reference.version] for reference in schema.references]
    metadata = None if schema.metadata is None else sorted_metadata(schema.metadata)
    rule_set = None if schema.rule_set is None else sorted_rules(schema.rule_set)
    content = json.dumps([schema.type, schema.text, references, metadata, rule_set], sort_keys=True)
    return hashlib.sha256(content.encode()).digest()


def _content(schema: SchemaText) -> Iterator[bytes]:
    yield schema.text.encode()
    for reference in schema.references:
        yield reference.name.encode()
        yield reference.subject.encode()
        yield struct.pack(">i", reference.version)
    if schema.metadata is not None:
        yield PRESENT
        yield from _metadata(sorted_metadata(schema.metadata))
    if schema.rule_set is not None:
        yield PRESENT
        yield from _rules(sorted_rules(schema.rule_set))


def _metadata(metadata: Metadata) -> Iterator[bytes]:
    for key, tags in metadata.get("tags", {}).items():
        yield key.encode()
        yield from (tag.encode() for tag in tags)
    for key, value in metadata.get("properties", {}).items():
        yield key.encode()
        yield value.encode()
    yield from (name.encode() for name in metadata.get("sensitive", ()))


def _rules(rule_set: RuleSet) -> Iterator[bytes]:
    for phase in PHASES:
        for rule in rule_set.get(phase, ()):
            yield from _rule(rule)
    yield str(rule_set.get("enableAt", "")).encode()


def _rule(rule: Rule) -> Iterator[bytes]:
    for name in ("name", "doc", "kind", "mode", "type"):
        yield str(rule.get(name, "")).encode()
    yield from (tag.encode() for tag in rule.get("tags", ()))
    for key, value in rule.get("params", {}).items():
        yield key.encode()
        yield value.encode()
    for name in ("expr", "onSuccess", "onFailure"):
        yield str(rule.get(name, "")).encode()
    if rule.get("disabled"):
        yield PRESENT
