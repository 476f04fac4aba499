"""What a subject, a context or the whole registry is set to: compatibility, normalizing, an alias, metadata, rules."""

from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from headrace.registry.compatibility import Level, Policy
from headrace.registry.entities import MetadataEntity, RuleSetEntity
from headrace.registry.errors import Code, RegistryFault
from headrace.registry.rules import check_rules

POLICIES = ("STRICT", "LENIENT", "LOGICAL")
INVALID_LEVEL = (
    "Invalid compatibility level. Valid values are none, backward, forward, full, "
    "backward_transitive, forward_transitive, and full_transitive"
)


Metadata = Annotated[dict[str, Any], BeforeValidator(lambda sent: MetadataEntity.model_validate(sent).plain())]
RuleSet = Annotated[dict[str, Any], BeforeValidator(lambda sent: RuleSetEntity.model_validate(sent).plain())]


class Config(BaseModel):
    """Only what is set; the names are Confluent's."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_level: str | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True)

    @property
    def level(self) -> Level:
        return Level(self.compatibility_level or DEFAULT_LEVEL)

    @property
    def policy(self) -> Policy:
        return Policy(self.level, self.compatibility_group, is_lenient=self.compatibility_policy == "LENIENT")

    @property
    def adds(self) -> bool:
        """Whether schemas get metadata or rules that nobody sent."""
        return any((self.default_metadata, self.override_metadata, self.default_rule_set, self.override_rule_set))


class ConfigUpdate(Config):
    """What a request sets; what it leaves out stays as it was, and null takes a setting away."""

    compatibility_level: str | None = Field(
        default=None,
        validation_alias=AliasChoices("compatibility", "compatibilityLevel"),
        serialization_alias="compatibility",
    )


DEFAULT_LEVEL = Level.BACKWARD
DEFAULT = Config(compatibility_level=DEFAULT_LEVEL)


def checked(update: ConfigUpdate) -> ConfigUpdate:
    """The update with its words in capitals, or a fault that says what is wrong with it."""
    check_rules(update.default_rule_set)
    check_rules(update.override_rule_set)
    level, policy = update.compatibility_level, update.compatibility_policy
    if level is not None and level.upper() not in Level.__members__:
        raise RegistryFault(Code.INVALID_COMPATIBILITY, INVALID_LEVEL)
    # A policy that is none clears it, as Confluent's does.
    named = policy.upper() if policy and policy.upper() in POLICIES else None
    set_ = {"compatibility_level": level and level.upper(), "compatibility_policy": named}
    return update.model_copy(update={name: value for name, value in set_.items() if name in update.model_fields_set})


def updated(config: Config | None, update: ConfigUpdate) -> Config:
    """A config with an update laid over it."""
    before = dict(config) if config else {}
    return Config(**before | {name: getattr(update, name) for name in update.model_fields_set})


def with_level(config: Config) -> Config:
    return config if config.compatibility_level else config.model_copy(update={"compatibility_level": DEFAULT_LEVEL})


# A subject's own config hides these of the registry's, even where it does not set them.
OWN = (
    "alias",
    "alias_for_deks",
    "compatibility_level",
    "default_metadata",
    "override_metadata",
    "default_rule_set",
    "override_rule_set",
)


def inherited(subject: Config, general: Config) -> Config:
    """A subject's config with what it leaves open taken from the registry's."""
    taken = {name: value for name, value in general if name not in OWN and getattr(subject, name) is None}
    return with_level(subject.model_copy(update=taken))
