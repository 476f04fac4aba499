"""Locating, planned: where a person's records lie, and the jobs by which Spark takes them out of clean and quarantine.

The plan is all that a job gets. It holds keys, which may be personal: it is never logged.
"""

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from headrace.stages.transform import TransformPlan

Step = Literal["locate", "clean", "quarantine"]
How = Literal["key", "kafka key", "bytes"]
"""How a record was told to be of a key: by its fields, by its Kafka key alone, or as its bytes hold the key's."""

SHORTEST = 4
"""Values of fewer bytes are in everything, so they are looked for nowhere."""

Spark = Callable[[str], str]
"""Takes a plan as JSON, gives what was found or done as JSON."""


class ForgetPlan(BaseModel):
    """One job: which keys of which feed."""

    model_config = ConfigDict(frozen=True)

    step: Step
    transform: TransformPlan = Field(repr=False)
    """How the feed's records are read."""
    keys: list[list[str]] = Field(repr=False)
    """Each a text for every field of the key."""
    next: dict[int, int]
    """How far the archive is looked through, by partition."""
    personal: list[str] = []
    """The columns that hold personal data."""
    places: list[tuple[int, int]] = []
    """What is deleted from quarantine: coordinates."""
    summary: dict[str, str] = {}
    """What the snapshot of a delete says besides."""


class Place(BaseModel):
    """One record of a person."""

    model_config = ConfigDict(frozen=True)

    partition: int
    offset: int
    """Where it lies."""
    origin: tuple[int, int]
    """The coordinates that it takes: of a copy that was replayed, its original's."""
    how: How


class Located(BaseModel):
    """Where the keys are."""

    model_config = ConfigDict(frozen=True)

    digests: list[str]
    """The keyed hash of each key, in their order."""
    shown: list[list[str]] = Field(repr=False)
    """Each key as texts, as it is shown elsewhere."""
    archive: list[Place]
    quarantine: list[Place]
    clean: int
    """Rows of the clean table, hidden ones too."""
    values: list[str] = Field(repr=False)
    """What the keys' records say of the person and no other key's do."""
    shared: int = 0
    """How many more values others have too: they prove nothing."""
