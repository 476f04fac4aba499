"""What a data engineer may declare about a feed: the `feed` attribute of an Avro schema, `x-feed` of a JSON Schema."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Merge = Literal["latest", "append"]
Mask = Literal["hash", "last4", "year", "null"]
Severity = Literal["stop", "warn"]
Names = Annotated[list[str], Field(min_length=1)]


class Declared(BaseModel):
    """A part of the declaration: unknown attributes are errors, and nothing changes after it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Topic(Declared):
    """The Kafka topic; it is created when the feed is registered."""

    name: str | None = Field(default=None, description="The topic's name; the feed's name if not given.")
    partitions: int = Field(default=3, ge=1, description="Partitions of a topic that is created.")
    replication: int = Field(default=1, ge=1, description="Replicas of a topic that is created.")


class Partition(Declared):
    """How the clean table is partitioned."""

    field: str = Field(description="A date or timestamp field.")
    by: Literal["hour", "day", "month", "year"] = Field(default="day", description="The width of a partition.")
    immutable: bool = Field(
        default=False,
        description="Versions of one key never change this field, so a merge reads only the partitions it touches.",
    )


class Correctness(Declared):
    """The aggregates that must be equal in every store."""

    sum: list[str] = Field(default_factory=list, description="Numeric fields whose sums are reconciled.")


class Check(Declared):
    """One expectation about the rows of a run, tested before anyone sees them: a short form, or any by its name."""

    column: str | None = Field(default=None, description="The field that a short form is about.")
    between: tuple[Any, Any] | None = Field(default=None, description="Smallest and largest value allowed.")
    one_of: list[Any] | None = Field(default=None, description="The values allowed.")
    matches: str | None = Field(default=None, description="A regular expression that every value matches.")
    not_null: bool | None = Field(default=None, description="No value is null.")
    expect: str | None = Field(default=None, description="A Great Expectations expectation, by its snake_case name.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="That expectation's arguments.")
    severity: Severity = Field(default="stop", description="`stop` fails the run, `warn` is only reported.")

    @model_validator(mode="after")
    def _one_form(self) -> "Check":
        forms = [name for name in ("between", "one_of", "matches", "not_null", "expect") if getattr(self, name)]
        if len(forms) != 1:
            raise ValueError(f"a check takes exactly one of between, one_of, matches, not_null, expect; got {forms}")
        if self.column is None and self.expect is None:
            raise ValueError(f"{forms[0]} needs the column that it is about")
        return self


class Warehouse(Declared):
    """What one warehouse gets of this feed; a `pii` field that is neither kept nor masked is left out."""

    keep: list[str] = Field(default_factory=list, description="Personal fields that go there as they are.")
    drop: list[str] = Field(default_factory=list, description="Fields that do not go there.")
    mask: dict[str, Mask] = Field(default_factory=dict, description="Fields that go there masked.")


class Declaration(Declared):
    """A feed; everything but the key has a default."""

    key: Names = Field(description="The fields that identify a row.")
    owner: str = Field(default="data", description="The team that answers for this feed.")
    order: list[str] = Field(default_factory=list, description="The fields that decide which version of a row wins.")
    merge: Merge = Field(default="latest", description="How versions of one key become one row.")
    topic: Topic = Field(default_factory=Topic)
    partition: Partition | None = Field(default=None, description="No partitions if not given.")
    schedule: str = Field(default="*/5 * * * *", description="When the feed runs, as a cron expression in UTC.")
    correctness: Correctness = Field(default_factory=Correctness)
    checks: list[Check] = Field(default_factory=list)
    warehouses: dict[str, Warehouse] = Field(default_factory=dict, description="By name, who gets the clean table.")
