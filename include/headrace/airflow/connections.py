"""Airflow connections as the plain values that the library takes; the one place that reads secrets.

The lake and the warehouses are imported inside the functions: the DAG processor uses the others, and forks a lot.
"""

from typing import TYPE_CHECKING, Any

from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook
from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from headrace import layout
from headrace.database import Database
from headrace.errors import SettingsError
from headrace.kafka.topic import Config
from headrace.registry.store import Store
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.lake import Lake, Storage
    from headrace.masks import MaskKey
    from headrace.warehouses.postgres import PostgresWarehouse


class KafkaConfigHook(KafkaBaseHook):
    """The provider's hook, asked for a client's settings: TLS, SASL and token callbacks included."""

    def _get_client(self, config: Config) -> Config:
        return config


def kafka() -> Config:
    config: Config = KafkaConfigHook(layout.KAFKA_CONNECTION).get_conn  # type: ignore[no-untyped-call]
    return config


def lake(settings: Settings) -> "Lake":
    from headrace.lake import Lake

    return Lake(settings.catalog, settings.lake, database(layout.CATALOG_CONNECTION), storage())


def storage() -> "Storage":
    from headrace.lake import Storage

    connection = BaseHook.get_connection(layout.S3_CONNECTION)
    extra = connection.extra_dejson
    return Storage(
        endpoint=extra.get("endpoint_url"),
        access_key=connection.login,
        secret_key=connection.password,
        region=extra.get("region_name", Storage.region),
    )


def registry() -> Store:
    return Store(database(layout.REGISTRY_STORE_CONNECTION))


def warehouse(name: str) -> "PostgresWarehouse":
    from headrace.warehouses.postgres import PostgresWarehouse

    return PostgresWarehouse(name, database(layout.warehouse_connection(name)), layout.reader_role(name))


def mask_key() -> "MaskKey":
    return bytes(_needed(layout.MASKS_CONNECTION, "password"), "utf-8")


def spark_remote() -> str | None:
    """The address of a Spark Connect server."""
    url: str = SparkConnectHook(layout.SPARK_CONNECTION).get_connection_url()
    return url


def database(id_: str) -> Database:
    try:
        connection = BaseHook.get_connection(id_)
    except AirflowNotFoundException as error:
        raise SettingsError(f"Airflow has no connection {id_}. Add it under Admin, Connections.") from error
    return Database(
        host=_needed(id_, "host"),
        port=connection.port or 5432,
        name=_needed(id_, "schema"),
        user=_needed(id_, "login"),
        password=connection.password or "",
    )


def _needed(id_: str, attribute: str) -> Any:
    value = getattr(BaseHook.get_connection(id_), attribute)
    if not value:
        raise SettingsError(f"Airflow connection {id_}: {attribute} is not set. Set it under Admin, Connections.")
    return value
