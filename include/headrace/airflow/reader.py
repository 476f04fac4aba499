"""`headrace.read`: a feed's clean rows for a person or a program, with this environment's connections and settings."""

import contextlib
import sys
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from headrace import feed as feeds
from headrace.errors import ReadError
from headrace.feed import Feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.lake import Lake
    from headrace.readers import CleanRows
    from headrace.readers.predicate import Where
    from headrace.readers.sight import Asked


def read(
    feed: str | Feed,
    *,
    columns: Iterable[str] | None = None,
    where: "Where | None" = None,
    as_of: datetime | str | None = None,
    snapshot: int | None = None,
    personal: "Asked" = (),
    as_warehouse: str | None = None,
    lake: "Lake | None" = None,
) -> "CleanRows":
    """A feed's clean rows: `.arrow()`, `.batches()`, `.pandas()`, `.duckdb()`, `.spark(session)`, `.count()`.

    columns       names, in the order wanted; else all but personal ones
    where         "created_at >= '2026-01-01' and status = 'paid'", or [("status", "=", "paid"), …]
    as_of         a time: what readers saw then; without a zone it is UTC
    snapshot      one of `.snapshots()`
    personal      personal columns to show besides, or "*" for all; HEADRACE_PERSONAL must allow their kinds
    as_warehouse  a warehouse's name: its columns alone, masked as it gets them
    lake          another lake than that of the connections headrace_s3 and headrace_catalog

    More: docs/read.md.
    """
    if isinstance(columns, str) or (isinstance(personal, str) and personal != "*"):
        raise ReadError('columns and personal take lists of names: ["order_id", "price"].')
    # Airflow logs to standard output, which belongs to whoever reads.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import connections
        from headrace.readers.opening import Request, open_rows
        from headrace.readers.sight import Allowance

        settings = Settings()
        return open_rows(
            feed if isinstance(feed, str) else feed.name,
            Request(columns, where, as_of, snapshot, personal, as_warehouse),
            feed=_declared(feed, settings) if isinstance(feed, str) else feed,
            lake=lake or connections.lake(settings),
            allowance=Allowance.parse(settings.personal),
            mask_key=connections.mask_key,
        )


def _declared(name: str, settings: Settings) -> Feed | None:
    """The feed by its file, where there is one: an analyst's machine may have none, and then the table tells."""
    found = {path.stem: path for path in feeds.files(settings.schemas)} if settings.schemas.is_dir() else {}
    return feeds.load(found[name]) if name in found else None
