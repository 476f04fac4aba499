"""Upkeep as people ask for it, on the command line and in the nightly DAG, with the connections at hand."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace import feed as feeds
from headrace import warehouse
from headrace.errors import SettingsError, SparkFailed, WarehouseError
from headrace.feed import Feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.lake import Lake
    from headrace.stages.compaction import Spark
    from headrace.stages.upkeep import Upkeep

log = logging.getLogger(__name__)


def every_feed() -> list[str]:
    """The feeds that have a file now; one whose file is at fault is listed too, and told of when its turn comes."""
    return [path.stem for path in feeds.files(Settings().schemas)]


def keep(feed: Feed, *, older_than: timedelta | None = None, dry_run: bool = False) -> "Upkeep":
    """Keep a feed's tables."""
    from headrace.airflow import connections
    from headrace.stages import upkeep

    lake = connections.lake(Settings())
    return upkeep.upkeep(
        feed,
        lake=lake,
        spark=_spark(feed, lake),
        recorded=set(_recorded(feed)),
        stagings=stagings(),
        older_than=older_than,
        dry_run=dry_run,
    )


def stagings() -> set[str]:
    """Where warehouses have rows staged besides the lake, whether a feed goes there still or did once."""
    declared, _ = warehouse.declared(Settings().warehouses)
    return {each.staging for each in declared.values() if each.staging}


def told(done: "Upkeep") -> dict[str, Any]:
    """What was done, for programs."""
    from dataclasses import asdict

    return {**asdict(done), "older_than": done.older_than.total_seconds()}


def _spark(feed: Feed, lake: "Lake") -> "Spark":
    """Asks Spark, only when there is something to rewrite."""

    def run(plan: str) -> str:
        from headrace.airflow.spark import Spark

        try:
            return Spark.of(feed, lake).run("upkeep", plan)
        except SettingsError as error:
            raise SparkFailed(f"files are not compacted: {error}") from error

    return run


def _recorded(feed: Feed) -> Iterator[int]:
    """The snapshots that the feed's warehouses hold; one that does not answer is told of by its own load."""
    from headrace.airflow import connections, feed_file

    for name in feed_file.sharing(feed).declaration.warehouses:
        try:
            held = connections.warehouse(name).holds(feed.name)
        except (SettingsError, WarehouseError) as error:
            log.warning("feed %s: what a warehouse holds is not known, its load is to tell: %s", feed.name, error)
            continue
        if held.snapshot is not None:
            yield held.snapshot
