"""Setting and clearing configs, modes and contexts."""

from headrace.registry import scope
from headrace.registry.config import Config, ConfigUpdate, checked, updated
from headrace.registry.deletion import forget_settings
from headrace.registry.errors import (
    config_not_set,
    context_not_empty,
    invalid_subject,
    mode_not_set,
    not_permitted,
    reference_exists,
    subject_not_found,
)
from headrace.registry.mode import Mode, parse_mode
from headrace.registry.registered import Which
from headrace.registry.scope import DEFAULT_SCOPE, GLOBAL_SCOPE, check_writable
from headrace.registry.subject import ANY_CONTEXT, can_be_configured, normalize, qualified
from headrace.registry.tables import Tables


def config(tables: Tables, subject: str, *, inherit: bool) -> Config:
    """What is set for a subject; or, inherited, what holds for it."""
    found = scope.config_in_scope(tables, subject) if inherit else scope.config_of(tables, subject)
    if found is None:
        raise config_not_set(subject)
    return found


def update_config(tables: Tables, subject: str, update: ConfigUpdate) -> Config:
    wanted = checked(update)
    if not can_be_configured(subject):
        raise invalid_subject(subject)
    check_writable(tables, subject)
    before = tables.settings.config(subject)
    after = updated(None if before is None else Config(**before), wanted)
    tables.settings.set_config(subject, after.as_json())
    return after


def delete_config(tables: Tables, subject: str) -> Config:
    """Clear a config, and return what it was."""
    before = scope.config_of(tables, subject)
    if before is None:
        raise subject_not_found(subject)
    check_writable(tables, subject)
    tables.settings.delete_config(subject)
    return before


def mode(tables: Tables, subject: str, *, inherit: bool) -> Mode:
    """What is set for a subject; or, inherited, what holds for it."""
    found = scope.mode_in_scope(tables, subject) if inherit else scope.mode_of(tables, subject)
    if found is None:
        raise mode_not_set(subject)
    return found


def set_mode(tables: Tables, subject: str, text: str | None, *, force: bool) -> None:
    """Set a mode, or clear it; importing starts from nothing, unless forced."""
    if not can_be_configured(subject):
        raise invalid_subject(subject)
    if text is None:
        tables.settings.delete_mode(subject)
        return
    wanted = parse_mode(text, for_all=subject == GLOBAL_SCOPE)
    if wanted is Mode.IMPORT and scope.mode_in_scope(tables, subject) is not Mode.IMPORT and not force:
        _clear_for_import(tables, subject)
    tables.settings.set_mode(subject, wanted)


def delete_mode(tables: Tables, subject: str, *, recursive: bool) -> Mode | None:
    """Clear a mode, and where told those of a context's subjects; returns what it was."""
    before = scope.mode_of(tables, subject)
    if before is None and not recursive:
        raise subject_not_found(subject)
    tables.settings.delete_mode(subject)
    if recursive and qualified(subject).is_context:
        for each in tables.settings.modes_within(qualified(subject).context):
            tables.settings.delete_mode(each)
    return before


def delete_context(tables: Tables, context: str) -> None:
    """Take an empty context off the list."""
    wanted = normalize(context)
    if tables.has_subject(wanted, deleted=True):
        raise context_not_empty(wanted)
    tables.hide_context(qualified(wanted).context)


def _clear_for_import(tables: Tables, subject: str) -> None:
    """Forget what is deleted, so that an import meets nothing; refuse where anything is left."""
    # The default context's settings hold for the whole registry, so all of it has to be empty.
    where = GLOBAL_SCOPE if subject == DEFAULT_SCOPE else subject
    if tables.has_subject(where, deleted=False):
        raise not_permitted("Cannot import since found existing subjects")
    deleted = tables.listed(ANY_CONTEXT, which=Which.DELETED)
    doomed = [each for each in deleted if _is_within(each.subject, where)]
    for each in doomed:
        if tables.referrers(each.subject, each.version, deleted=True):
            raise reference_exists(each.subject, each.version)
    for each in doomed:
        tables.remove_versions(each.subject, [each.version])
        forget_settings(tables, each.subject)


def _is_within(subject: str, where: str) -> bool:
    scope_ = qualified(where)
    if not scope_.is_context:
        return subject == where
    return where == GLOBAL_SCOPE or qualified(subject).context == scope_.context
