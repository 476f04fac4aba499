"""Reconciling as runs and people ask for it: compared, kept in the lake, and told to whoever watches."""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSkipException, Stats
from airflow.sdk import get_current_context
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowTaskTimeout

from headrace import feed as feeds
from headrace import layout
from headrace.airflow import alerts, feed_file
from headrace.errors import FeedError, HeadraceError, ReconcileError, TurnTaken, WarehouseBehind
from headrace.feed import Feed
from headrace.heads import Heads
from headrace.layout import ARCHIVE, CLEAN, STREAM, TOPIC
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.lake import Lake
    from headrace.reconciliation import Mark, Reconciliation
    from headrace.stages.derivation import Derived
    from headrace.stages.verify import Verification

log = logging.getLogger(__name__)

PATIENCE = timedelta(minutes=10)
"""How long a comparison that disagreed waits for the runs at work on the table, to be made once more without them."""
LISTED = 100

ADVICE = {
    ARCHIVE: "headrace verify {feed} --archive tells more; what the topic still holds can be archived anew.",
    CLEAN: "headrace rebuild {feed} --dry-run tells what a table made anew would change; without it, mends it.",
}
FOR_WAREHOUSES = "Clear the run's load task; if they still differ, somebody else writes to the table."


def stores(feed: Feed) -> list[str]:
    """What there is to reconcile of a feed, each with the store before it."""
    return [ARCHIVE, CLEAN, *feed.declaration.warehouses]


def every_pair(feed: str | None) -> list[dict[str, str]]:
    """The stores of one feed, or of all that have a file now; one whose file is at fault is told of by its own task."""
    names = [feed] if feed else [path.stem for path in feeds.files(Settings().schemas)]
    return [{"feed": name, "store": store} for name in names for store in _stores_of(name)]


def _stores_of(name: str) -> list[str]:
    try:
        return stores(feed_file.sharing(feeds.named(name, Settings().schemas)))
    except FeedError:
        return [ARCHIVE]


def prove(feed: Feed, store: str, *, run: str, full: bool) -> "Reconciliation | None":
    """Compare, and where the two disagree tell whoever the feed names, and raise; skipped where one is behind.

    That they could not be compared is kept and told too, once no other try comes.
    """
    begin = time.monotonic()
    try:
        done = compare(feed, store, run=run, full=full)
    except TurnTaken:  # it comes again, and that is no try
        raise
    except (Exception, AirflowTaskTimeout) as error:
        if _is_last(error):
            _not_compared(feed, store, error, run=run, full=full, seconds=time.monotonic() - begin)
        raise
    if done is not None:
        if done.behind:
            raise AirflowSkipException(done.behind)
        try:
            judge(feed, done)
        except ReconcileError as error:
            _tell(feed, f"{done.pair} disagree", str(error))
            raise
    return done


def _tell(feed: Feed, what: str, why: str) -> None:
    page = layout.reconcile_page(conf.get("api", "base_url", fallback=""), feed.name)
    alerts.tell(feed, f"{feed.name}: {what}", f"{why} {page}")


def _is_last(error: BaseException) -> bool:
    """Whether no other try of this task follows; outside of a task there is none."""
    if isinstance(error, HeadraceError) and not error.retry:
        return True
    try:
        task = get_current_context()["ti"]
    except RuntimeError:
        return True
    return task.try_number > task.max_tries


def _not_compared(feed: Feed, store: str, error: BaseException, *, run: str, full: bool, seconds: float) -> None:
    """Keep that two stores could not be compared, or the last verdict would go on to stand, and tell it.

    What a retry may mend by itself, as a warehouse that is down, is told by night only: runs come every few minutes.
    """
    from headrace import reconciliation
    from headrace.airflow import connections

    # Only our own errors are known to hold no value of a row.
    why = str(error) if isinstance(error, HeadraceError) else f"{type(error).__name__}; the task's log says more."
    failed = reconciliation.of_failure(
        why,
        at=datetime.now(UTC),
        run=run,
        expected=_before(feed, store),
        found=store,
        scope="whole" if full else "changes",
        seconds=seconds,
    )
    measure(feed.name, failed)
    try:
        lake = connections.lake(Settings())
        since = reconciliation.compared(feed.name, store, run=run, lake=lake)
        reconciliation.keep(feed.name, [failed], lake=lake, since=since)
    except Exception as also:  # noqa: BLE001 - what the task failed with is raised, and this may be for the same reason
        log.error("feed %s: that %s could not be compared is not kept: %s", feed.name, failed.pair, type(also).__name__)
    if full or not (isinstance(error, HeadraceError) and error.retry):
        _tell(feed, f"{failed.pair} could not be compared", why)


