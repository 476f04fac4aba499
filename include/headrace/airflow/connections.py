"""Airflow connections as the plain values that the library takes; the one place that reads secrets.

The lake and the warehouses are imported inside the functions: the DAG processor uses the others, and forks a lot.
"""

from typing import TYPE_CHECKING, Any

from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook
from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from headrace import layout
from headrace.database import OPTIONS, Database
from headrace.errors import SettingsError
from headrace.kafka.topic import Config
from headrace.registry.store import Store
from headrace.settings import Settings

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

    from headrace.lake import Lake
    from headrace.masks import MaskKey
    from headrace.provenance import SigningKey
    from headrace.storage import Storage
    from headrace.warehouse import Warehouse
    from headrace.warehouses.client import WarehouseClient
    from headrace.warehouses.postgres import PostgresWarehouse
    from headrace.warehouses.redshift import RedshiftWarehouse


class KafkaConfigHook(KafkaBaseHook):
    """The provider's hook, asked for a client's settings: TLS, SASL and token callbacks included."""

    def _get_client(self, config: Config) -> Config:
        return config


def kafka() -> Config:
    id_ = named(layout.KAFKA_CONNECTION).conn_id
    try:
        config: Config = KafkaConfigHook(id_).get_conn  # type: ignore[no-untyped-call]
    except ValueError as error:  # no servers, or a callback that Airflow's own configuration does not allow
        raise SettingsError(f"Airflow connection {id_}: {error} Mend it under Admin, Connections.") from error
    return config


def lake(settings: Settings) -> "Lake":
    from headrace.lake import Lake

    return Lake(settings.catalog, settings.lake, database(layout.CATALOG_CONNECTION), storage())


def storage() -> "Storage":
    """S3 as the Amazon provider reads its connection, with the encryption that `service_config.s3.extra_args` names."""
    from headrace.airflow import aws

    return aws.storage(named(layout.S3_CONNECTION).conn_id)


def kinesis() -> "KinesisClient":
    """A client as the Amazon provider makes it of its connection: keys, roles, region and endpoint as that says."""
    from headrace.airflow import aws

    return aws.kinesis(named(layout.KINESIS_CONNECTION).conn_id)


def registry() -> Store:
    return Store(database(layout.REGISTRY_STORE_CONNECTION))


def warehouse(name: str) -> "WarehouseClient":
    """A warehouse as its file declares it."""
    from headrace import warehouse

    declared = warehouse.named(name, Settings().warehouses)
    return redshift(name, declared) if declared.kind == "redshift" else postgres(name, declared)


def postgres(name: str, declared: "Warehouse") -> "PostgresWarehouse":
    from headrace.warehouses.postgres import PostgresWarehouse

    id_, readers = _asked(name, declared)
    return PostgresWarehouse(name, database(id_), readers, declared.schema_name, connection=id_)


def redshift(name: str, declared: "Warehouse") -> "RedshiftWarehouse":
    """As the Amazon provider's hook opens it; rows are staged by the lake's own S3 connection."""
    from headrace.airflow.redshift import opener, place
    from headrace.warehouses.redshift import RedshiftWarehouse

    id_, readers = _asked(name, declared)
    connection, s3 = named(id_), storage()
    if connection.conn_type != "redshift":
        raise SettingsError(
            f"Airflow connection {id_}: it is of type {connection.conn_type}, but the warehouse {name} is of kind "
            f"redshift. Make it of type Amazon Redshift under Admin, Connections."
        )
    return RedshiftWarehouse(
        name,
        connect=opener(id_),
        s3=s3.client,
        lake=declared.staging or Settings().lake,
        iam_role=declared.iam_role or "default",
        kms_key=s3.encryption.key if s3.encryption else None,
        readers=readers,
        schema=declared.schema_name,
        connection=id_,
        place=place(connection),
    )


def _asked(name: str, declared: "Warehouse") -> tuple[str, tuple[str, ...]]:
    """The connection of a warehouse and who reads it, as declared or by default."""
    readers = [layout.reader_role(name)] if declared.readers is None else declared.readers
    return declared.place(name)[0], tuple(readers)


def mask_key() -> "MaskKey":
    return bytes(_needed(layout.MASKS_CONNECTION, "password"), "utf-8")


def signing_key() -> "SigningKey":
    """The keys that prove what was replayed or imported: the first one signs, all of them are believed."""
    from headrace.provenance import SigningKey

    return SigningKey.parse(_needed(layout.SIGNING_CONNECTION, "password"))


def spark_remote(id_: str = layout.SPARK_CONNECTION) -> str:
    """The address of a Spark Connect server."""
    url: str = SparkConnectHook(id_).get_connection_url()
    return url


def database(id_: str) -> Database:
    connection = named(id_)
    extra = connection.extra_dejson
    return Database(
        host=_needed(id_, "host"),
        port=connection.port or 5432,
        name=_needed(id_, "schema"),
        user=_needed(id_, "login"),
        password=connection.password or "",
        options=tuple((name, str(extra[name])) for name in OPTIONS if name in extra),
    )


def named(id_: str) -> Any:
    try:
        return BaseHook.get_connection(id_)
    except AirflowNotFoundException as error:
        raise SettingsError(f"Airflow has no connection {id_}. Add it under Admin, Connections.") from error


def _needed(id_: str, attribute: str) -> Any:
    value = getattr(named(id_), attribute)
    if not value:
        raise SettingsError(f"Airflow connection {id_}: {attribute} is not set. Set it under Admin, Connections.")
    return value
