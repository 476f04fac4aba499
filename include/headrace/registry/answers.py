"""What clients get: Confluent's entities, with what is empty left out."""

from collections.abc import Mapping
from typing import Any, Self

from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from headrace.registry.registered import Registered
from headrace.registry.subject import within


class Sparse(APIRoute):
    """A route whose answers leave out what is not set, as Confluent's do."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "response_model_exclude_none": True})


class Told(BaseModel):
    """An answer, or a part of one."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class ToldReference(Told):
    name: str
    subject: str
    version: int


class ToldSchema(Told):
    """A schema, and which version of which subject it is."""

    subject: str | None = None
    version: int | None = None
    id: int | None = None
    guid: str
    schema_type: str
    references: list[ToldReference] | None = None
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None
    text: str = Field(alias="schema")
    ts: int | None = None
    deleted: bool | None = None
    aliases: list[str] | None = None
    max_id: int | None = None

    @classmethod
    def of(cls, version: Registered, text: str | None = None) -> Self:
        """A version, with its text in another format if it is given."""
        references = [
            ToldReference(name=each.name, subject=each.subject, version=each.version)
            for each in version.schema.references
        ]
        return cls(
            subject=version.subject,
            version=version.version,
            id=version.id,
            guid=str(version.guid),
            schema_type=version.type,
            references=references or None,
            metadata=version.schema.metadata,
            rule_set=version.schema.rule_set,
            text=version.text if text is None else text,
            ts=version.timestamp,
            deleted=version.is_deleted,
        )

    def without(self, *names: str) -> Self:
        return self.model_copy(update=dict.fromkeys(names))

    def with_qualified_references(self) -> Self:
        """The references' subjects with the context that they are meant in."""
        qualified = [
            each.model_copy(update={"subject": within(self.subject or "", each.subject)})
            for each in self.references or ()
        ]
        return self.model_copy(update={"references": qualified or None})


class ToldVersion(Told):
    subject: str
    version: int


class ToldUse(Told):
    context: str
    id: int


class ToldCompatibility(Told):
    is_compatible: bool = Field(alias="is_compatible")
    messages: list[str] | None = None


class ToldMode(Told):
    mode: str | None = None
