"""A shelf: rows laid straight into a clean table and published as a run publishes them, for tests of who reads them."""

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow

from headrace import clean, heads, layout, personal
from headrace.feed import Feed
from headrace.lake import Lake, heads_of
from headrace.stages import publish

Row = Mapping[str, Any]


class Place(Protocol):
    """Whose rows, and where: a workshop, or a shelf."""

    feed: Feed
    lake: Any


@dataclass
class Shelf:
    """A feed in a lake, without topics and schemas."""

    feed: Feed
    lake: Lake


def published(place: Place, *rows: Row) -> int:
    """Publish exactly these rows, and say at which snapshot."""
    run = uuid.uuid4().hex
    return _switched(place, run, tip=branched(place, rows, run=run))


def added(place: Place, *rows: Row) -> int:
    """Publish these rows beside those that stand, as a run that only inserts does, and say at which snapshot."""
    run, table = uuid.uuid4().hex, place.lake.find(layout.clean_table(place.feed.name))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, layout.branch(run)).commit()
    return _switched(place, run, tip=_laid_on(table, rows, place.feed, branch=layout.branch(run)))


def _switched(place: Place, run: str, *, tip: int) -> int:
    assert publish.publish(place.feed, lake=place.lake, run=run, checked=tip)
    return tip


def branched(place: Place, rows: Iterable[Row], *, run: str) -> int:
    """A branch whose rows are exactly these, as a transform leaves it; hidden rows are marked so."""
    table, branch = _noted(place), layout.branch(run)
    base = table.current_snapshot()
    table.manage_snapshots().create_branch(base.snapshot_id, branch).commit()
    if base.summary["total-data-files"] != "0":
        table.delete(branch=branch)
    return _laid_on(table, rows, place.feed, branch=branch)


def _laid_on(table: Any, rows: Iterable[Row], feed: Feed, *, branch: str) -> int:
    every = [{clean.HIDDEN_ROW: False, **row} for row in rows]
    summary = {heads.PROPERTY: heads_of(table).to_json(), "headrace.accounts": json.dumps({"read": len(every)})}
    files = [_laid(table, together) for together in _by_day(every, feed)]
    table.add_files(files, branch=branch, snapshot_properties=summary)
    return int(table.refresh().metadata.refs[branch].snapshot_id)


def _noted(place: Place) -> Any:
    """The table, with a note of what is personal in it."""
    table = clean.clean_of(place.feed, place.lake)
    with table.transaction() as transaction:
        note = personal.note(place.feed, table.properties.get(personal.PROPERTY))
        transaction.set_properties({personal.PROPERTY: note})
    return place.lake.find(layout.clean_table(place.feed.name))


def _by_day(rows: Iterable[Row], feed: Feed) -> list[list[Row]]:
    partition, together = feed.declaration.partition, defaultdict(list)
    for row in rows:
        together[row[partition.field].date() if partition else None].append(row)
    return list(together.values())


def _laid(table: Any, rows: Sequence[Row]) -> str:
    """A file of rows of one partition: PyIceberg itself does not write to partitions by day."""
    path = f"{table.location()}/data/{uuid.uuid4().hex}.parquet"
    schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
    with table.io.new_output(path).create() as file:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), file)
    return path
