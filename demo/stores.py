"""What stands in every store, read by other means than the platform's own code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlalchemy
from psycopg import sql
from psycopg.rows import dict_row
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

from demo.errors import StoreError
from demo.feed import Feed
from demo.settings import Catalog

HIDDEN = "_hidden"


@dataclass(frozen=True)
class Found:
    """What the stores hold of one feed."""

    archived: int
    clean: list[dict[str, Any]]
    quarantine: list[dict[str, Any]]
    warehouses: Mapping[str, list[dict[str, Any]]]


def found(feed: Feed, *, catalog: SqlCatalog, readers: Mapping[str, str]) -> Found:
    """Everything that the stores hold of this feed."""
    return Found(
        archived=_archived(feed, catalog),
        clean=clean_rows(feed, catalog),
        quarantine=quarantine_rows(feed, catalog),
        warehouses={warehouse: warehouse_rows(feed, readers[warehouse]) for warehouse in feed.warehouses},
    )


def open_catalog(settings: Catalog) -> SqlCatalog:
    """The Iceberg catalog, over its database and S3."""
    database, s3 = settings.database, settings.s3
    uri = sqlalchemy.URL.create(
        "postgresql+psycopg2",
        username=database["login"],
        password=database["password"],
        host=database["host"],
        port=database["port"],
        database=database["schema"],
    )
    return SqlCatalog(
        "headrace",
        **{
            "uri": uri.render_as_string(hide_password=False),
            "warehouse": settings.lake,
            "s3.endpoint": s3["extra"]["endpoint_url"],
            "s3.region": s3["extra"]["region_name"],
            "s3.access-key-id": s3["login"],
            "s3.secret-access-key": s3["password"],
        },
    )


def clean_rows(feed: Feed, catalog: SqlCatalog) -> list[dict[str, Any]]:
    """The rows that a reader sees; those of deleted keys are hidden."""
    rows = _table_rows(catalog, ("clean", feed.name), columns=(*feed.fields, HIDDEN))
    return [{name: row[name] for name in feed.fields} for row in rows if not row[HIDDEN]]


def quarantine_rows(feed: Feed, catalog: SqlCatalog) -> list[dict[str, Any]]:
    return _table_rows(catalog, ("quarantine", feed.name), columns=("partition", "offset", "reason"))


def warehouse_rows(feed: Feed, reader: str) -> list[dict[str, Any]]:
    """All rows as the team's read-only role sees them, without the platform's own columns (`_…`)."""
    query = sql.SQL("select * from public.{}").format(sql.Identifier(feed.name))
    try:
        return [{name: row[name] for name in row if not name.startswith("_")} for row in _read(reader, query)]
    except psycopg.errors.UndefinedTable:
        return []


def _archived(feed: Feed, catalog: SqlCatalog) -> int:
    try:
        return catalog.load_table(("archive", feed.name)).scan().count()
    except NoSuchTableError:
        return 0


def _table_rows(catalog: SqlCatalog, table: tuple[str, str], *, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """A table that is not there holds no rows: the comparison then says which ones are missing."""
    try:
        return list(catalog.load_table(table).scan(selected_fields=columns).to_arrow().to_pylist())
    except NoSuchTableError:
        return []


def answer(reader: str, query: sql.SQL) -> list[dict[str, Any]]:
    """The rows that an analyst gets for a query."""
    return _read(reader, query)


def _read(reader: str, query: sql.SQL | sql.Composed) -> list[dict[str, Any]]:
    try:
        with psycopg.connect(reader) as connection, connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query).fetchall()
    except psycopg.OperationalError as error:
        raise StoreError(f"A warehouse does not answer: {error}. `make status` shows what runs.") from error
