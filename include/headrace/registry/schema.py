"""A schema as the registry takes and gives it: type, text, references, metadata and rules; and what it refuses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NewType, Protocol

from headrace.errors import HeadraceError
from headrace.feed import SchemaType

SchemaId = NewType("SchemaId", int)
Version = NewType("Version", int)


class InvalidSchema(HeadraceError):
    """The text is no schema of its type; the message says why, as the parser found it."""


@dataclass(frozen=True)
class Reference:
    """Another subject's version that a schema uses under a name."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class SchemaText:
    """A schema as somebody wrote it."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Incompatibility:
    """One reason why two schemas do not fit, and where."""

    type: str
    """Confluent's name for it, such as READER_FIELD_MISSING_DEFAULT_VALUE."""
    path: str
    message: str
    """The text as Confluent's registry gives it, type and path in it; `%s` stands for the reader, then the writer."""

    def told(self, *, reader: str, writer: str) -> str:
        """The message with the two schemas called by these words: new and old, or old and new."""
        return self.message.replace("%s", reader, 1).replace("%s", writer, 1)


class Parsed(Protocol):
    """A schema of one language, parsed together with what it refers to."""

    @property
    def canonical(self) -> str:
        """The text that the registry keeps and gives back: one form for all texts that are the same schema."""

    @property
    def normalized(self) -> str:
        """The text with everything sorted that may be sorted: what `normalize=true` compares and keeps."""

    def incompatibilities(self, writer: "Parsed") -> Sequence[Incompatibility]:
        """Why data written with another schema cannot be read with this one; nothing when all of it can."""
