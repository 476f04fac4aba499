"""What clients send, read by pydantic: names as on the wire, and what we do not know is left aside."""

from typing import Annotated, cast
from urllib.parse import unquote

from fastapi import Query
from pydantic import AfterValidator, BeforeValidator, Field

from headrace.feed import SchemaType
from headrace.registry.entities import Entity, MetadataEntity, Number, RuleSetEntity
from headrace.registry.errors import invalid_schema
from headrace.registry.page import Page
from headrace.registry.registration import ANY, UNSET, Asked
from headrace.registry.schema import Reference, SchemaText

# Paths come still encoded, so that a slash can be part of a name.
Name = Annotated[str, AfterValidator(unquote)]
# As Java reads them: "true" in any case, and all else is false.
Flag = Annotated[bool, BeforeValidator(lambda text: str(text).lower() == "true")]


class SentReference(Entity):
    name: str | None = None
    subject: str | None = None
    version: Number | None = None


class SentSchema(Entity):
    """A schema to register, look up or compare; its version and id are for imports."""

    text: str | None = Field(default=None, alias="schema")
    schema_type: str | None = None
    references: list[SentReference] | None = None
    metadata: MetadataEntity | None = None
    rule_set: RuleSetEntity | None = None
    version: Number | None = None
    id: Number | None = None

    def schema_text(self) -> SchemaText:
        return SchemaText(
            # Other types are refused where schemas are parsed, with Confluent's words.
            cast(SchemaType, self.schema_type or "AVRO"),
            self.text or "",
            tuple(self._reference(each) for each in self.references or ()),
            None if self.metadata is None else self.metadata.plain(),
            None if self.rule_set is None else self.rule_set.plain(),
        )

    def asked(self) -> Asked:
        id_ = UNSET if self.id is None or self.id < 0 else self.id
        return Asked(self.schema_text(), ANY if self.version is None else self.version, id_)

    def _reference(self, sent: SentReference) -> Reference:
        if sent.name is None or sent.subject is None or sent.version is None:
            told = f"{{name='{sent.name}', subject='{sent.subject}', version={sent.version}}}".replace("None", "null")
            type_ = self.schema_type or "AVRO"
            raise invalid_schema(f"Invalid schema of type {type_}, details: Invalid reference: {told}")
        return Reference(sent.name, sent.subject, sent.version)


class SentMode(Entity):
    """A mode to set; none clears it."""

    mode: str | None = None


def page(offset: Annotated[Number, Query()] = 0, limit: Annotated[Number, Query()] = -1) -> Page:
    """The page that a query asks for."""
    return Page(offset, limit)
