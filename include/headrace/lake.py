"""The lake: one Iceberg catalog over S3, and the three tables that every feed has in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortOrder

from headrace import heads, layout
from headrace.database import Database
from headrace.heads import Heads
from headrace.layout import Identifier

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


@dataclass(frozen=True)
class Storage:
    """How to reach S3; without keys, the machine's own role is used."""

    endpoint: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    region: str = "us-east-1"


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
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.storage.endpoint,
            aws_access_key_id=self.storage.access_key,
            aws_secret_access_key=self.storage.secret_key,
            region_name=self.storage.region,
        )

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
    """What PyIceberg needs to open the catalog."""
    storage = {
        "s3.endpoint": lake.storage.endpoint,
        "s3.access-key-id": lake.storage.access_key,
        "s3.secret-access-key": lake.storage.secret_key,
        "s3.region": lake.storage.region,
    }
    given = {key: value for key, value in storage.items() if value is not None}
    return {"uri": lake.database.url("postgresql+psycopg2"), "warehouse": lake.location, **given}


def spark_properties(lake: Lake) -> dict[str, str]:
    """What a Spark session needs to open the same catalog."""
    base, prefix = lake.database, f"spark.sql.catalog.{lake.name}"
    storage = {
        "s3.endpoint": lake.storage.endpoint,
        "s3.access-key-id": lake.storage.access_key,
        "s3.secret-access-key": lake.storage.secret_key,
        "client.region": lake.storage.region,
        "s3.path-style-access": "true" if lake.storage.endpoint else None,
    }
    catalog = {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "uri": f"jdbc:postgresql://{base.host}:{base.port}/{base.name}",
        "jdbc.user": base.user,
        "jdbc.password": base.password,
        "jdbc.schema-version": "V1",
        "warehouse": lake.location,
        # The session outlives a task; another writer's commits must be seen at once.
        "cache-enabled": "false",
        **{key: value for key, value in storage.items() if value is not None},
    }
    return {prefix: "org.apache.iceberg.spark.SparkCatalog"} | {
        f"{prefix}.{key}": value for key, value in catalog.items()
    }


def ancestors(table: Table, snapshot_id: int | None) -> Iterator[Any]:
    """A snapshot and those before it, the newest first."""
    while snapshot_id is not None and (snapshot := table.snapshot_by_id(snapshot_id)):
        yield snapshot
        snapshot_id = snapshot.parent_snapshot_id


def heads_at(table: Table, snapshot_id: int | None) -> Heads:
    """How far the table had come at a snapshot."""
    summaries = (dict(found.summary.additional_properties) for found in ancestors(table, snapshot_id))
    return heads.newest(summaries, table=".".join(table.name()))


def heads_of(table: Table) -> Heads:
    """How far the table's main branch has come."""
    current = table.current_snapshot()
    return heads_at(table, current.snapshot_id if current else None)
