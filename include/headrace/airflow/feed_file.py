"""A feed's file as runs read it: with every warehouse that gets the feed, those that name it in their own files too."""

import logging
from datetime import UTC, datetime
from pathlib import Path

from headrace import warehouse
from headrace.feed import Feed, load
from headrace.settings import Settings

log = logging.getLogger(__name__)


def opened(path: Path) -> Feed:
    """The feed of a file."""
    return sharing(load(path))


def sharing(feed: Feed) -> Feed:
    """A feed with its warehouses of today; a warehouse's file that is at fault stops nobody else's rows."""
    declared, bad = warehouse.declared(Settings().warehouses)
    for name, fault in bad.items():
        log.warning("warehouse %s is left out: %s", name, fault)
    today = datetime.now(UTC).date()
    for name, faults in warehouse.unfit(feed, declared, today=today).items():
        log.warning("warehouse %s gets nothing of feed %s: %s", name, feed.name, " ".join(map(str, faults)))
    return warehouse.sharing(feed, declared, today=today)
