"""What clients send, read by pydantic: names as on the wire, and what we do not know is left aside."""

from typing import Annotated, Any, Literal, cast
from urllib.parse import unquote

from fastapi import Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from headrace.feed import SchemaType
from headrace.registry.errors import invalid_schema
from headrace.registry.page import Page
from headrace.registry.registration import ANY, UNSET, Asked
from headrace.registry.schema import Reference, SchemaText

# Paths come still encoded, so that a slash can be part of a name.
Name = Annotated[str, AfterValidator(unquote)]
# As Java reads them: "true" in any case, and all else is false.
Flag = Annotated[bool, BeforeValidator(lambda text: str(text).lower() == "true")]


# As wide as Java's and Postgres's.
Number = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class Sent(BaseModel):
    """A body, or a part of one."""

    model_config = ConfigDict(alias_generator=to_camel, coerce_numbers_to_str=True, frozen=True)

    def plain(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True)


class SentReference(Sent):
    name: str | None = None
    subject: str | None = None
    version: Number | None = None


class SentMetadata(Sent):
    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None


class SentRule(Sent):
    name: str | None = None
    doc: str | None = None
    kind: Literal["TRANSFORM", "CONDITION"] | None = None
    mode: Literal["UPGRADE", "DOWNGRADE", "UPDOWN", "WRITE", "READ", "WRITEREAD"] | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False


class SentRules(Sent):
    migration_rules: list[SentRule] | None = None
    domain_rules: list[SentRule] | None = None
    encoding_rules: list[SentRule] | None = None
    enable_at: str | None = None


class SentSchema(Sent):
    """A schema to register, look up or compare; its version and id are for imports."""

    text: str | None = Field(default=None, alias="schema")
    schema_type: str | None = None
    references: list[SentReference] | None = None
    metadata: SentMetadata | None = None
    rule_set: SentRules | None = None
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


class SentMode(Sent):
    """A mode to set; none clears it."""

    mode: str | None = None


def page(offset: Annotated[int, Query()] = 0, limit: Annotated[int, Query()] = -1) -> Page:
    """The page that a query asks for."""
    return Page(offset, limit)
