"""Which config and mode hold for a subject: its own, its context's, the whole registry's, or the default."""

from headrace.registry.config import DEFAULT, Config, inherited, with_level
from headrace.registry.errors import not_permitted
from headrace.registry.mode import Mode
from headrace.registry.subject import GLOBAL_CONTEXT, Qualified, qualified, within
from headrace.registry.tables import Tables

# The default context's settings have no name; those of all contexts stand under one.
DEFAULT_SCOPE = ""
GLOBAL_SCOPE = Qualified(GLOBAL_CONTEXT, "").prefix


def config_of(tables: Tables, subject: str) -> Config | None:
    """What is set for exactly this subject or context; the two outermost always have the default."""
    value = tables.settings.config(subject)
    if value is not None:
        return with_level(Config(**value))
    return DEFAULT if subject == DEFAULT_SCOPE or qualified(subject).context == GLOBAL_CONTEXT else None


def config_in_scope(tables: Tables, subject: str) -> Config:
    """What holds for a subject."""
    scopes = _scopes(subject)
    found = {scope: Config(**value) for scope, value in tables.settings.configs({*scopes, DEFAULT_SCOPE}).items()}
    if subject != DEFAULT_SCOPE and subject in found:
        return inherited(found[subject], found.get(DEFAULT_SCOPE, DEFAULT))
    return with_level(next((found[scope] for scope in scopes if scope in found), DEFAULT))


def mode_of(tables: Tables, subject: str) -> Mode | None:
    """What is set for exactly this subject or context; the two outermost always have the default."""
    if mode := tables.settings.modes([subject]).get(subject):
        return Mode(mode)
    is_outermost = subject == DEFAULT_SCOPE or qualified(subject).context == GLOBAL_CONTEXT
    return Mode.READWRITE if is_outermost else None


def mode_in_scope(tables: Tables, subject: str) -> Mode:
    """What holds for a subject."""
    scopes = _scopes(subject)
    found = tables.settings.modes(scopes)
    return Mode(next((found[scope] for scope in scopes if scope in found), Mode.READWRITE))


def check_writable(tables: Tables, subject: str) -> None:
    if mode_in_scope(tables, subject).is_readonly:
        raise not_permitted(f"{told(subject)} is in read-only mode")


def told(subject: str) -> str:
    """A subject as Confluent's messages name it."""
    return f"Subject {subject or 'null'} in context {qualified(subject).prefix}"


def aliased(tables: Tables, subject: str) -> str:
    """The subject that another stands for; itself, if for none."""
    alias = (tables.settings.config(subject) or {}).get("alias")
    return within(subject, alias) if alias else subject


def _scopes(subject: str) -> list[str]:
    """Where settings of a subject are looked for, the nearest first."""
    return list(dict.fromkeys([subject, qualified(subject).prefix, GLOBAL_SCOPE]))
