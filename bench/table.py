"""An Iceberg table seen from outside: when its rows become readable, and whether they are all there."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg2
import pyarrow.compute as pc

from headrace.database import Database
from headrace.lake import Lake
from headrace.layout import Identifier

EVERY_S = 0.05


@dataclass(frozen=True)
class Mark:
    """How many rows a fresh reader found, and when."""

    at: float
    rows: int


class Gone(RuntimeError):
    """The process that fills the table has ended before all was there."""


def watch(lake: Lake, identifier: Identifier, *, until: int, alive: Callable[[], bool], patience: float) -> list[Mark]:
    """Each snapshot as it becomes readable, until the table holds so many rows.

    The catalog's pointer is asked for often, which costs next to nothing; the table is loaded when it has moved.
    """
    marks: list[Mark] = []
    seen, deadline = None, time.time() + patience
    with _connected(lake.database) as connection, connection.cursor() as cursor:
        while not marks or marks[-1].rows < until:
            was_alive = alive()
            pointer = _pointer(cursor, lake.name, identifier)
            if pointer != seen:
                seen, rows = pointer, rows_of(lake, identifier)
                if rows and (not marks or rows > marks[-1].rows):
                    marks.append(Mark(time.time(), rows))
                continue
            if not was_alive:
                raise Gone(
                    f"{'.'.join(identifier)}: its writer ended at {marks[-1].rows if marks else 0} of {until} rows"
                )
            if time.time() > deadline:
                raise Gone(f"{'.'.join(identifier)}: not filled after {patience:.0f} s")
            time.sleep(EVERY_S)
    return marks


def _connected(database: Database) -> Any:
    connection = psycopg2.connect(database.url("postgresql"))
    connection.autocommit = True
    return connection


def _pointer(cursor: Any, catalog: str, identifier: Identifier) -> str | None:
    cursor.execute(
        "select metadata_location from iceberg_tables where (catalog_name, table_namespace, table_name) = (%s, %s, %s)",
        (catalog, *identifier),
    )
    row = cursor.fetchone()
    return row[0] if row else None


def rows_of(lake: Lake, identifier: Identifier) -> int:
    """What the current snapshot says it holds."""
    snapshot = lake.catalog.load_table(identifier).current_snapshot()
    return int(snapshot.summary["total-records"]) if snapshot and snapshot.summary else 0


def files_of(lake: Lake, identifier: Identifier) -> int:
    """How many data files the table has."""
    snapshot = lake.catalog.load_table(identifier).current_snapshot()
    return int(snapshot.summary["total-data-files"]) if snapshot and snapshot.summary else 0


def faults(lake: Lake, identifier: Identifier, *, ends: Mapping[int, int]) -> list[str]:
    """What a reader of every row misses: each partition must hold each offset from zero to its end once."""
    rows = lake.catalog.load_table(identifier).scan(selected_fields=("partition", "offset")).to_arrow()
    found = []
    for partition, end in sorted(ends.items()):
        offsets = rows.filter(pc.equal(rows["partition"], partition))["offset"]
        different, reach = pc.count_distinct(offsets).as_py(), pc.min_max(offsets).as_py()
        if (len(offsets), different, reach["min"], reach["max"]) != (end, end, 0, end - 1):
            found.append(
                f"partition {partition}: {len(offsets)} rows, {different} offsets from {reach['min']} to "
                f"{reach['max']}, not 0 to {end - 1} once each"
            )
    if rows.num_rows != sum(ends.values()):
        found.append(f"{rows.num_rows} rows, not {sum(ends.values())}")
    return found


def drop(lake: Lake, identifier: Identifier, *prefixes: str) -> None:
    """The table and its files, if they are there."""
    if lake.catalog.table_exists(identifier):
        lake.catalog.drop_table(identifier)
    bucket, _, root = lake.location.removeprefix("s3://").partition("/")
    for prefix in prefixes:
        pages = lake.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{root}/{prefix}".lstrip("/"))
        for page in pages:
            keys = [{"Key": each["Key"]} for each in page.get("Contents", ())]
            if keys:
                lake.s3.delete_objects(Bucket=bucket, Delete={"Objects": keys})
