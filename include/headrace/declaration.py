"""What a data engineer may declare about a feed: the `feed` attribute of an Avro schema, `x-feed` of a JSON Schema.

The reference page and the JSON Schema that editors complete from are made of this model: a description here is what a
newcomer reads there.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from headrace.duration import Duration, Lasting
from headrace.size import Size

Merge = Literal["latest", "first", "patch", "append"]
Mask = Literal["hash", "last4", "year", "null"]
Severity = Literal["stop", "warn", "quarantine"]
FORMS = ("between", "one_of", "matches", "not_null", "unique", "length", "row_count", "expect")
ROW_FORMS = ("between", "one_of", "matches", "not_null")
"""Those that judge a row by itself, so that they can reject a record before it is merged."""
Names = Annotated[list[str], Field(min_length=1)]
Count = Annotated[int, Field(ge=0)] | None
Version = Annotated[int, Field(ge=1)] | Literal["latest"]


class Declared(BaseModel):
    """A part of the declaration: unknown attributes are errors, and nothing changes after it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Drain(Declared):
    """An older topic, broken with by this feed, whose records still belong into this feed's clean table."""

    topic: str = Field(description="The older topic; it is read to its end first, and late records of it still count.")
    fields: dict[str, str] = Field(
        default_factory=dict,
        description="Fields of this feed whose older records call them by another name: new name to old name.",
    )
    unframed: Version | None = Field(
        default=None, description="The same as the feed's own `unframed`, for the older topic and its subject."
    )


class Topic(Declared):
    """The Kafka topic; it is created when the feed is registered, and a broker that differs is reported."""

    name: str | None = Field(default=None, description="The topic's name; the feed's name if not given.")
    partitions: int = Field(default=3, ge=1, description="Its number of partitions.")
    replication: int | None = Field(default=None, ge=1, description="Its number of replicas; else the broker's own.")
    retention: Lasting | None = Field(
        default=None, description="How long the broker keeps records, such as `7d` or `forever`; else the broker's own."
    )
    compaction: bool = Field(
        default=False, description="Whether the broker keeps only the newest record of each Kafka key."
    )
    largest_message: Size | None = Field(
        default=None, description="The largest message the broker takes, such as `16 MiB`; else the broker's own."
    )
    drains: Drain | None = Field(default=None, description="The older topic that this one takes over from.")


class Kinesis(Declared):
    """A Kinesis stream that the feed reads from instead of a Kafka topic; Headrace does not make it."""

    stream: str | None = Field(default=None, description="The stream's name; the feed's name if not given.")
    start: Literal["TRIM_HORIZON", "LATEST"] = Field(
        default="TRIM_HORIZON",
        description="Where the first run begins: at the oldest record that the stream still has, or at its own moment.",
    )


