"""Reconciliations: how two stores of a feed compared, kept run by run in a table of the lake.

A row holds counts, sums and checksums of both sides, and of what differs the partitions, the columns and the keys, as
far as these are not personal. Rows are only added, so that anybody may add one at any time, and go after 90 days.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict
from pyiceberg.expressions import In
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import BooleanType, DoubleType, LongType, NestedField, StringType, TimestamptzType

from headrace import away, layout
from headrace.errors import ReconcileError, WarehouseBehind
from headrace.lake import Lake
from headrace.reckoning import Depth, Verdict

Scope = Literal["changes", "whole"]
"""What was compared: what changed since the two were last seen to agree, or everything."""

SCHEMA = Schema(
    NestedField(1, "at", TimestamptzType(), doc="When they were compared."),
    NestedField(2, "run", StringType(), doc="The Airflow run, or who asked."),
    NestedField(3, "expected", StringType(), doc="The store that the other one is held against."),
    NestedField(4, "found", StringType(), doc="The other one: archive, clean or a warehouse."),
    NestedField(5, "scope", StringType(), doc="`changes` since they last agreed, or the `whole` of them."),
    NestedField(6, "snapshot", LongType(), doc="The clean table's, or the archive's."),
    NestedField(7, "agrees", BooleanType(), doc="Null where a warehouse is behind, or they could not be compared."),
    NestedField(8, "expected_rows", LongType()),
    NestedField(9, "found_rows", LongType()),
    NestedField(10, "expected_unique", LongType(), doc="Different keys."),
    NestedField(11, "found_unique", LongType()),
    NestedField(12, "sums", StringType(), doc="By column, both sums, as JSON."),
    NestedField(13, "checksums", StringType(), doc="Of all rows, both, as JSON."),
    NestedField(14, "differences", StringType(), doc="Partitions, columns and keys that differ, as JSON."),
    NestedField(15, "seconds", DoubleType(), doc="How long it took."),
)

# Everybody only adds: whoever is second may well add to what the first one left.
PROPERTIES = {"commit.retry.num-retries": "10"}


TEXTS = ("sums", "checksums", "differences")
"""What is kept as JSON."""
COMPARED = "headrace.compared."
"""What the table's properties begin with that tell how far two stores were compared, by the second of them."""
RUNS_KNOWN = 20
"""Of so many runs it is known where each began, so that one of them that is cleared compares the same again."""
Mark = int | str
"""How far a store had come: the clean table's snapshot, the archive's heads as JSON."""
BY_HAND = "command"
"""Who asked, where it was no run: a person's comparison takes nothing from what the next run has to compare."""
UNKNOWN = ("", "")
"""Checksums where no row was hashed."""
KEPT = timedelta(days=90)
"""How long the lake keeps them."""
LOOKED_BACK = (1, 7, 90)
"""So many days are looked through for the last ones, the next only where there were too few."""
KEYS_TOLD, PARTITIONS_TOLD = 20, 10
"""So many stand in an error; the result has more."""


class Reconciliation(BaseModel):
    """How two stores compared."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    run: str
    expected: str
    found: str
    scope: Scope
    snapshot: int | None
    agrees: bool | None
    """None where the second one is behind, so that there was nothing to compare, or where comparing failed."""
    expected_rows: int
    found_rows: int
    expected_unique: int
    found_unique: int
    sums: Mapping[str, tuple[str, str]] = {}
    checksums: tuple[str, str] = UNKNOWN
    differences: Mapping[str, Any] = {}
    seconds: float

    @property
    def pair(self) -> str:
        return f"{self.expected}–{self.found}"

    @property
    def behind(self) -> str | None:
        """Why there was nothing to compare."""
        return self.differences.get("behind")

    @property
    def failed(self) -> str | None:
        """Why they could not be compared."""
        return self.differences.get("failed")

    @property
    def depths(self) -> dict[Depth, bool]:
        """Whether the two agree, at each depth that was looked at."""
        if self.agrees is None:
            return {}
        counts = (self.expected_rows, self.expected_unique) == (self.found_rows, self.found_unique)
        depths: dict[Depth, bool] = {"count": counts and "accounts" not in self.differences}
        if self.sums:
            depths["sums"] = all(one == other for one, other in self.sums.values())
        if self.checksums != UNKNOWN:
            depths["checksum"] = self.checksums[0] == self.checksums[1]
        return depths


def of_verdict(verdict: Verdict, *, personal: bool, **told: Any) -> Reconciliation:
    """What is kept of a verdict; no keys of it where they are `personal`."""
    left, right = verdict.expected, verdict.found
    return Reconciliation(
        agrees=verdict.agrees,
        expected_rows=left.rows,
        found_rows=right.rows,
        expected_unique=left.unique,
        found_unique=right.unique,
        sums={name: (str(total), str(right.sums[name])) for name, total in left.sums.items()},
        checksums=(str(left.checksum), str(right.checksum)),
        differences={} if verdict.agrees else differences(verdict, personal=personal),
        **told,
    )


def of_behind(error: WarehouseBehind, **told: Any) -> Reconciliation:
    """What is kept where a warehouse is behind."""
    return _without_figures({"behind": str(error)}, **told)


def of_failure(why: str, **told: Any) -> Reconciliation:
    """What is kept where two stores could not be compared."""
    return _without_figures({"failed": why}, **told)


def _without_figures(differences: Mapping[str, str], **told: Any) -> Reconciliation:
    none = dict.fromkeys(("expected_rows", "found_rows", "expected_unique", "found_unique"), 0)
    return Reconciliation(agrees=None, differences=differences, snapshot=None, **none, **told)


def differences(verdict: Verdict, *, personal: bool) -> dict[str, Any]:
    keys = {
        kind: {"count": each.count, "keys": [] if personal else list(each.listed)}
        for kind, each in verdict.keys.items()
    }
    return {"partitions": list(verdict.partitions), "columns": dict(verdict.columns), "keys": keys}


def told(rows: tuple[int, int], sums: Mapping[str, tuple[str, str]], differences: Mapping[str, Any]) -> str:
    """How far two stores are apart, and where; of values only keys, and of these none that are personal."""
    return "; ".join(_told(rows, sums, differences))


def _told(rows: tuple[int, int], sums: Mapping[str, tuple[str, str]], differences: Mapping[str, Any]) -> Iterator[str]:
    yield f"{rows[1]} rows of {rows[0]}"
    for name, (one, other) in sums.items():
        yield f"sum of {name} {other} of {one}"
    for about, (one, other) in differences.get("accounts", {}).items():
        yield f"{about} {other} of {one}"
    if partitions := differences.get("partitions"):
        yield f"in {', '.join(partitions[:PARTITIONS_TOLD])}"
    for kind, each in differences.get("keys", {}).items():
        yield f"{kind} {each['count']}" + (f": {', '.join(each['keys'][:KEYS_TOLD])}" if each["keys"] else "")
    if columns := differences.get("columns"):
        yield f"in columns {', '.join(columns)}"


def judge(feed: str, done: Reconciliation, *, advice: str) -> None:
    """Raise where the two disagree, with what differs, where, and in which rows."""
    if done.agrees is False:
        rows = (done.expected_rows, done.found_rows)
        apart = told(rows, done.sums, done.differences)
        raise ReconcileError(f"{done.found}.{feed} does not agree with {done.expected}: {apart}. {advice}")


@away.tells
def keep(
    feed: str,
    done: Sequence[Reconciliation],
    *,
    lake: Lake,
    since: Mark | None = None,
    reached: Mark | None = None,
) -> None:
    """Add to what is known of a feed; within the lake, a run's comparison went from where `since` says to `reached`."""
    table = lake.ensure(layout.reconciled_table(feed), SCHEMA, spec=PartitionSpec(), properties=PROPERTIES)
    schema = schema_to_pyarrow(SCHEMA, include_field_ids=False)
    rows = [{**each.model_dump(), **{name: json.dumps(getattr(each, name)) for name in TEXTS}} for each in done]
    notes = {
        f"{COMPARED}{each.found}": json.dumps(_note(_noted(table, each.found), each, since=since, reached=reached))
        for each in done
        if each.found in layout.LAKE_STORES and each.scope == "changes" and each.run != BY_HAND
    }
    with table.transaction() as transaction:
        transaction.append(pa.Table.from_pylist(rows, schema=schema))
        if notes:
            transaction.set_properties(notes)