def _before(feed: Feed, store: str) -> str:
    """The store that this one is held against."""
    if store == ARCHIVE:
        return STREAM if feed.declaration.kinesis else TOPIC
    return ARCHIVE if store == CLEAN else CLEAN


def compare(feed: Feed, store: str, *, run: str, full: bool) -> "Reconciliation | None":
    """Hold a store against the one before it, whether they agree or not; None where there is nothing to compare."""
    if store == ARCHIVE:
        return archive(feed, run=run, full=full)
    if store == CLEAN:
        return clean(feed, run=run, full=full)
    return warehouse(feed, store, run=run, full=full)


def judge(feed: Feed, done: "Reconciliation") -> None:
    """Raise where two stores disagree, with what differs and what to do."""
    from headrace import reconciliation

    advice = ADVICE.get(done.found, FOR_WAREHOUSES).format(feed=feed.name)
    reconciliation.judge(feed.name, done, advice=advice)


def archive(feed: Feed, *, run: str, full: bool = False) -> "Reconciliation | None":
    """Hold the archive against its topic: all of it, or what came since another run last did."""
    from headrace import reconciliation
    from headrace.airflow import connections
    from headrace.stages import verify

    lake, begin = connections.lake(Settings()), time.monotonic()
    mark = reconciliation.compared(feed.name, ARCHIVE, run=run, lake=lake)
    since = None if full else Heads.from_json(str(mark)) if mark else Heads()
    # A stream cannot be asked by our offsets, so no broker is needed.
    kafka = {} if feed.declaration.kinesis else connections.kafka()
    done = verify.verify(feed, lake=lake, kafka=kafka, since=since)
    if done.snapshot is None or (since and since.next == done.reached.next):
        return None
    kept = of_verification(feed, done, run=run, seconds=time.monotonic() - begin)
    reached = Heads(done.reached.topic_id, done.reached.next, done.reached.drained_id)
    return _kept(feed, kept, lake=lake, since=mark, reached=reached.to_json())


def of_verification(feed: Feed, done: "Verification", *, run: str, seconds: float) -> "Reconciliation":
    """What is kept of a verification: coordinates of records, which are their keys here."""
    from headrace.findings import DIFFERENCES
    from headrace.reconciliation import Reconciliation

    accounts = done.accounts
    found = [each for account in accounts for each in account.findings if each.kind in DIFFERENCES]
    counts = {kind: sum(account.counts[kind] for account in accounts) for kind in DIFFERENCES}
    keys = {
        kind: {"count": count, "keys": [each.place for each in found if each.kind == kind][:LISTED]}
        for kind, count in counts.items()
        if count
    }
    partitions = sorted({f"partition {each.partition}" for each in found})
    expected, records = sum(account.expected for account in accounts), sum(account.records for account in accounts)
    checksum, apart = sum(account.checksum for account in accounts), sum(account.apart for account in accounts)
    return Reconciliation(
        at=datetime.now(UTC),
        run=run,
        expected=_before(feed, ARCHIVE),
        found=ARCHIVE,
        scope="whole" if done.is_whole else "changes",
        snapshot=done.snapshot,
        agrees=done.is_equal,
        expected_rows=expected,
        found_rows=records,
        expected_unique=expected,
        found_unique=records - counts["double"],
        checksums=(f"{(checksum + apart) % 2**64}", f"{checksum % 2**64}"),
        differences={"partitions": partitions, "keys": keys} if keys else {},
        seconds=seconds,
    )


def clean(feed: Feed, *, run: str, full: bool = False) -> "Reconciliation | None":
    """Hold the clean table against its archive: made once more, or by the accounts of what was published since."""
    return _derived(feed, run=run) if full else _accounted(feed, run=run)


def _accounted(feed: Feed, *, run: str) -> "Reconciliation | None":
    from headrace import reconciliation
    from headrace.airflow import connections
    from headrace.stages import accounting

    lake, begin = connections.lake(Settings()), time.monotonic()
    mark = reconciliation.compared(feed.name, CLEAN, run=run, lake=lake)
    done = accounting.account(feed, lake=lake, since=int(mark) if mark else None)
    if done is None:
        return None
    apart = {line.about: (line.expected, line.found) for line in done.lines if not line.agrees}
    kept = reconciliation.Reconciliation(
        at=datetime.now(UTC),
        run=run,
        expected=ARCHIVE,
        found=CLEAN,
        scope="changes",
        snapshot=done.snapshot,
        agrees=done.agrees,
        expected_rows=done.expected.rows,
        found_rows=done.found.rows,
        expected_unique=done.expected.unique,
        found_unique=done.found.unique,
        differences={"accounts": apart} if apart else {},
        seconds=time.monotonic() - begin,
    )
    return _kept(feed, kept, lake=lake, since=mark, reached=done.snapshot)


