"""Checking: the suite asked of what waits on a branch, and how it came out kept for the pages that show it."""

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headrace import layout
from headrace.airflow.spark import Spark
from headrace.feed import Feed

if TYPE_CHECKING:
    from headrace.lake import Lake
    from headrace.outcome import Outcome
    from headrace.stages.check import CheckPlan

log = logging.getLogger(__name__)

Window = tuple[datetime, datetime]


def asked(
    feed: Feed, planned: "CheckPlan", *, lake: "Lake", run: str, window: Window | None
) -> "tuple[list[Outcome], str]":
    """How each check came out, and the address of the page that shows it."""
    from airflow.sdk.configuration import conf

    from headrace import results
    from headrace.outcome import Outcome

    found = json.loads(Spark.of(feed, lake).run("check", planned.model_dump_json()))
    outcomes = [Outcome.model_validate(each) for each in found]
    result = results.Result(
        feed=feed.name,
        run=run,
        branch=planned.branch,
        snapshot=str(planned.snapshot),
        at=datetime.now(UTC),
        window=window,
        outcomes=outcomes,
    )
    results.write(result, lake=lake)
    page = layout.checks_page(conf.get("api", "base_url", fallback=""), feed.name, result=result.name)
    log.info("feed %s: how each check came out: %s", feed.name, page)
    return outcomes, page
