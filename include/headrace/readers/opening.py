"""Opening a feed's clean table for a reader: which snapshot, columns and rows they mean, and whether they may."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pyiceberg.expressions import BooleanExpression

from headrace import away, layout, personal
from headrace.errors import ReadError
from headrace.fault import nearest
from headrace.feed import Feed
from headrace.lake import Lake
from headrace.masks import MaskKey
from headrace.readers import predicate, published, sight
from headrace.readers.clean_rows import KEPT, CleanRows, WarehouseRows
from headrace.readers.predicate import Where
from headrace.readers.sight import Allowance, Asked, Seen
from headrace.share import Share, share

KEYED = "hash"
"""The one mask that needs the key."""


@dataclass(frozen=True)
class Request:
    """What a reader asks for."""

    columns: Iterable[str] | None = None
    where: Where | None = None
    as_of: datetime | str | None = None
    snapshot: int | None = None
    personal: Asked = ()
    as_warehouse: str | None = None


def open_rows(
    name: str,
    request: Request,
    *,
    feed: Feed | None,
    lake: Lake,
    allowance: Allowance,
    mask_key: Callable[[], MaskKey],
) -> CleanRows:
    """The rows of a feed, known by its file or else by its table alone; everything that cannot be is told here."""
    with away.services(lake=lake, kept=KEPT):
        table = lake.find(layout.clean_table(name))
        if table is None:
            raise _unknown(name, feed, lake=lake)
    at = published.chosen(table, name, as_of=request.as_of, snapshot=request.snapshot)
    stored = table.scan(snapshot_id=at.snapshot).projection()
    known = sight.columns(stored, feed=feed, noted=table.properties.get(personal.PROPERTY))
    asked = predicate.parsed(request.where)
    for column in sorted(predicate.columns_of(asked)):
        sight.known_column(name, column, known)
    rows = CleanRows(name, at, (), tuple(known.values()), predicate.typed(asked, stored), table, lake)
    if request.as_warehouse is not None:
        shared = _share(name, request.as_warehouse, feed=feed)
        return _as_warehouse(rows, request, shared, asked=asked, allowance=allowance, mask_key=mask_key)
    shown = sight.shown(name, known, names=request.columns, asked=request.personal)
    sight.refuse(name, [*shown, *_looked_at(asked, known)], allowance=allowance)
    if not shown:
        sight.refuse(name, known.values(), allowance=allowance)
        raise ReadError(f"clean.{name}: no column is left to show; all are personal. Name those that you need.")
    return replace(rows, columns=tuple(shown))


def _looked_at(asked: BooleanExpression, known: Mapping[str, Seen]) -> list[Seen]:
    """A filter tells of a column as much as showing it: who may not see it may not ask about it either."""
    return [known[name] for name in sorted(predicate.columns_of(asked))]


def _as_warehouse(
    rows: CleanRows,
    request: Request,
    shared: Share,
    *,
    asked: BooleanExpression,
    allowance: Allowance,
    mask_key: Callable[[], MaskKey],
) -> WarehouseRows:
    """Exactly the share's columns, or some of them; what it holds unmasked is as personal here as anywhere."""
    if request.personal:
        raise ReadError(f"clean.{rows.feed}: with as_warehouse, the feed file says what is shown; leave out personal.")
    types = shared.types
    known = {
        column.name: Seen(
            column.name, types[column.name], column.doc, None if column.name in shared.masks else column.pii
        )
        for column in shared.columns
    }
    names = [*known] if request.columns is None else list(request.columns)
    where = f"{rows.feed} as {shared.warehouse} gets it"
    shown = [sight.known_column(where, name, known) for name in names]
    looked_at = [sight.known_column(where, name, known) for name in sorted(predicate.columns_of(asked))]
    for column in looked_at:
        if column.name in shared.masks:
            raise ReadError(
                f"where: {column.name} is masked for {shared.warehouse}, and the lake filters by what is under the "
                f"mask. Filter the rows that you get."
            )
    sight.refuse(rows.feed, [*shown, *looked_at], allowance=allowance)
    kept = tuple(column for column in shared.columns if column.name in names)
    masks = {name: mask for name, mask in shared.masks.items() if name in names}
    key = mask_key() if KEYED in masks.values() else b""
    return WarehouseRows(
        rows.feed,
        rows.at,
        tuple(shown),
        tuple(known.values()),
        rows.condition,
        rows.table,
        rows.lake,
        shared=replace(shared, columns=kept, masks=masks),
        mask_key=key,
    )


def _share(name: str, warehouse: str, *, feed: Feed | None) -> Share:
    if feed is None:
        raise ReadError(
            f"clean.{name}: what {warehouse} gets of it stands in its feed file, which is not in the folder that "
            f"HEADRACE_SCHEMAS names. Point it at the folder of the feed files."
        )
    if warehouse not in feed.declaration.warehouses:
        raise ReadError(
            f"{feed.file}: it has no warehouse {warehouse!r}. {nearest(warehouse, [*feed.declaration.warehouses])}"
        )
    return share(feed, warehouse)


def _unknown(name: str, feed: Feed | None, *, lake: Lake) -> ReadError:
    if feed is not None:
        return ReadError(f"clean.{name}: there is no such table yet; the feed's first run makes it. Run: {name}")
    namespace = layout.clean_table(name)[0]
    there = [each[-1] for each in lake.catalog.list_tables(namespace)]
    return ReadError(f"there is no clean table of a feed {name!r}. {nearest(name, sorted(there))}")
