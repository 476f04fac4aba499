"""Finding a schema among a subject's versions: by its content, or by what it means."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headrace.registry.avro import AvroSchema
from headrace.registry.config import Config
from headrace.registry.errors import invalid_schema
from headrace.registry.metadata import (
    merge_metadata,
    names_version,
    sorted_metadata,
    version_in,
    with_version,
    without_version,
)
from headrace.registry.references import parsed, pinned, standalone
from headrace.registry.registered import Registered
from headrace.registry.rules import merge_rules, sorted_rules
from headrace.registry.schema import Parsed, SchemaText
from headrace.registry.scope import config_in_scope, mode_in_scope
from headrace.registry.tables import Tables


@dataclass(frozen=True)
class Canonical:
    """A schema in the form that is kept, and parsed."""

    schema: SchemaText
    parsed: Parsed


def canonical(tables: Tables, subject: str, schema: SchemaText, *, normalize: bool, is_new: bool = False) -> Canonical:
    """The one form of all texts that are the same schema; what is imported is never normalized.

    A new schema is read strictly, and may not refer to deleted versions.
    """
    if not schema.text.strip():
        raise invalid_schema("Empty schema")
    exact = pinned(tables, subject, schema, deleted=not is_new)
    read = parsed(tables, subject, exact, is_new=is_new)
    sorts = normalize and not mode_in_scope(tables, subject).brings_ids
    references = sorted(set(exact.references), key=lambda each: each.name) if sorts else exact.references
    form = replace(
        exact,
        text=read.normalized if sorts else read.canonical,
        references=tuple(references),
        metadata=None if schema.metadata is None else sorted_metadata(schema.metadata),
        rule_set=None if schema.rule_set is None else sorted_rules(schema.rule_set),
    )
    return Canonical(form, parsed(tables, subject, form) if sorts else read)


def look_up(tables: Tables, subject: str, schema: SchemaText, *, normalize: bool, deleted: bool) -> Registered | None:
    """The version of a subject that is this schema, as it stands or with the latest version's metadata and rules."""
    found = find(tables, subject, schema, normalize=normalize, deleted=deleted)
    latest = tables.latest(subject)
    if found or latest is None:
        return found
    completed = with_defaults(schema, config_in_scope(tables, subject), previous=latest.schema)
    same = completed == schema
    return None if same else find(tables, subject, completed, normalize=normalize, deleted=deleted)


def find(tables: Tables, subject: str, schema: SchemaText, *, normalize: bool, deleted: bool) -> Registered | None:
    """The newest version of a subject that is this very schema."""
    if not schema.text.strip():
        return None
    form = canonical(tables, subject, schema, normalize=normalize)
    exact = [each for each in tables.with_content(subject, form.schema) if deleted or not each.is_deleted]
    if exact:
        return exact[0]
    versions = [each for each in tables.history(subject) if deleted or not each.is_deleted]
    return equivalent(tables, form, versions=versions)


def equivalent(tables: Tables, form: Canonical, *, versions: Sequence[Registered]) -> Registered | None:
    """The newest of the versions that means the same as this schema."""
    return next((each for each in reversed(versions) if _means(tables, form, version=each)), None)


def with_defaults(schema: SchemaText, config: Config, *, previous: SchemaText | None) -> SchemaText:
    """The schema with the metadata and rules that it inherits, or that a config adds to it."""
    metadata = schema.metadata if schema.metadata is not None or previous is None else previous.metadata
    rule_set = schema.rule_set if schema.rule_set is not None or previous is None else previous.rule_set
    return replace(
        schema,
        metadata=merge_metadata(merge_metadata(config.default_metadata, metadata), config.override_metadata),
        rule_set=merge_rules(merge_rules(config.default_rule_set, rule_set), config.override_rule_set),
    )


def with_next_version(schema: SchemaText, version: int, *, asked: bool) -> SchemaText:
    """The schema with its version in its metadata, where a request named one or the metadata did already."""
    if not asked and not names_version(schema.metadata):
        return schema
    return replace(schema, metadata=with_version(schema.metadata, version))


def _means(tables: Tables, form: Canonical, *, version: Registered) -> bool:
    new, old = form.schema, version.schema
    if new.type != old.type or new.rule_set != old.rule_set or not _same_metadata(new, version=version):
        return False
    # A client may send a schema with all references written out: it means one that has them.
    if new.references == old.references or (new.type == "AVRO" and not new.references and old.references):
        return _same_text(tables, form, version=version)
    return False


def _same_metadata(new: SchemaText, *, version: Registered) -> bool:
    old, named, kept = version.schema.metadata, version_in(new.metadata), version_in(version.schema.metadata)
    if named is None and kept is not None:
        return (new.metadata or {}) == without_version(old)
    if named is not None and kept is None:
        return named == version.version and without_version(new.metadata) == (old or {})
    return new.metadata == old


def _same_text(tables: Tables, form: Canonical, *, version: Registered) -> bool:
    if form.schema.text == version.text:
        return True
    if not isinstance(form.parsed, AvroSchema):
        return False
    # In Avro the order of attributes means nothing, and Python compares mappings so.
    return bool(json.loads(form.parsed.resolved) == json.loads(standalone(tables, version)))
