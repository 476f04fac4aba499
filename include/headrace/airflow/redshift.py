"""The Amazon provider's connection to Redshift: passwords, IAM and serverless workgroups, as its hook reads them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.hooks.redshift_sql import RedshiftSQLHook
from airflow.sdk.exceptions import AirflowException
from botocore.exceptions import BotoCoreError, ClientError

from headrace import layout
from headrace.errors import ServiceRefused, SettingsError

if TYPE_CHECKING:
    from headrace.warehouses.redshift import Connection

PORT = 5439


def opener(id_: str) -> "Callable[[], Connection]":
    """Opens a connection; with `iam` in its extra, by credentials that the lake's S3 connection may ask for."""

    def connect() -> "Connection":
        hook = RedshiftSQLHook(redshift_conn_id=id_, aws_conn_id=layout.S3_CONNECTION)
        try:
            opened: Connection = hook.get_conn()
        except (BotoCoreError, ClientError) as error:
            raise ServiceRefused(
                f"Airflow connection {id_}: AWS gives us no credentials for Redshift: {error} Check its cluster or "
                f"workgroup, and what {layout.S3_CONNECTION} may do; docs/connections.md says what we need."
            ) from error
        except AirflowException as error:
            raise SettingsError(f"Airflow connection {id_}: {error} Mend it under Admin, Connections.") from error
        return opened

    return connect


def place(connection: Any) -> str:
    """Where it is, for messages."""
    where = connection.host or connection.extra_dejson.get("serverless_work_group") or "?"
    return f"{where}:{connection.port or PORT}/{connection.schema}"
