"""Metadata and rules as JSON carries them: read by pydantic, names as on the wire, what is not known left aside."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

# As wide as Java's and Postgres's.
Number = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class Entity(BaseModel):
    """A body, or a part of one."""

    model_config = ConfigDict(alias_generator=to_camel, coerce_numbers_to_str=True, frozen=True)

    def plain(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True)


class MetadataEntity(Entity):
    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None


class RuleEntity(Entity):
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


class RuleSetEntity(Entity):
    migration_rules: list[RuleEntity] | None = None
    domain_rules: list[RuleEntity] | None = None
    encoding_rules: list[RuleEntity] | None = None
    enable_at: str | None = None