def _derived(feed: Feed, *, run: str) -> "Reconciliation | None":
    from headrace import reconciliation
    from headrace.airflow import connections
    from headrace.lease import Leases, turn

    lake, begin = connections.lake(Settings()), time.monotonic()
    alone = partial(
        turn,
        Leases(lake.database),
        layout.lease(layout.clean_table(feed.name)),
        holder=f"reconcile/{run}",
        doing="reconcile",
        patience=PATIENCE,
    )
    _follow(feed, lake=lake, alone=alone)
    done = _derive(feed, lake=lake)
    if done and not done.verdict.agrees:
        # A run may be between its verdicts and its rows: once more, while none is.
        with alone():
            done = _derive(feed, lake=lake)
    if done is None:
        return None
    kept = reconciliation.of_verdict(
        done.verdict,
        personal=done.has_personal_key,
        at=datetime.now(UTC),
        run=run,
        expected=ARCHIVE,
        found=CLEAN,
        scope="whole",
        snapshot=done.snapshot,
        seconds=time.monotonic() - begin,
    )
    return _kept(feed, kept, lake=lake)


def _follow(feed: Feed, *, lake: "Lake", alone: "Callable[[], Any]") -> None:
    """Give the table the columns of the feed's newest version, if no run has yet, as the next one would."""
    from headrace import clean

    table = lake.find(layout.clean_table(feed.name))
    if table and clean.lacks(table, feed):
        with alone():
            clean.clean_of(feed, lake)


def _derive(feed: Feed, *, lake: "Lake") -> "Derived | None":
    from headrace import scratch
    from headrace.airflow import planning
    from headrace.airflow.spark import Spark
    from headrace.stages import derivation

    made = planning.derivation(feed, lake=lake)
    if made is None:
        return None
    with scratch.folder() as folder:
        run = partial(Spark.of(feed, lake).run, "derivation")
        return derivation.derive(feed, lake=lake, made=made, run=run, folder=folder)


def warehouse(feed: Feed, name: str, *, run: str, full: bool = False) -> "Reconciliation":
    """Hold a warehouse against the clean table; what came of it is kept, whether they agree or not."""
    from headrace import reconciliation
    from headrace.airflow import connections
    from headrace.stages import reconcile

    lake, begin = connections.lake(Settings()), time.monotonic()
    try:
        done = reconcile.reconcile(
            feed, lake=lake, warehouse=connections.warehouse(name), mask_key=connections.mask_key(), full=full
        )
    except WarehouseBehind as error:
        made = partial(reconciliation.of_behind, error, scope="whole" if full else "changes")
    else:
        made = partial(
            reconciliation.of_verdict,
            done.verdict,
            personal=done.share.has_personal_key,
            scope=done.scope,
            snapshot=done.snapshot,
        )
    kept = made(at=datetime.now(UTC), run=run, expected=CLEAN, found=name, seconds=time.monotonic() - begin)
    return _kept(feed, kept, lake=lake)


def _kept(
    feed: Feed, done: "Reconciliation", *, lake: "Lake", since: "Mark | None" = None, reached: "Mark | None" = None
) -> "Reconciliation":
    from headrace import reconciliation

    reconciliation.keep(feed.name, [done], lake=lake, since=since, reached=reached)
    measure(feed.name, done)
    return done


def measure(feed: str, done: "Reconciliation") -> None:
    """Figures for whoever watches Airflow's own."""
    tags = {"feed": feed, "expected": done.expected, "found": done.found, "scope": done.scope}
    if done.agrees is not None:
        Stats.gauge("headrace.reconcile.rows", done.found_rows, tags=tags)
    Stats.gauge("headrace.reconcile.disagrees", int(done.agrees is False), tags=tags)
    Stats.gauge("headrace.reconcile.behind", int(done.behind is not None), tags=tags)
    Stats.gauge("headrace.reconcile.failed", int(done.failed is not None), tags=tags)
    Stats.timing("headrace.reconcile.duration", done.seconds * 1000, tags=tags)
