"""The lake: one Iceberg catalog over S3, and the three tables that every feed has in it."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import AddSnapshotUpdate, TableUpdate
from sqlalchemy.exc import IntegrityError

from headrace import heads, layout
from headrace.database import Database
from headrace.heads import Heads
from headrace.layout import Identifier
from headrace.storage import Storage, iceberg_properties, pyiceberg_properties

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# A writer that planned from an old snapshot must fail: PyIceberg would otherwise retry on top of the new one and land
# the same records twice. Old metadata files would pile up with every commit.
TABLE_PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "0",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
}

# One that sleeps within its commit would keep others from theirs: the database ends its transaction sooner than theirs.
PATIENCE = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "options": "-c statement_timeout=60000 -c idle_in_transaction_session_timeout=20000",
}
"""How long the catalog's database may be silent: seconds for a connection, milliseconds for an answer, or for us."""


@dataclass(frozen=True)
class Lake:
    """The catalog, opened on first use."""

    name: str
    location: str
    database: Database
    storage: Storage

    @cached_property
    def catalog(self) -> SqlCatalog:
        return SqlCatalog(self.name, **catalog_properties(self))

    @cached_property
    def s3(self) -> "S3Client":
        return self.storage.client()

    def find(self, identifier: Identifier) -> Table | None:
        try:
            return self.catalog.load_table(identifier)
        except NoSuchTableError:
            return None

    def ensure(
        self,
        identifier: Identifier,
        schema: Schema,
        *,
        spec: PartitionSpec,
        order: SortOrder | None = None,
        properties: Mapping[str, str],
    ) -> Table:
        """The table, made first if it is not there yet."""
        if table := self.find(identifier):
            return table
        # PyIceberg looks and then inserts: whoever does so at the same time has made it for us.
        with suppress(IntegrityError):
            self.catalog.create_namespace_if_not_exists(identifier[0])
        return self.catalog.create_table_if_not_exists(
            identifier,
            schema,
            location=layout.table_location(self.location, identifier),
            partition_spec=spec,
            **({"sort_order": order} if order else {}),
            properties={**TABLE_PROPERTIES, **properties},
        )


def catalog_properties(lake: Lake) -> dict[str, str]:
    """What PyIceberg needs to open the catalog; a database that is silent is given up in a bounded time."""
    uri = lake.database.url("postgresql+psycopg2", **PATIENCE)
    return {"uri": uri, "pool_pre_ping": "true", "warehouse": lake.location, **pyiceberg_properties(lake.storage)}


def spark_properties(lake: Lake) -> dict[str, str]:
    """What a Spark session needs to open the same catalog."""
    base, prefix = lake.database, f"spark.sql.catalog.{lake.name}"
    secured = f"?{urlencode(base.options, quote_via=quote)}" if base.options else ""
    catalog = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "uri": f"jdbc:postgresql://{base.host}:{base.port}/{base.name}{secured}",
        "jdbc.user": base.user,
        "jdbc.password": base.password,
        "jdbc.schema-version": "V1",
        "warehouse": lake.location,
        # The session outlives a task; another writer's commits must be seen at once.
        "cache-enabled": "false",
        **iceberg_properties(lake.storage),
    }
    return {prefix: "org.apache.iceberg.spark.SparkCatalog"} | {
        f"{prefix}.{key}": value for key, value in catalog.items()
    }


def keep_time(transaction: Transaction) -> None:
    """Stamp the snapshot that a transaction adds no earlier than the table's last.

    A machine's clock may have been set back since. PyIceberg would write the earlier time, and Iceberg in Java refuses
    to open a table whose snapshots go back in time by more than a minute.
    """
    last = transaction._table.metadata.last_updated_ms

    def stamped(update: TableUpdate) -> TableUpdate:
        if not isinstance(update, AddSnapshotUpdate) or update.snapshot.timestamp_ms >= last:
            return update
        return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"timestamp_ms": last})})

    transaction._updates = tuple(stamped(update) for update in transaction._updates)


def ancestors(table: Table, snapshot_id: int | None) -> Iterator[Any]:
    """A snapshot and those before it, the newest first."""
    while snapshot_id is not None and (snapshot := table.snapshot_by_id(snapshot_id)):
        yield snapshot
        snapshot_id = snapshot.parent_snapshot_id


def noted(table: Table, name: str) -> str | None:
    """What the newest snapshot of main that has a note of this name says in it."""
    current = table.current_snapshot()
    for snapshot in ancestors(table, current.snapshot_id if current else None):
        if name in snapshot.summary.additional_properties:
            return str(snapshot.summary.additional_properties[name])
    return None


def heads_at(table: Table, snapshot_id: int | None) -> Heads:
    """How far the table had come at a snapshot."""
    summaries = (dict(found.summary.additional_properties) for found in ancestors(table, snapshot_id))
    return heads.newest(summaries, table=".".join(table.name()))


def heads_of(table: Table) -> Heads:
    """How far the table's main branch has come."""
    current = table.current_snapshot()
    return heads_at(table, current.snapshot_id if current else None)
