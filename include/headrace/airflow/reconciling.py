"""Reconciling as runs and people ask for it: compared, kept in the lake, and told to whoever watches."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import Stats

from headrace.feed import Feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.reconciliation import Reconciliation
    from headrace.stages.reconcile import Reconciled

CLEAN = "clean"


def warehouse(feed: Feed, name: str, *, run: str, full: bool = False) -> "tuple[Reconciled, Reconciliation]":
    """Hold a warehouse against the clean table; what came of it is kept, whether they agree or not."""
    from headrace import reconciliation
    from headrace.airflow import connections
    from headrace.stages import reconcile

    lake, begin = connections.lake(Settings()), time.monotonic()
    done = reconcile.reconcile(
        feed, lake=lake, warehouse=connections.warehouse(name), mask_key=connections.mask_key(), full=full
    )
    kept = reconciliation.of_verdict(
        done.verdict,
        personal=done.share.has_personal_key,
        at=datetime.now(UTC),
        run=run,
        expected=CLEAN,
        found=name,
        scope=done.scope,
        snapshot=done.snapshot,
        seconds=time.monotonic() - begin,
    )
    reconciliation.keep(feed.name, [kept], lake=lake)
    measure(feed.name, kept)
    return done, kept


def measure(feed: str, done: "Reconciliation") -> None:
    """Figures for whoever watches Airflow's own."""
    tags = {"feed": feed, "expected": done.expected, "found": done.found, "scope": done.scope}
    Stats.gauge("headrace.reconcile.rows", done.found_rows, tags=tags)
    Stats.gauge("headrace.reconcile.disagrees", int(not done.agrees), tags=tags)
    Stats.timing("headrace.reconcile.duration", done.seconds * 1000, tags=tags)
