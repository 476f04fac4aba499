"""A subject's name and the context that qualifies it, as in `:.staging:orders-value`."""

import unicodedata
from dataclasses import dataclass

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
ANY_CONTEXT = ":*:"
# Names that Confluent keeps for itself.
RESERVED = ("__GLOBAL", "__EMPTY")


@dataclass(frozen=True, order=True)
class Qualified:
    """A context and a name in it; an empty name means the whole context."""

    context: str
    name: str

    def __str__(self) -> str:
        return self.prefix + self.name

    @property
    def prefix(self) -> str:
        """What stands before the names of this context; nothing in the default one."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    @property
    def is_default(self) -> bool:
        return self.context == DEFAULT_CONTEXT

    @property
    def is_context(self) -> bool:
        return not self.name


def qualified(text: str) -> Qualified:
    """Read a subject; one without a context is in the default one."""
    if text.startswith(":."):
        context, _, name = text[1:].partition(":")
        return Qualified(context, name)
    if text.startswith(ANY_CONTEXT):
        return Qualified("*", text.removeprefix(ANY_CONTEXT))
    return Qualified(DEFAULT_CONTEXT, text)


def normalize(text: str) -> str:
    """One spelling per subject: `:.:orders` is `orders`, `:.staging` is `:.staging:`."""
    return str(qualified(text))


def within(parent: str, subject: str) -> str:
    """A subject as it is meant inside another's schema: in the same context, unless it names its own."""
    found = qualified(subject)
    return str(Qualified(qualified(parent).context, found.name) if found.is_default else found)


def context_prefix(context: str) -> str:
    """The prefix of a context that is written as `staging`, `.staging` or `:.staging:`."""
    bare = context.removeprefix(":").removesuffix(":")
    if ":" in bare:
        raise ValueError(f"Context name '{bare}' cannot contain a colon")
    return Qualified(bare if bare.startswith(".") else f".{bare}", "").prefix


def begins_with(subject: str, prefix: str) -> bool:
    """Whether a subject begins with a prefix: in its context, in any (`:*:`), or in all that begin so (`:.st`)."""
    found, asked = qualified(subject), qualified(prefix)
    if prefix.startswith(ANY_CONTEXT):
        return found.name.startswith(asked.name)
    if prefix.startswith(":.") and prefix.count(":") == 1:
        return found.context.startswith(asked.context)
    return found.context == asked.context and found.name.startswith(asked.name)


def names_context(text: str) -> bool:
    return text.startswith((":.", ANY_CONTEXT))


def can_be_registered(text: str) -> bool:
    return can_be_configured(text) and qualified(text).context != GLOBAL_CONTEXT


def can_be_configured(text: str) -> bool:
    return not any(map(_is_control, text)) and qualified(text).name not in RESERVED


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc"
