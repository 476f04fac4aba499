"""What the registry has given out: a version of a subject, with its id and its schema."""

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from headrace.feed import SchemaType
from headrace.registry.schema import SchemaId, SchemaText, Version


@dataclass(frozen=True)
class Registered:
    """One version of a subject."""

    subject: str
    version: Version
    id: SchemaId
    schema: SchemaText
    guid: UUID
    timestamp: int
    """When it was registered, in milliseconds since 1970."""
    is_deleted: bool = False

    @property
    def type(self) -> SchemaType:
        return self.schema.type

    @property
    def text(self) -> str:
        return self.schema.text


@dataclass(frozen=True, order=True)
class Use:
    """An id in a context."""

    context: str
    id: int


class Which(Enum):
    """Which versions a question is about."""

    LIVE = "live"
    ALL = "all"
    DELETED = "deleted"

    def includes(self, is_deleted: bool) -> bool:
        return self is Which.ALL or is_deleted == (self is Which.DELETED)

    @property
    def states(self) -> list[bool]:
        """Whether its versions are deleted, live, or either."""
        return [state for state in (False, True) if self.includes(state)]
