"""The registry: every question and change of Confluent's API, over a store; knows no web."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from headrace.registry import administration, deletion, feeds, registration
from headrace.registry.config import Config, ConfigUpdate
from headrace.registry.errors import (
    RegistryFault,
    invalid_subject,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from headrace.registry.lookup import canonical, look_up
from headrace.registry.metadata import properties
from headrace.registry.mode import Mode
from headrace.registry.page import ALL, MOST_SCHEMAS, Page
from headrace.registry.references import standalone
from headrace.registry.registered import Registered, Use, Which
from headrace.registry.registration import Asked, Gate, why_not
from headrace.registry.rules import check_rules, has_type
from headrace.registry.schema import SchemaText
from headrace.registry.scope import aliased, config_in_scope
from headrace.registry.store import Store
from headrace.registry.subject import (
    ANY_CONTEXT,
    DEFAULT_CONTEXT,
    Qualified,
    begins_with,
    can_be_registered,
    normalize,
    qualified,
    within,
)
from headrace.registry.tables import Tables
from headrace.registry.version import LATEST

RESOLVED = "resolved"
"""The format of a schema with its references written out; others are taken for the form that is kept."""


@dataclass(frozen=True)
class Registry:
    """What Confluent's registry answers; a refusal is a RegistryFault."""

    store: Store
    gate: Gate = feeds.check

    # Subjects and their versions

    def subjects(self, prefix: str = ANY_CONTEXT, *, which: Which = Which.LIVE, page: Page = ALL) -> list[str]:
        """The subjects that begin with a prefix, in order; one is deleted when all of its versions are."""
        with self.store.reading() as tables:
            return page.of([name for name, gone in tables.subjects(prefix) if which.includes(gone)])

    def history(self, subject: str, *, which: Which = Which.LIVE, page: Page = ALL) -> list[Registered]:
        """A subject's versions, the oldest first."""
        with self.store.reading() as tables:
            name = _named(tables, subject)
            if not tables.has_subject(name, deleted=which is not Which.LIVE):
                raise subject_not_found(name)
            return page.of([each for each in tables.history(name) if which.includes(each.is_deleted)])

    def version(self, subject: str, version: int, *, deleted: bool = False) -> Registered:
        """One version; where the default context lacks it, another one's of the same name."""
        with self.store.reading() as tables:
            name = _named(tables, subject)
            for each in _elsewhere(tables, name):
                found = tables.latest(each) if version == LATEST else tables.version(each, version)
                if found and (deleted or not found.is_deleted):
                    return found
            raise version_not_found(version) if tables.has_subject(name, deleted=deleted) else subject_not_found(name)

    def look_up(
        self, subject: str, schema: SchemaText, *, normalize: bool = False, deleted: bool = False
    ) -> Registered:
        """The version that is this schema."""
        with self.store.reading() as tables:
            name = _named(tables, subject)
            sorts = normalize or bool(config_in_scope(tables, name).normalize)
            for each in _elsewhere(tables, name):
                try:
                    found = look_up(tables, each, schema, normalize=sorts, deleted=deleted)
                except RegistryFault:
                    # Another context may lack what the schema refers to.
                    if each == name:
                        raise
                    continue
                if found:
                    return found
            raise schema_not_found() if tables.has_subject(name, deleted=deleted) else subject_not_found(name)

    def with_metadata(self, subject: str, wanted: Mapping[str, str], *, deleted: bool = False) -> Registered:
        """The last version whose metadata have these properties."""
        with self.store.reading() as tables:
            name = _named(tables, subject)
            for each in reversed(tables.history(name)):
                has = each.schema.metadata is not None and wanted.items() <= properties(each.schema.metadata).items()
                if has and (deleted or not each.is_deleted):
                    return each
            raise schema_not_found() if tables.has_subject(name, deleted=deleted) else subject_not_found(name)

    def referenced_by(self, subject: str, version: int, *, deleted: bool = False, page: Page = ALL) -> list[int]:
        """The ids of the schemas that refer to a version."""
        target = self.version(subject, version, deleted=True)
        with self.store.reading() as tables:
            found = tables.referrers(target.subject, target.version, deleted=deleted)
            return [use.id for use in page.of(found, most=MOST_SCHEMAS)]

    # Changes

    def register(self, subject: str, asked: Asked, *, normalize: bool = False, force: bool = False) -> Registered:
        """The subject's version of a schema, a new one if it has none; with force, whatever the others are."""
        check_rules(asked.schema.rule_set)
        if not can_be_registered(subject):
            raise invalid_subject(subject)
        with self.store.reading() as tables:
            name = _named(tables, subject)
            sorts = normalize or bool(config_in_scope(tables, name).normalize)
            if found := registration.known(tables, name, asked, normalize=sorts):
                return found
        with self.store.writing() as tables:
            return registration.register(tables, name, asked, normalize=sorts, force=force, gate=self.gate)

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> int:
        with self.store.writing() as tables:
            return deletion.delete_version(tables, _named(tables, subject), version, permanent=permanent)

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        with self.store.writing() as tables:
            return deletion.delete_subject(tables, _named(tables, subject), permanent=permanent)

    # Compatibility

    def incompatibilities(
        self, subject: str, schema: SchemaText, *, version: int | None = None, normalize: bool = False
    ) -> list[str]:
        """Every reason why a schema may not follow one version of a subject, or all that count; none when it may."""
        with self.store.reading() as tables:
            name = _named(tables, subject)
            old = [each for each in tables.history(name) if not each.is_deleted]
            if version is not None:
                old = old[-1:] if version == LATEST else [each for each in old if each.version == version]
                if not old and version != LATEST:
                    raise version_not_found(version)
            config = config_in_scope(tables, name)
            sorts, is_new = normalize or bool(config.normalize), config.validate_new_schemas is not False
            form = canonical(tables, name, schema, normalize=sorts, is_new=is_new)
            return why_not(tables, form, config=config, old=old)

    # Schemas and ids

    def schemas(
        self,
        prefix: str = "",
        *,
        also: Iterable[str] = (),
        which: Which = Which.LIVE,
        latest_only: bool = False,
        rule_type: str = "",
        page: Page = ALL,
    ) -> list[Registered]:
        """The versions of the subjects that begin with a prefix and of some others, by subject and number."""
        begin, most = (0, None) if rule_type else page.within(MOST_SCHEMAS)
        with self.store.reading() as tables:
            listed = tables.latest_listed if latest_only else tables.listed
            found = listed(prefix, also=also, which=which, begin=begin, most=most)
        if not rule_type:
            return found
        return page.of([each for each in found if has_type(each.schema.rule_set, rule_type)], most=MOST_SCHEMAS)

    def with_id(self, id_: int, *, subject: str = "") -> Registered:
        """A version that has an id, of the subject that is named where it has it."""
        with self.store.reading() as tables:
            found = _with_id(tables, id_, subject=subject)
            if found is None:
                raise schema_not_found(id_)
            return found

    def last_id(self, subject: str) -> int:
        """The highest id of the context that a subject is in."""
        with self.store.reading() as tables:
            return tables.last_id(qualified(subject).context)

    def uses_of_id(self, id_: int, *, subject: str = "", which: Which = Which.LIVE) -> list[Registered]:
        """The last version of each subject that has an id."""
        with self.store.reading() as tables:
            found = _with_id(tables, id_, subject=subject)
            if found is None:
                raise schema_not_found()
            uses = tables.uses_of_id(qualified(found.subject).context, id_)
            return [each for each in uses if which.includes(each.is_deleted)]

    def with_guid(self, guid: UUID) -> Registered:
        """A version that has a guid, of the default context where it is there."""
        with self.store.reading() as tables:
            for use in sorted(tables.ids_of_guid(guid), key=lambda use: use.context != DEFAULT_CONTEXT):
                if found := tables.with_id(use.context, use.id):
                    return found
            raise schema_not_found(str(guid))

    def ids_of_guid(self, guid: UUID) -> list[Use]:
        with self.store.reading() as tables:
            return tables.ids_of_guid(guid)

    def text(self, version: Registered, *, format_: str = "") -> str:
        """A version's text, as it is kept or with its references written out."""
        if format_ != RESOLVED or version.type != "AVRO":
            return version.text
        with self.store.reading() as tables:
            return standalone(tables, version)

    # Settings and contexts

    def aliases(self, prefix: str) -> Mapping[str, list[str]]:
        """The subjects that begin with a prefix and stand for others, by those others."""
        found: dict[str, list[str]] = {}
        with self.store.reading() as tables:
            for subject, alias in tables.settings.aliases():
                if begins_with(subject, prefix):
                    found.setdefault(within(subject, alias), []).append(subject)
        return found

    def config(self, subject: str = "", *, inherit: bool = False) -> Config:
        with self.store.reading() as tables:
            return administration.config(tables, normalize(subject), inherit=inherit)

    def update_config(self, update: ConfigUpdate, *, subject: str = "") -> Config:
        with self.store.writing() as tables:
            return administration.update_config(tables, normalize(subject), update)

    def delete_config(self, subject: str = "") -> Config:
        with self.store.writing() as tables:
            return administration.delete_config(tables, normalize(subject))

    def mode(self, subject: str = "", *, inherit: bool = False) -> Mode:
        with self.store.reading() as tables:
            return administration.mode(tables, normalize(subject), inherit=inherit)

    def set_mode(self, mode: str | None, *, subject: str = "", force: bool = False) -> None:
        with self.store.writing() as tables:
            administration.set_mode(tables, normalize(subject), mode, force=force)

    def delete_mode(self, subject: str = "", *, recursive: bool = False) -> Mode | None:
        with self.store.writing() as tables:
            return administration.delete_mode(tables, normalize(subject), recursive=recursive)

    def contexts(self, prefix: str = "", *, page: Page = ALL) -> list[str]:
        with self.store.reading() as tables:
            return page.of([each for each in tables.contexts() if each.startswith(prefix)])

    def delete_context(self, context: str) -> None:
        with self.store.writing() as tables:
            administration.delete_context(tables, context)


def _named(tables: Tables, subject: str) -> str:
    """A subject in its one spelling, or the one that it stands for."""
    return aliased(tables, normalize(subject))


def _elsewhere(tables: Tables, subject: str) -> Iterator[str]:
    """The subject; then, where it names no context, those of the same name in the other contexts."""
    yield subject
    asked = qualified(subject)
    if asked.is_default:
        for context in tables.contexts():
            if context != DEFAULT_CONTEXT:
                yield str(Qualified(context, asked.name))


def _with_id(tables: Tables, id_: int, *, subject: str) -> Registered | None:
    name = _named(tables, subject)
    asked = qualified(name)
    if asked.is_context:
        found = tables.with_id(asked.context, id_)
    else:
        candidates = (tables.with_id_of(each, id_) for each in _elsewhere(tables, name))
        found = next(filter(None, candidates), None)
        if found is None and asked.is_default:
            found = tables.with_id(asked.context, id_)
    return found