def _note(
    before: Mapping[str, Any], done: Reconciliation, *, since: Mark | None, reached: Mark | None
) -> Mapping[str, Any]:
    """How far runs have compared, and where the last of them began; one that comes again takes nothing from others."""
    runs = before.get("runs", {})
    if done.run in runs:
        return before
    known = dict([*runs.items(), (done.run, since)][-RUNS_KNOWN:])
    return {"reached": before.get("reached") if done.agrees is None else reached, "runs": known}


def _noted(table: Table, found: str) -> dict[str, Any]:
    noted: dict[str, Any] = json.loads(table.properties.get(f"{COMPARED}{found}", "{}"))
    return noted


@away.tells
def compared(feed: str, found: str, *, run: str, lake: Lake) -> Mark | None:
    """How far earlier runs have compared a store; a run that comes again begins where it began."""
    table = lake.find(layout.reconciled_table(feed))
    noted = _noted(table, found) if table else {}
    begun: dict[str, Mark | None] = noted.get("runs", {})
    return begun[run] if run in begun else noted.get("reached")


@away.tells
def latest(feed: str, *, lake: Lake, count: int, now: datetime) -> list[Reconciliation]:
    """The last ones of a feed, the newest first; no more is read than what is needed for so many."""
    table = lake.find(layout.reconciled_table(feed))
    if table is None:
        return []
    for days in LOOKED_BACK:
        since = (now - timedelta(days=days)).isoformat()
        found = table.scan(f"at >= '{since}'").to_arrow()
        if found.num_rows >= count:
            break
    rows = found.sort_by([("at", "descending")]).slice(0, count).to_pylist()
    return [Reconciliation(**{**row, **{name: json.loads(row[name]) for name in TEXTS}}) for row in rows]


def has_rows_before(table: Table, moment: datetime) -> bool:
    """Whether a file may hold some from before a moment."""
    return any(True for _ in table.scan(_before(moment)).plan_files())


def delete_rows_before(table: Table, moment: datetime) -> None:
    table.delete(_before(moment))


def _before(moment: datetime) -> str:
    return f"at < '{moment.isoformat()}'"


@away.tells
def mend(feed: str, mended: Callable[[str], str], *, lake: Lake) -> int:
    """Change what is told of differences, where it changes; the number of rows."""
    table = lake.find(layout.reconciled_table(feed))
    if table is None:
        return 0
    rows = table.scan("differences != '{}'").to_arrow()
    texts = rows["differences"].to_pylist()
    changed = {text for text in texts if text is not None and mended(text) != text}
    if not changed:
        return 0
    chosen = rows.filter(pc.is_in(rows["differences"], pa.array(sorted(changed), rows["differences"].type)))
    place = chosen.schema.get_field_index("differences")
    new = pa.array([mended(text) for text in chosen["differences"].to_pylist()], chosen.schema.field(place).type)
    table.overwrite(chosen.set_column(place, chosen.schema.field(place), new), In("differences", changed))  # type: ignore[call-arg]
    return int(chosen.num_rows)