class Delete(Declared):
    """A version that deletes its row, besides tombstones: the one in which a field has one of these values."""

    field: str = Field(description="The field that tells.")
    one_of: Annotated[list[Any], Field(min_length=1)] = Field(
        default=[True], description="Its values in a version that deletes."
    )


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
    one_of: Annotated[list[Any], Field(min_length=1)] | None = Field(default=None, description="The values allowed.")
    matches: str | None = Field(default=None, description="A regular expression that every value matches.")
    not_null: Literal[True] | None = Field(default=None, description="No value is null.")
    unique: Literal[True] | Annotated[list[str], Field(min_length=2)] | None = Field(
        default=None, description="No value comes twice among the rows of a run; a list of fields is one value."
    )
    length: tuple[Count, Count] | None = Field(
        default=None, description="Fewest and most characters of a text; `null` for no limit."
    )
    row_count: tuple[Count, Count] | None = Field(
        default=None, description="Fewest and most rows that a run changes; `null` for no limit. It takes no column."
    )
    expect: str | None = Field(default=None, description="A Great Expectations expectation, by its snake_case name.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="That expectation's arguments.")
    mostly: float | None = Field(
        default=None, gt=0, le=1, description="The share of rows that must meet a short form, such as `0.95`; else all."
    )
    severity: Severity = Field(
        default="stop",
        description="`stop` fails the run, `warn` is only reported, `quarantine` rejects each record that breaks it.",
    )

    @model_validator(mode="after")
    def _one_form(self) -> "Check":
        given = [form for form in FORMS if getattr(self, form) is not None]
        if len(given) != 1:
            raise ValueError(f"a check takes exactly one of {', '.join(FORMS)}; got {' and '.join(given) or 'none'}")
        alone = self.row_count is not None or isinstance(self.unique, list)
        if alone and self.column is not None:
            raise ValueError(f"{given[0]} takes no column")
        if self.column is None and self.expect is None and not alone:
            raise ValueError(f"{given[0]} needs the column that it is about")
        if self.arguments and self.expect is None:
            raise ValueError(f"{given[0]} takes no arguments: they belong to expect")
        if self.mostly is not None and (self.expect is not None or self.row_count is not None):
            raise ValueError("mostly goes with what is asked of each row; an expectation takes it as an argument")
        return self


class Sharing(Declared):
    """What one warehouse gets of this feed; a `pii` field that is neither kept nor masked is left out."""

    keep: list[str] = Field(default_factory=list, description="Personal fields that go there as they are.")
    drop: list[str] = Field(default_factory=list, description="Fields that do not go there.")
    mask: dict[str, Mask] = Field(default_factory=dict, description="Fields that go there masked.")
    flatten: list[str] = Field(
        default_factory=list,
        description="Records that become a column for each of their fields, such as `address_city`, instead of JSON.",
    )
    index: list[Names] = Field(
        default_factory=list,
        description="Lists of columns that analysts look rows up by; key and partition have an index in any case.",
    )
    distribute: str | None = Field(
        default=None,
        description="On Redshift, the column whose values say which node has a row; the first of the key if none.",
    )


class Quarantine(Declared):
    """How many records of one run may be rejected; one more, and the run stops instead and changes nothing."""

    count: int | None = Field(default=None, ge=0, description="The most records that may be rejected.")
    share: float | None = Field(
        default=None, ge=0, le=1, description="The largest share of the records read, such as `0.01`."
    )


class Retention(Declared):
    """How long the lake keeps what it holds of this feed."""

    archive: Lasting = Field(default="forever", description="Records in the archive, by their Kafka timestamp.")
    snapshots: Lasting = Field(default="7d", description="Older states of the clean table, to read or roll back to.")
    quarantine: Lasting = Field(default="forever", description="Rejected records.")


class Runs(Declared):
    """How the feed's tasks are run."""

    retries: int = Field(default=2, ge=0, description="How often a task is tried again.")
    retry_delay: Duration = Field(default="10s", description="How long to wait before that, such as `30s` or `5m`.")
    time_limit: Duration = Field(default="1h", description="How long one task may take before it is failed.")
    approval: Duration = Field(
        default="1d",
        description="How long a run whose checks failed waits for somebody to publish it anyway before it is failed.",
    )


class Extract(Declared):
    """How new records get from the topic into the archive."""

    spark_from: Annotated[int, Field(ge=0)] | Literal["never"] | None = Field(
        default=None,
        description="A run with at least so many new records is read by Spark instead of in the task; `0` is every "
        "run, `never` is none. Else the platform's own number counts (`HEADRACE_SPARK_FROM`), and a compacted topic "
        "is always read in the task.",
    )


class Input(Declared):
    """A feed whose clean rows a job reads, as they are published."""

    keep: list[str] = Field(
        default_factory=list, description="Its personal fields that the job gets; without a word, it gets none."
    )


class Job(Declared):
    """A PySpark function of a team's own that makes this feed's records of other feeds' clean rows."""

    file: Annotated[str, Field(pattern=r"^\w+([/-]\w+)*\.py$")] = Field(
        description="Its Python file in the folder of jobs; the function is called like the feed."
    )
    inputs: Annotated[dict[str, Input], Field(min_length=1)] = Field(
        description="By name, the feeds that it reads, which are the function's parameters; it runs when one changes."
    )


class Spark(Declared):
    """Where the feed's Spark jobs run."""

    connection: str | None = Field(
        default=None,
        description="The Airflow connection; `headrace_spark` if not given. Of type Spark Connect, jobs ask that "
        "server; of type Spark, they are submitted to that master.",
    )
    conf: dict[Annotated[str, Field(pattern=r"^spark\.")], str] = Field(
        default_factory=dict, description="More of Spark's settings, for jobs that are submitted."
    )


class Alerts(Declared):
    """When somebody is told, and who."""

    to: list[str] = Field(default_factory=list, description="Mail addresses; the owner's channel if none is given.")
    lag: int | None = Field(default=None, ge=1, description="More records than this wait to be archived.")
    freshness: Duration | None = Field(
        default=None, description="The newest row that an analyst sees is older than this, such as `1h`."
    )


class Declaration(Declared):
    """A feed; everything but the key has a default."""

    key: Names = Field(description="The fields that identify a row.")
    owner: str = Field(default="data", description="The team that answers for this feed.")
    description: str | None = Field(default=None, description="What the feed holds; the schema's own doc if not given.")
    order: list[str] = Field(
        default_factory=list, description="The fields that decide which version wins, else offsets do."
    )
    merge: Merge = Field(default="latest", description="How versions of one key become one row.")
    delete: Delete | None = Field(default=None, description="Which versions delete their row, besides tombstones.")
    topic: Topic = Field(default_factory=Topic, description="The Kafka topic.")
    kinesis: Kinesis | None = Field(default=None, description="The Kinesis stream, for a feed that has no topic.")
    job: Job | None = Field(
        default=None, description="The job that makes the feed's records, for one that nobody else publishes."
    )
    unframed: Version | None = Field(
        default=None,
        description="The version that values without a schema id were written with: its number in the subject, or "
        "`latest`, which only JSON may say. Else such records go to quarantine.",
    )
    partition: Partition | None = Field(default=None, description="How the clean table is partitioned, if at all.")
    sort: list[str] = Field(
        default_factory=list, description="The fields that rows are sorted by within each file; the key if none."
    )
    quarantine: Quarantine = Field(
        default_factory=Quarantine, description="How many records may be rejected before a run stops."
    )
    schedule: str = Field(default="*/5 * * * *", description="When the feed runs, as a cron expression in UTC.")
    correctness: Correctness = Field(
        default_factory=Correctness, description="The aggregates that must be equal in every store."
    )
    checks: list[Check] = Field(default_factory=list, description="What the rows of a run must meet to be published.")
    warehouses: dict[str, Sharing] = Field(default_factory=dict, description="By name, who gets the clean table.")
    retention: Retention = Field(default_factory=Retention, description="How long the lake keeps it.")
    extract: Extract = Field(default_factory=Extract, description="How new records get into the archive.")
    spark: Spark = Field(default_factory=Spark, description="Where its Spark jobs run.")
    runs: Runs = Field(default_factory=Runs, description="Retries and time limits of its tasks.")
    alerts: Alerts = Field(default_factory=Alerts, description="When somebody is told, and who.")
