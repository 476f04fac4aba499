"""Rebuild: a feed's clean table made anew from its archive, checked, compared with what readers see, then published."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace import layout
from headrace.airflow import connections, planning
from headrace.airflow.spark import Spark
from headrace.feed import Feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.lake import Lake
    from headrace.stages.compare import Difference

log = logging.getLogger(__name__)

PATIENCE = timedelta(minutes=10)
"""How long it waits for a run that is at work on the table."""


ADVICE = "Mend the cause, be it the rows or the check, and rebuild again."
"""What to do about a rebuild that its checks stopped: nobody is asked whether to publish it anyway."""


@dataclass(frozen=True)
class Checked:
    """What may be published."""

    snapshot: int
    page: str
    """Where it is shown how each check came out."""
    warned: tuple[str, ...]
    """Those that failed and only warn."""


@dataclass(frozen=True)
class Rebuilt:
    """What came of a rebuild."""

    feed: str
    branch: str
    accounts: Mapping[str, int]
    difference: "Difference"
    """Between what readers saw and the new rows."""
    checked: Checked
    published: bool


def rebuild(feed: Feed, *, run: str, publish: bool, without_dropped: bool = False) -> Rebuilt | None:
    """Make the table anew; without `publish` it stays on its branch. None where nothing was archived yet.

    Readers see the old rows until the switch. The turn is held throughout, so that no run is merged meanwhile. Where
    the archive has dropped records, rows that only those made are missing then: `without_dropped` allows for that.
    """
    from headrace.lease import Leases, turn

    lake, name = connections.lake(Settings()), layout.lease(layout.clean_table(feed.name))
    with turn(Leases(lake.database), name, holder=f"rebuild/{run}", doing="rebuild", patience=PATIENCE):
        return _rebuild(feed, lake=lake, run=run, switch=publish, without_dropped=without_dropped)


def _rebuild(feed: Feed, *, lake: "Lake", run: str, switch: bool, without_dropped: bool) -> Rebuilt | None:
    from headrace.stages import compare, publish

    accounts = _transform(feed, lake=lake, run=run, without_dropped=without_dropped)
    if accounts is None:
        return None
    branch = layout.branch(run)
    difference = compare.compare(feed, branch, lake=lake)
    log.info("feed %s: made anew on branch %s: %s; beside main: %s", feed.name, branch, accounts, difference.counts)
    checked = _check(feed, lake=lake, run=run)
    if switch:
        publish.publish(feed, lake=lake, run=run, checked=checked.snapshot)
    return Rebuilt(feed.name, branch, accounts, difference, checked, published=switch)


def _transform(feed: Feed, *, lake: "Lake", run: str, without_dropped: bool) -> dict[str, int] | None:
    planned = planning.transform(feed, lake=lake, run=run, anew=True, without_dropped=without_dropped)
    if planned is None:
        return None
    accounts: dict[str, int] = json.loads(Spark.of(feed, lake).run("transform", planned.model_dump_json()))
    return accounts


def _check(feed: Feed, *, lake: "Lake", run: str) -> Checked:
    """Ask every check of all rows; raises when one of them stops it."""
    from headrace.airflow import checking
    from headrace.stages import check

    planned = check.plan(feed, lake=lake, run=run)
    assert planned is not None, "a table that was made anew waits on its branch"
    outcomes, page = checking.asked(feed, planned, lake=lake, run=run, window=None)
    warned = check.judge(outcomes, feed=feed.name, branch=planned.branch, page=page, advice=ADVICE)
    log.info("feed %s: %d checks passed, %d warned", feed.name, len(outcomes) - len(warned), len(warned))
    return Checked(planned.snapshot, page, warned=tuple(map(str, warned)))


def told(done: Rebuilt) -> dict[str, Any]:
    """What came of it, for a log and for XCom; no value of a row is in it."""
    return {
        "feed": done.feed,
        "branch": done.branch,
        "published": done.published,
        "accounts": dict(done.accounts),
        "rows": dict(done.difference.counts),
        "warned": len(done.checked.warned),
        "checks": done.checked.page,
    }
