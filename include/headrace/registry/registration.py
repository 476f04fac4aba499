"""Registering a schema: who asks for a version gets the one that there is, or a new one that may follow the others."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.errors import FeedError
from headrace.registry.compatibility import Candidate, reasons
from headrace.registry.config import Config
from headrace.registry.errors import Code, RegistryFault, invalid_schema, not_permitted
from headrace.registry.lookup import Canonical, canonical, equivalent, find, with_defaults, with_next_version
from headrace.registry.mode import Mode
from headrace.registry.references import parsed
from headrace.registry.registered import Registered
from headrace.registry.schema import SchemaText
from headrace.registry.scope import check_writable, config_in_scope, mode_in_scope, told
from headrace.registry.subject import qualified
from headrace.registry.tables import Tables
from headrace.registry.version import LATEST

ANY = 0
"""The version of a request that names none."""
UNSET = -1
"""The id of a request that names none."""

Gate = Callable[[str, SchemaText, SchemaText | None], object]
"""Raises FeedError for a schema that declares a feed which cannot run, or cannot follow the version before it."""


@dataclass(frozen=True)
class Asked:
    """What a request wants registered: a schema, for an import with its version and id."""

    schema: SchemaText
    version: int = ANY
    id: int = UNSET


def known(tables: Tables, subject: str, asked: Asked, *, normalize: bool) -> Registered | None:
    """The version that a request would get anyway: most of them ask for what is there."""
    config = config_in_scope(tables, subject)
    if config.adds:
        return None
    if asked.version == LATEST:
        return _latest(tables, subject, asked, normalize=normalize)
    found = find(tables, subject, asked.schema, normalize=normalize, deleted=False)
    if found is None or (asked.version == ANY and asked.id in (UNSET, found.id)):
        return found
    return found if (asked.version, asked.id) == (found.version, found.id) else None


def register(tables: Tables, subject: str, asked: Asked, *, normalize: bool, force: bool, gate: Gate) -> Registered:
    """Give the subject a version of this schema; with force, whatever the others are."""
    mode = _check_mode(tables, subject, asked)
    history, config = tables.history(subject), config_in_scope(tables, subject)
    live = [version for version in history if not version.is_deleted]
    following = history[-1].version + 1 if history else 1
    schema = asked.schema if mode.brings_ids else _completed(asked, config, live=live, following=following)
    is_new = not mode.brings_ids and config.validate_new_schemas is not False
    form = canonical(tables, subject, schema, normalize=normalize, is_new=is_new)
    id_ = _id(tables, subject, form.schema, asked=asked)
    if asked.version == ANY and (same := _same(tables, form, live=live, id_=id_)):
        return same
    _check_feed(tables, subject, form.schema, gate=gate)
    if not (mode.brings_ids or force):
        _check_compatible(tables, subject, form, config=config, live=live)
    version = asked.version if asked.version > 0 else following
    if version != following and not mode.brings_ids:
        raise invalid_schema("Version is not one more than previous version")
    there = tables.version(subject, version)
    if there and not there.is_deleted and there.schema == form.schema and there.id == id_:
        return there
    _check_free(tables, subject, form.schema, there=there, id_=id_)
    _make_room(tables, subject, version=version, id_=id_)
    return tables.register(subject, form.schema, version=version, id_=None if id_ == UNSET else id_)


def _latest(tables: Tables, subject: str, asked: Asked, *, normalize: bool) -> Registered | None:
    latest = tables.latest(subject)
    if latest is None or not asked.schema.text.strip() or asked.id not in (UNSET, latest.id):
        return None
    form = canonical(tables, subject, asked.schema, normalize=normalize)
    return equivalent(tables, form, versions=[latest])


def _check_mode(tables: Tables, subject: str, asked: Asked) -> Mode:
    check_writable(tables, subject)
    mode = mode_in_scope(tables, subject)
    if asked.id != UNSET and not mode.brings_ids:
        raise not_permitted(f"{told(subject)} is not in import mode")
    if asked.id == UNSET and mode is not Mode.READWRITE:
        raise not_permitted(f"{told(subject)} is not in read-write mode")
    return mode


def _completed(asked: Asked, config: Config, *, live: list[Registered], following: int) -> SchemaText:
    """The schema of a request with what it leaves out taken from the latest version and the config."""
    schema, previous = asked.schema, live[-1].schema if live else None
    if not schema.text.strip() and previous:
        schema = replace(schema, type=previous.type, text=previous.text, references=previous.references)
    completed = with_defaults(schema, config, previous=previous)
    return with_next_version(completed, following, asked=asked.version != ANY)


def _id(tables: Tables, subject: str, schema: SchemaText, *, asked: Asked) -> int:
    """The id that the schema has in this context, unless the request brings another."""
    kept = tables.id_of(qualified(subject).context, schema)
    return asked.id if kept is None or asked.id not in (UNSET, kept) else kept


def _same(tables: Tables, form: Canonical, *, live: list[Registered], id_: int) -> Registered | None:
    candidates = [version for version in live if id_ in (UNSET, version.id)]
    exact = [version for version in candidates if version.schema == form.schema]
    return exact[-1] if exact else equivalent(tables, form, versions=candidates)


def _check_feed(tables: Tables, subject: str, schema: SchemaText, *, gate: Gate) -> None:
    # Feeds live in the default context; others hold copies of other registries.
    if qualified(subject).is_default:
        try:
            before = next(iter(tables.declaring(subject)), None)
            gate(subject, schema, before.schema if before else None)
        except FeedError as error:
            raise invalid_schema(f"Invalid schema of type {schema.type}, details: {error}") from error


def _check_compatible(tables: Tables, subject: str, form: Canonical, *, config: Config, live: list[Registered]) -> None:
    if found := why_not(tables, form, config=config, old=live):
        details = f"[{', '.join(found)}]"
        text = "Schema being registered is incompatible with an earlier schema for subject"
        raise RegistryFault(Code.INCOMPATIBLE_SCHEMA, f'{text} "{subject}", details: {details}')


def why_not(tables: Tables, form: Canonical, *, config: Config, old: list[Registered]) -> list[str]:
    """Every reason why the schema may not follow the old versions."""
    new = Candidate(form.schema.type, form.parsed, form.schema.metadata)
    compared = old if config.level.is_transitive or config.compatibility_group else old[-1:]
    candidates = [
        Candidate(each.type, parsed(tables, each.subject, each.schema), each.schema.metadata, each.version)
        for each in compared
    ]
    return reasons(config.policy, new, old=candidates)


def _check_free(tables: Tables, subject: str, schema: SchemaText, *, there: Registered | None, id_: int) -> None:
    """Refuse to give an id or a version to a second schema, which only an import can ask for."""
    asked = qualified(subject)
    taken = tables.schema(asked.context, id_) if id_ != UNSET else None
    if taken is not None and taken != schema:
        raise not_permitted(f"Overwrite new schema with id {id_} in context {asked.prefix} is not permitted.")
    if there and (not there.is_deleted or tables.referrers(subject, there.version, deleted=True)):
        which = f"version {there.version} of subject {subject}"
        raise not_permitted(f"Overwrite {which} with another schema is not permitted.")


def _make_room(tables: Tables, subject: str, *, version: int, id_: int) -> None:
    """Forget deleted versions that the new one takes the place of, save those that others refer to."""
    for each in tables.history(subject):
        replaced = each.version == version or (each.id == id_ and each.version < version)
        if each.is_deleted and replaced and not tables.referrers(subject, each.version, deleted=True):
            tables.remove_versions(subject, [each.version])
