"""Results: how each run's checks came out, one JSON object each in the lake, listed with the newest first."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from botocore.exceptions import ClientError
from pydantic import BaseModel, ConfigDict

from headrace import away, layout, objects
from headrace.errors import MovedError
from headrace.lake import Lake
from headrace.outcome import Outcome

KEPT = 1000
"""How many results of a feed are kept; as many as S3 lists at once."""

SUFFIX = ".json"
READERS = 8
MISSING = ("NoSuchKey", "404")
TAKEN = ("PreconditionFailed", "ConditionalRequestConflict", "412")


class Approval(BaseModel):
    """Who published a run's rows though checks had failed, and why."""

    model_config = ConfigDict(frozen=True)

    by: str
    why: str
    at: datetime


class Result(BaseModel):
    """What came of one run's checks; of rows it holds counts, and keys where they are not personal."""

    model_config = ConfigDict(frozen=True)

    feed: str
    run: str
    branch: str
    snapshot: str
    """A text: JSON's readers lose digits of such numbers."""
    at: datetime
    window: tuple[datetime, datetime] | None = None
    outcomes: list[Outcome]
    approval: Approval | None = None

    @property
    def is_rebuild(self) -> bool:
        """Whether the table was made anew, which is no run of the feed's DAG."""
        return self.run.startswith(layout.REBUILD_RUN)

    @property
    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if not outcome.success]

    @property
    def stopped(self) -> list[Outcome]:
        """Those that kept the rows from readers, unless somebody approved."""
        return [outcome for outcome in self.failed if outcome.expectation.severity == "stop"]

    @property
    def name(self) -> str:
        return layout.result_name(self.at, self.run)


@dataclass(frozen=True)
class _Shelf:
    """Where one feed's results lie."""

    lake: Lake
    feed: str

    @property
    def bucket(self) -> str:
        return objects.place(self.lake.location)[0]

    def key(self, name: str = "") -> str:
        prefix = objects.place(layout.results_location(self.lake.location, self.feed))[1]
        return f"{prefix}/{name}{SUFFIX if name else ''}"

    def names(self) -> Iterator[str]:
        for each in objects.listed(self.lake.s3, self.bucket, self.key()):
            yield each.key.removeprefix(self.key()).removesuffix(SUFFIX)


@away.tells
def write(result: Result, *, lake: Lake) -> None:
    """Keep a result, and let go of those that are too many by now."""
    shelf = _Shelf(lake, result.feed)
    lake.s3.put_object(Bucket=shelf.bucket, Key=shelf.key(result.name), Body=_body(result))
    for name in islice(shelf.names(), KEPT, None):
        lake.s3.delete_object(Bucket=shelf.bucket, Key=shelf.key(name))


def _body(result: Result) -> bytes:
    return json.dumps(result.model_dump(mode="json"), indent=1).encode()


@away.tells
def read(feed: str, name: str, *, lake: Lake) -> Result | None:
    """One result by its name; None when there is none, or no longer."""
    found = _read(_Shelf(lake, feed), name)
    return found[0] if found else None


def _read(shelf: _Shelf, name: str) -> tuple[Result, str] | None:
    """A result, and the tag by which S3 tells whether it was changed since."""
    try:
        answer = shelf.lake.s3.get_object(Bucket=shelf.bucket, Key=shelf.key(name))
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in MISSING:
            return None
        raise
    return Result.model_validate_json(answer["Body"].read()), answer["ETag"]


@away.tells
def latest(feed: str, *, lake: Lake, count: int) -> list[Result]:
    """The last results of a feed, the newest first."""
    shelf = _Shelf(lake, feed)
    names = list(islice(shelf.names(), count))
    with ThreadPoolExecutor(READERS) as pool:
        found = pool.map(lambda name: _read(shelf, name), names)
        return [each[0] for each in found if each]


@away.tells
def of_run(feed: str, run: str, *, lake: Lake) -> Result | None:
    """The last result of a run, which has several where its check was cleared."""
    ending = f"-{layout.branch(run)}"
    name = next((name for name in _Shelf(lake, feed).names() if name.endswith(ending)), None)
    return read(feed, name, lake=lake) if name else None


@away.tells
def approve(feed: str, run: str, *, lake: Lake, by: str, why: str, at: datetime | None = None) -> Result | None:
    """Note in a run's last result who published its rows all the same; None when the run has none."""
    found = of_run(feed, run, lake=lake)
    if found is None:
        return None
    shelf, approval = _Shelf(lake, feed), Approval(by=by, why=why, at=at or datetime.now(UTC))
    again = _read(shelf, found.name)
    if again is None:
        return None
    result, tag = again[0].model_copy(update={"approval": approval}), again[1]
    try:
        lake.s3.put_object(Bucket=shelf.bucket, Key=shelf.key(result.name), Body=_body(result), IfMatch=tag)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in TAKEN:
            raise MovedError(
                f"feed {feed}: somebody else noted an approval of run {run} just now. Look again."
            ) from error
        raise
    return result


@away.tells
def mend(feed: str, mended: Callable[[str], str], *, lake: Lake) -> int:
    """Change what results say, one by one; how many were changed. Done twice, it changes nothing more."""
    shelf, changed = _Shelf(lake, feed), 0
    for name in shelf.names():
        found = _read(shelf, name)
        if found is None:
            continue
        before = _body(found[0])
        after = _body(Result.model_validate_json(mended(before.decode())))
        if after != before:
            lake.s3.put_object(Bucket=shelf.bucket, Key=shelf.key(name), Body=after, IfMatch=found[1])
            changed += 1
    return changed
